//! The statement that asks a range of warehouses for everything at once.

use crate::order_entry::scale::{ORDERS, UNDELIVERED};

/// What breaks each condition, from 1 on.
pub(super) const BROKEN_BY: [&str; 12] = [
    "warehouses whose w_ytd is not the sum of d_ytd",
    "districts whose d_next_o_id - 1 is not the highest order, or that is not the highest undelivered one",
    "districts whose undelivered orders have gaps",
    "districts whose sum of o_ol_cnt is not their number of lines",
    "orders with a carrier that are undelivered, or without that are not",
    "orders whose o_ol_cnt is not their number of lines",
    "lines with a time of delivery whose order has no carrier, or without whose order has one",
    "warehouses whose w_ytd is not the sum of their payments",
    "districts whose d_ytd is not the sum of their payments",
    "customers whose balance is not what was delivered less what they paid",
    "districts whose orders less undelivered ones are not 2100",
    "customers whose balance and payments are not what was delivered",
];

/// What is asked for: names, and the expression over the parts of the statement.
pub(super) const COLUMNS: [(&str, &str); 28] = [
    ("condition_1", "site.condition_1"),
    ("condition_2", "area.condition_2"),
    ("condition_3", "area.condition_3"),
    ("condition_4", "area.condition_4"),
    ("condition_5", "area.condition_5"),
    ("condition_6", "area.condition_6"),
    ("condition_7", "area.condition_7"),
    ("condition_8", "site.condition_8"),
    ("condition_9", "area.condition_9"),
    ("condition_10", "person.condition_10"),
    ("condition_11", "area.condition_11"),
    ("condition_12", "person.condition_12"),
    ("numbered", "area.numbered"),
    ("orders", "area.orders"),
    ("lines", "area.lines"),
    ("undelivered", "area.undelivered"),
    ("new_lines", "area.new_lines"),
    ("new_quantity", "area.new_quantity"),
    ("new_remote_lines", "area.new_remote_lines"),
    ("payments", "area.payments"),
    ("cents_paid", "area.cents_paid"),
    ("warehouses", "site.warehouses"),
    ("districts", "area.districts"),
    ("customers", "person.customers"),
    ("stocks", "store.stocks"),
    ("stock_orders", "store.orders"),
    ("stock_sold", "store.sold"),
    ("stock_remote", "store.remote"),
];

/// Parts that hold a row for each order, district, warehouse and customer: full joins, so that what has no counterpart is found.
/// A sum over nothing is 0 and no NULL where a condition compares it.
const PARTS: &str = "
line AS (
    SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS lines, count(ol_delivery_d) AS delivered,
        coalesce(sum(ol_amount) FILTER (WHERE ol_delivery_d IS NOT NULL), 0) AS amount,
        coalesce(sum(ol_quantity) FILTER (WHERE ol_o_id > {loaded}), 0) AS quantity,
        count(*) FILTER (WHERE ol_o_id > {loaded} AND ol_supply_w_id <> ol_w_id) AS remote
    FROM order_line WHERE ol_w_id {range} GROUP BY 1, 2, 3),
entry AS MATERIALIZED (
    SELECT w, d, o, c, carrier, c IS NOT NULL AS is_order, coalesce(is_new, false) AS is_new, o_ol_cnt,
        coalesce(lines, 0) AS lines, coalesce(delivered, 0) AS delivered, coalesce(amount, 0) AS amount, quantity, remote
    FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_c_id AS c, o_carrier_id AS carrier, o_ol_cnt
          FROM orders WHERE o_w_id {range}) AS placed
    FULL JOIN line USING (w, d, o)
    FULL JOIN (SELECT no_w_id AS w, no_d_id AS d, no_o_id AS o, true AS is_new
               FROM new_order WHERE no_w_id {range}) AS queued USING (w, d, o)),
queue AS (
    SELECT w, d, coalesce(sum(o_ol_cnt), 0) AS lines_said, sum(lines) AS lines,
        max(o) FILTER (WHERE is_order) AS last, count(*) FILTER (WHERE is_order) AS orders,
        min(o) FILTER (WHERE is_new) AS first_new, max(o) FILTER (WHERE is_new) AS last_new,
        count(*) FILTER (WHERE is_new) AS undelivered,
        count(*) FILTER (WHERE (is_order AND carrier IS NULL) <> is_new) AS condition_5,
        count(*) FILTER (WHERE coalesce(o_ol_cnt, 0) <> lines) AS condition_6,
        sum(CASE WHEN carrier IS NULL THEN delivered ELSE lines - delivered END) AS condition_7,
        coalesce(sum(lines) FILTER (WHERE o > {loaded}), 0) AS new_lines, sum(quantity) AS new_quantity,
        sum(remote) AS new_remote_lines
    FROM entry GROUP BY w, d),
paid AS MATERIALIZED (
    SELECT h_w_id AS w, h_d_id AS d, count(*) AS payments, sum(h_amount) AS amount
    FROM history WHERE h_w_id {range} GROUP BY 1, 2),
place AS MATERIALIZED (SELECT d_w_id AS w, d_id AS d, d_ytd, d_next_o_id FROM district WHERE d_w_id {range}),
area AS (
    SELECT count(*) FILTER (WHERE d_next_o_id - 1 IS DISTINCT FROM last
            OR undelivered > 0 AND d_next_o_id - 1 IS DISTINCT FROM last_new) AS condition_2,
        count(*) FILTER (WHERE undelivered > 0 AND last_new - first_new + 1 <> undelivered) AS condition_3,
        count(*) FILTER (WHERE lines_said IS DISTINCT FROM queue.lines) AS condition_4,
        sum(condition_5) AS condition_5, sum(condition_6) AS condition_6, sum(condition_7) AS condition_7,
        count(*) FILTER (WHERE d_ytd IS DISTINCT FROM coalesce(paid.amount, 0)) AS condition_9,
        count(*) FILTER (WHERE coalesce(orders, 0) - coalesce(undelivered, 0) <> {delivered}) AS condition_11,
        count(d_ytd) AS districts, sum(d_next_o_id) AS numbered, sum(orders) AS orders, sum(queue.lines) AS lines,
        sum(undelivered) AS undelivered, sum(new_lines) AS new_lines, sum(new_quantity) AS new_quantity,
        sum(new_remote_lines) AS new_remote_lines, sum(payments) AS payments, sum(paid.amount) * 100 AS cents_paid
    FROM place FULL JOIN queue USING (w, d) FULL JOIN paid USING (w, d)),
site AS (
    SELECT count(w_ytd) AS warehouses, count(*) FILTER (WHERE w_ytd IS DISTINCT FROM ytd) AS condition_1,
        count(*) FILTER (WHERE w_ytd IS DISTINCT FROM coalesce(amount, 0)) AS condition_8
    FROM (SELECT w_id AS w, w_ytd FROM warehouse WHERE w_id {range}) AS house
    FULL JOIN (SELECT w, sum(d_ytd) AS ytd FROM place GROUP BY w) AS districts USING (w)
    FULL JOIN (SELECT w, sum(amount) AS amount FROM paid GROUP BY w) AS payments USING (w)),
bought AS (SELECT w, d, c, sum(amount) AS amount FROM entry WHERE is_order GROUP BY w, d, c),
spent AS (
    SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS amount
    FROM history WHERE h_c_w_id {range} GROUP BY 1, 2, 3),
person AS (
    SELECT count(c_balance) AS customers,
        count(*) FILTER (WHERE c_balance IS DISTINCT FROM coalesce(bought.amount, 0) - coalesce(spent.amount, 0))
            AS condition_10,
        count(*) FILTER (WHERE c_balance + c_ytd_payment IS DISTINCT FROM coalesce(bought.amount, 0)) AS condition_12
    FROM (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance, c_ytd_payment
          FROM customer WHERE c_w_id {range}) AS buyer
    FULL JOIN bought USING (w, d, c) FULL JOIN spent USING (w, d, c)),
store AS (
    SELECT count(*) AS stocks, sum(s_order_cnt) AS orders, sum(s_ytd) AS sold, sum(s_remote_cnt) AS remote
    FROM stock WHERE s_w_id {range})";

/// The statement for the warehouses from the first to the second number of `range`: a row of [`COLUMNS`].
pub(super) fn statement((from, to): (i64, i64)) -> String {
    let parts = PARTS
        .replace("{range}", &format!("BETWEEN {from} AND {to}"))
        .replace("{loaded}", &ORDERS.to_string())
        .replace("{delivered}", &(ORDERS - UNDELIVERED).to_string());
    let columns = COLUMNS.map(|(name, value)| format!("coalesce({value}, 0)::bigint AS {name}")).join(", ");
    format!("WITH {parts}\nSELECT {columns} FROM area, site, person, store")
}
