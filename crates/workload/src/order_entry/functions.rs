//! The five transactions as functions inside the server (PL/pgSQL): one call each, with the effects of the client's statements.
//!
//! They are made when the data is loaded, whatever side runs later, so one data set serves both. A call stands between BEGIN and
//! COMMIT in one round trip; only New-Order needs a second one, for its client decides whether to commit.

use super::answers::{Replies, Values, timestamp_us};
use super::numbers::last_name;
use super::rows::Rows;
use super::scale::{DISTRICTS, LINES_MAX, ORDERS};
use super::statements::{BEGIN, CALLS as FIRST_CALL, COMMIT, ROLLBACK};
use super::transactions::new_order::{Line, NewOrder};
use super::transactions::stock_level::judge_count;
use super::transactions::{Plan, Site, Wanted};
use crate::workload::{Expect, Next, RoundTrip};
use plimsoll_target::postgres::{Connection, Parameters};

/// The definitions, one statement each.
pub(super) fn statements() -> Vec<String> {
    [NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL].map(str::to_owned).to_vec()
}

const NEW_ORDER: &str = "\
CREATE FUNCTION order_entry_new_order(the_warehouse integer, the_district integer, the_customer integer, items integer[],
    supplies integer[], quantities integer[], OUT new_order_id integer, OUT entered timestamp, OUT last_name text,
    OUT credit text, OUT discount numeric, OUT warehouse_tax numeric, OUT district_tax numeric, OUT total numeric,
    OUT is_valid boolean)
LANGUAGE plpgsql AS $$
DECLARE
    price numeric;
    item_data text;
    stock_data text;
    info text;
    quantity integer;
BEGIN
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = the_warehouse AND d_id = the_district
        RETURNING d_next_o_id - 1, d_tax INTO STRICT new_order_id, district_tax;
    SELECT c_last, c_credit, c_discount, w_tax INTO STRICT last_name, credit, discount, warehouse_tax
        FROM customer, warehouse
        WHERE c_w_id = the_warehouse AND c_d_id = the_district AND c_id = the_customer AND w_id = the_warehouse;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (the_warehouse, the_district, new_order_id, the_customer, now(), NULL, cardinality(items),
            CASE WHEN the_warehouse = ALL (supplies) THEN 1 ELSE 0 END)
        RETURNING o_entry_d INTO entered;
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (the_warehouse, the_district, new_order_id);
    total := 0;
    is_valid := true;
    FOR line IN 1..cardinality(items) LOOP
        SELECT i_price, i_data INTO price, item_data FROM item WHERE i_id = items[line];
        IF NOT FOUND THEN
            is_valid := false;
            EXIT;
        END IF;
        quantity := quantities[line];
        UPDATE stock SET s_quantity = s_quantity - quantity + CASE WHEN s_quantity >= quantity + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN supplies[line] = the_warehouse THEN 0 ELSE 1 END
            WHERE s_w_id = supplies[line] AND s_i_id = items[line]
            RETURNING s_data, CASE the_district WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07
                WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO STRICT stock_data, info;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
            ol_amount, ol_dist_info)
            VALUES (the_warehouse, the_district, new_order_id, line, items[line], supplies[line], NULL, quantity,
                price * quantity, info);
        total := total + price * quantity;
    END LOOP;
    total := total * (1 - discount) * (1 + warehouse_tax + district_tax);
END
$$";

const PAYMENT: &str = "\
CREATE FUNCTION order_entry_payment(the_warehouse integer, the_district integer, of_warehouse integer, of_district integer,
    the_customer integer, the_name text, amount numeric, OUT customer_id integer, OUT paid timestamp, OUT last_name text,
    OUT credit text, OUT balance numeric, OUT data text)
LANGUAGE plpgsql AS $$
DECLARE
    ids integer[];
    warehouse_name text;
    district_name text;
BEGIN
    customer_id := the_customer;
    IF customer_id IS NULL THEN
        SELECT array_agg(c_id ORDER BY c_first) INTO ids FROM customer
            WHERE c_w_id = of_warehouse AND c_d_id = of_district AND c_last = the_name;
        customer_id := ids[(cardinality(ids) + 1) / 2];
    END IF;
    UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC' THEN left(concat(customer_id, ' ', of_district, ' ', of_warehouse, ' ',
            the_district, ' ', the_warehouse, ' ', amount, ' ') || c_data, 500) ELSE c_data END
        WHERE c_w_id = of_warehouse AND c_d_id = of_district AND c_id = customer_id
        RETURNING c_last, c_credit, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END
        INTO STRICT last_name, credit, balance, data;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = the_warehouse AND d_id = the_district
        RETURNING d_name INTO STRICT district_name;
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = the_warehouse RETURNING w_name INTO STRICT warehouse_name;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (customer_id, of_district, of_warehouse, the_district, the_warehouse, now(), amount,
            warehouse_name || '    ' || district_name)
        RETURNING h_date INTO paid;
END
$$";

const ORDER_STATUS: &str = "\
CREATE FUNCTION order_entry_order_status(the_warehouse integer, the_district integer, the_customer integer, the_name text,
    OUT customer_id integer, OUT last_name text, OUT balance numeric, OUT order_id integer, OUT lines integer,
    OUT lines_found integer, OUT items integer[], OUT amounts numeric[])
LANGUAGE plpgsql AS $$
DECLARE
    ids integer[];
BEGIN
    customer_id := the_customer;
    IF customer_id IS NULL THEN
        SELECT array_agg(c_id ORDER BY c_first) INTO ids FROM customer
            WHERE c_w_id = the_warehouse AND c_d_id = the_district AND c_last = the_name;
        customer_id := ids[(cardinality(ids) + 1) / 2];
    END IF;
    SELECT c_last, c_balance INTO STRICT last_name, balance FROM customer
        WHERE c_w_id = the_warehouse AND c_d_id = the_district AND c_id = customer_id;
    SELECT o_id, o_ol_cnt INTO STRICT order_id, lines FROM orders
        WHERE o_w_id = the_warehouse AND o_d_id = the_district AND o_c_id = customer_id ORDER BY o_id DESC LIMIT 1;
    SELECT count(*), array_agg(ol_i_id), array_agg(ol_amount) INTO lines_found, items, amounts FROM order_line
        WHERE ol_w_id = the_warehouse AND ol_d_id = the_district AND ol_o_id = order_id;
END
$$";

const DELIVERY: &str = "\
CREATE FUNCTION order_entry_delivery(the_warehouse integer, the_carrier integer, OUT delivered integer)
LANGUAGE plpgsql AS $$
DECLARE
    the_order integer;
    the_customer integer;
    amount numeric;
BEGIN
    delivered := 0;
    FOR the_district IN 1..10 LOOP
        DELETE FROM new_order WHERE no_w_id = the_warehouse AND no_d_id = the_district AND no_o_id =
            (SELECT no_o_id FROM new_order WHERE no_w_id = the_warehouse AND no_d_id = the_district
            ORDER BY no_o_id LIMIT 1 FOR UPDATE)
            RETURNING no_o_id INTO the_order;
        CONTINUE WHEN NOT FOUND;
        UPDATE orders SET o_carrier_id = the_carrier
            WHERE o_w_id = the_warehouse AND o_d_id = the_district AND o_id = the_order
            RETURNING o_c_id INTO STRICT the_customer;
        WITH stamped AS (UPDATE order_line SET ol_delivery_d = now()
            WHERE ol_w_id = the_warehouse AND ol_d_id = the_district AND ol_o_id = the_order RETURNING ol_amount)
            SELECT sum(ol_amount) INTO amount FROM stamped;
        UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = the_warehouse AND c_d_id = the_district AND c_id = the_customer;
        delivered := delivered + 1;
    END LOOP;
END
$$";

const STOCK_LEVEL: &str = "\
CREATE FUNCTION order_entry_stock_level(the_warehouse integer, the_district integer, threshold integer, OUT low integer)
LANGUAGE plpgsql AS $$
DECLARE
    next_order integer;
BEGIN
    SELECT d_next_o_id INTO STRICT next_order FROM district WHERE d_w_id = the_warehouse AND d_id = the_district;
    SELECT count(DISTINCT s_i_id) INTO low FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id
        WHERE ol_w_id = the_warehouse AND ol_d_id = the_district AND ol_o_id >= next_order - 20 AND ol_o_id < next_order
        AND s_quantity < threshold;
END
$$";

/// Queues the next round trip of a transaction by function.
pub(super) fn next(plan: &Plan, replies: &mut Replies, to: &mut Connection) -> Next {
    let is_new_order = matches!(plan, Plan::NewOrder(_));
    let trip = |statements, commits| Next::RoundTrip(RoundTrip { statements, expect: Expect::Judged, commits });
    let step = replies.step;
    replies.sent();
    match step {
        0 => {
            to.queue_statement(BEGIN, |_| {});
            to.queue_statement(FIRST_CALL + plan.kind() as usize, |values| put(plan, values));
            if !is_new_order {
                to.queue_statement(COMMIT, |_| {});
            }
            trip(1, !is_new_order)
        }
        1 if is_new_order => {
            to.queue_statement(if replies.invalid_item { ROLLBACK } else { COMMIT }, |_| {});
            trip(0, !replies.invalid_item)
        }
        _ => Next::Complete,
    }
}

fn put(plan: &Plan, values: &mut Parameters<'_>) {
    let mut numbers = |all: &[i32]| all.iter().for_each(|&number| values.integer(number));
    match plan {
        Plan::NewOrder(order) => {
            numbers(&[order.site.warehouse, order.site.district, order.customer]);
            let columns: [fn(&Line) -> i32; 3] = [|line| line.item, |line| line.supply, |line| line.quantity];
            for of in columns {
                let mut column = [0; LINES_MAX as usize];
                order.lines().iter().zip(&mut column).for_each(|(line, value)| *value = of(line));
                values.integer_array(&column[..order.lines().len()]);
            }
        }
        Plan::Payment(payment) => {
            let (site, of) = (payment.site, payment.of);
            numbers(&[site.warehouse, site.district, of.warehouse, of.district]);
            put_wanted(payment.wanted, values);
            values.numeric(payment.cents, 2);
        }
        Plan::OrderStatus(status) => {
            numbers(&[status.site.warehouse, status.site.district]);
            put_wanted(status.wanted, values);
        }
        Plan::Delivery(delivery) => numbers(&[delivery.warehouse, delivery.carrier]),
        Plan::StockLevel(level) => numbers(&[level.site.warehouse, level.site.district, level.threshold]),
    }
}

fn put_wanted(wanted: Wanted, values: &mut Parameters<'_>) {
    match wanted {
        Wanted::Number(number) => {
            values.integer(number);
            values.null();
        }
        Wanted::Name(name) => {
            values.null();
            values.text(last_name(name.into()).as_bytes());
        }
    }
}

/// Hears of the row that a call gives.
pub(super) fn row(plan: &Plan, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
    match plan {
        Plan::NewOrder(order) => hear_new_order(order, rows, replies, values),
        Plan::Payment(payment) => {
            replies.customer = replies.needs(values.integer(), "the customer's number");
            replies.made_us = replies.needs(values.text().and_then(timestamp_us), "the payment's time");
            payment.wanted.judge(rows, payment.of, values.text(), replies);
        }
        Plan::OrderStatus(status) => {
            replies.customer = replies.needs(values.integer(), "the customer's number");
            status.wanted.judge(rows, status.site, values.text(), replies);
            let (_balance, order) = (values.text(), values.integer());
            let (lines, found) = (values.integer(), values.integer());
            replies.must(lines.is_some() && lines == found, || {
                format!("{found:?} lines of order {order:?} and not {lines:?}")
            });
        }
        Plan::Delivery(_) => {
            let count = replies.needs(values.integer(), "the count of delivered orders");
            replies.must((0..=DISTRICTS).contains(&count.into()), || format!("{count} orders delivered"));
            // Which districts they were of is not said; only how many counts from here on.
            let delivered = replies.delivered.iter_mut().take(count.unsigned_abs() as usize);
            delivered.for_each(|district| *district = Some(Default::default()));
        }
        Plan::StockLevel(_) => judge_count(replies, values.integer()),
    }
}

fn hear_new_order(order: &NewOrder, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
    let Site { warehouse, district } = order.site;
    replies.order = replies.needs(values.integer(), "the order's number");
    let number = replies.order;
    replies.must(i64::from(number) > ORDERS, || format!("order {number} is one of those that were loaded"));
    replies.made_us = replies.needs(values.text().and_then(timestamp_us), "the order's time");
    let customer = rows.customer(warehouse.into(), district.into(), order.customer.into());
    let taxes = [rows.warehouse(warehouse.into()).tax, rows.district(warehouse.into(), district.into()).tax];
    let credit: &[u8] = if customer.is_bad_credit { b"BC" } else { b"GC" };
    let loaded = values.text() == Some(last_name(customer.last).as_bytes())
        && values.text() == Some(credit)
        && values.scaled(4) == Some(customer.discount)
        && values.scaled(4) == Some(taxes[0])
        && values.scaled(4) == Some(taxes[1]);
    replies.must(loaded, || format!("customer {} of {:?} is not as loaded", order.customer, order.site));
    let known = &order.lines()[..order.lines().len() - usize::from(order.rolls_back())];
    let cents: i64 = known.iter().map(|line| rows.item(line.item.into()).price() * i64::from(line.quantity)).sum();
    // In units of 10^-10: cents, and two factors with four decimals.
    let total = cents * (10_000 - customer.discount) * (10_000 + taxes[0] + taxes[1]);
    replies.must(values.scaled(10) == Some(total), || format!("order {number}: another total than of its lines"));
    replies.invalid_item = values.text() == Some(b"f");
    let right = replies.invalid_item == order.rolls_back();
    replies
        .must(right, || format!("order {number}: an item that does not exist was found, or one that exists was not"));
}

/// Hears that a statement was answered; the call gives one row.
pub(super) fn completed(replies: &mut Replies, count: Option<i64>) {
    if (replies.step, replies.statement) == (1, 1) {
        replies.must(count == Some(1), || format!("{count:?} rows of a call"));
    }
    replies.statement += 1;
}
