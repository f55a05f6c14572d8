//! The statements of the client side, in the order in which they are prepared.
//!
//! Hot rows are locked late and in one order by every transaction (customer, district, warehouse; stocks by item), so that
//! transactions do not deadlock and hold them for as few round trips as the data dependencies allow.

use crate::workload::Statement;

pub(super) const BEGIN: usize = 0;
pub(super) const COMMIT: usize = 1;
pub(super) const ROLLBACK: usize = 2;
pub(super) const NEXT_ORDER: usize = 3;
pub(super) const CUSTOMER_AND_TAX: usize = 4;
pub(super) const ITEM: usize = 5;
pub(super) const STOCK: usize = 6;
pub(super) const INSERT_ORDER: usize = 7;
pub(super) const INSERT_NEW_ORDER: usize = 8;
pub(super) const INSERT_LINE: usize = 9;
pub(super) const CUSTOMERS_OF_NAME: usize = 10;
pub(super) const PAY_CUSTOMER: usize = 11;
pub(super) const PAY_DISTRICT: usize = 12;
pub(super) const PAY_WAREHOUSE: usize = 13;
pub(super) const INSERT_HISTORY: usize = 14;
pub(super) const CUSTOMER: usize = 15;
pub(super) const NEWEST_ORDER: usize = 16;
pub(super) const LINES: usize = 17;
pub(super) const TAKE_OLDEST: usize = 18;
pub(super) const SET_CARRIER: usize = 19;
pub(super) const STAMP_LINES: usize = 20;
pub(super) const CREDIT_CUSTOMER: usize = 21;
pub(super) const DISTRICT: usize = 22;
pub(super) const LOW_STOCKS: usize = 23;
/// The first of the calls of functions, which come in the order of the kinds.
pub(super) const CALLS: usize = 24;

static OF_CLIENT: [Statement; CALLS] = [
    Statement::fixed("begin", "BEGIN"),
    Statement::fixed("commit", "COMMIT"),
    Statement::fixed("rollback", "ROLLBACK"),
    Statement::fixed(
        "next_order",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
    ),
    Statement::fixed(
        "customer_and_tax",
        "SELECT c_last, c_credit, c_discount, w_tax FROM customer, warehouse WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 AND w_id = $1",
    ),
    Statement::fixed("item", "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1"),
    Statement::fixed(
        "take_from_stock",
        "UPDATE stock SET s_quantity = s_quantity - $3::integer + CASE WHEN s_quantity >= $3::integer + 10 THEN 0 ELSE 91 END, \
         s_ytd = s_ytd + $3::integer, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4::integer \
         WHERE s_w_id = $1 AND s_i_id = $2 RETURNING s_quantity, s_data, CASE $5::integer WHEN 1 THEN s_dist_01 \
         WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
         WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END",
    ),
    Statement::fixed(
        "insert_order",
        "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, now(), NULL, $5, $6) RETURNING o_entry_d",
    ),
    Statement::fixed("insert_new_order", "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)"),
    Statement::fixed(
        "insert_line",
        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, \
         ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)",
    ),
    Statement::fixed(
        "customers_of_name",
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
    ),
    Statement::fixed(
        "pay_customer",
        "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
         c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN left($5::text || c_data, 500) ELSE c_data END \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
         c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, \
         CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END",
    ),
    Statement::fixed(
        "pay_district",
        "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
    ),
    Statement::fixed(
        "pay_warehouse",
        "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
    ),
    Statement::fixed(
        "insert_history",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, now(), $6, $7) RETURNING h_date",
    ),
    Statement::fixed(
        "customer",
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    ),
    Statement::fixed(
        "newest_order",
        "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
         ORDER BY o_id DESC LIMIT 1",
    ),
    Statement::fixed(
        "lines",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    ),
    // The lock is waited for below the limit, so that of two Deliveries the second goes on to the next order.
    Statement::fixed(
        "take_oldest",
        "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = (SELECT no_o_id FROM new_order \
         WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE) RETURNING no_o_id",
    ),
    Statement::fixed(
        "set_carrier",
        "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id, o_ol_cnt",
    ),
    Statement::fixed(
        "stamp_lines",
        "UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount",
    ),
    Statement::fixed(
        "credit_customer",
        "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    ),
    Statement::fixed("district", "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2"),
    Statement::fixed(
        "low_stocks",
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3::integer - 20 AND ol_o_id < $3::integer AND s_quantity < $4",
    ),
];

/// The calls of functions, in the order of the kinds.
const OF_FUNCTIONS: [Statement; 5] = [
    Statement::fixed("call_new_order", "SELECT * FROM order_entry_new_order($1, $2, $3, $4, $5, $6)"),
    Statement::fixed("call_payment", "SELECT * FROM order_entry_payment($1, $2, $3, $4, $5, $6, $7)"),
    Statement::fixed("call_order_status", "SELECT * FROM order_entry_order_status($1, $2, $3, $4)"),
    Statement::fixed("call_delivery", "SELECT * FROM order_entry_delivery($1, $2)"),
    Statement::fixed("call_stock_level", "SELECT * FROM order_entry_stock_level($1, $2, $3)"),
];

/// All statements: a connection prepares those of one side only, and their places stay the same.
pub(super) fn all() -> Vec<Statement> {
    OF_CLIENT.iter().cloned().chain(OF_FUNCTIONS).collect()
}

/// Whether a connection of server-side functions, or of client-side statements, runs statement `place`.
pub(super) fn is_used(place: usize, by_functions: bool) -> bool {
    place <= ROLLBACK || (place >= CALLS) == by_functions
}
