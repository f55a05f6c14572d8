//! Rows of scale factor 1 against answers that are known: numbers and sums by flag, by discount and by priority, which together
//! hang on most columns of orders and lines. They are added up as the queries do, but exactly and without a server.

use crate::decision_support::queries::answer;
use crate::decision_support::rows::{lines, orders};
use crate::decision_support::scale::ScaleFactor;
use std::collections::BTreeMap;
use std::ops::Range;
use tpchgen::generators::{LineItem, Order};

/// Days since 1970-01-01, the second beyond the last: the third quarter of 1993, 1994, and up to 1998-09-02.
const QUARTER: Range<i32> = 8_582..8_674;
const YEAR: Range<i32> = 8_766..9_131;
const SHIPPED: Range<i32> = 0..10_472;

/// What queries 1, 4 and 6 add up, in the smallest units that occur: quantities, cents, hundredths of cents and so on.
#[derive(Default)]
struct Sums {
    /// By flag and status: quantity, price, discounted price, charge, lines.
    pricing: BTreeMap<(&'static str, &'static str), [i128; 5]>,
    /// Orders by priority.
    late: BTreeMap<&'static str, i128>,
    revenue: i128,
}

impl Sums {
    fn add_line(&mut self, line: &LineItem<'static>) {
        let [price, discount, tax] = [line.l_extendedprice, line.l_discount, line.l_tax].map(|one| i128::from(one.0));
        let (shipped, quantity) = (line.l_shipdate.to_unix_epoch(), line.l_quantity);
        if YEAR.contains(&shipped) && (5..=7).contains(&discount) && quantity < 24 {
            self.revenue += price * discount;
        }
        if SHIPPED.contains(&shipped) {
            let discounted = price * (100 - discount);
            let found = [i128::from(quantity), price, discounted, discounted * (100 + tax), 1];
            let sums = self.pricing.entry((line.l_returnflag, line.l_linestatus)).or_default();
            sums.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
    }

    fn add_order(&mut self, order: &Order<'static>, is_late: bool) {
        if is_late && QUARTER.contains(&order.o_orderdate.to_unix_epoch()) {
            *self.late.entry(order.o_orderpriority).or_default() += 1;
        }
    }
}

/// `sum` with `digits` after the point as it is printed, with two of them.
fn printed(sum: i128, digits: u32) -> String {
    let unit = 10_i128.pow(digits - 2);
    let cents = (sum + unit / 2) / unit;
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// The first columns of the known answer to `query`.
fn known<const COLUMNS: usize>(query: u32, columns: [usize; COLUMNS]) -> Vec<[String; COLUMNS]> {
    let rows = answer(query).unwrap().rows.into_iter();
    rows.map(|row| columns.map(|column| row[column].trim().to_owned())).collect()
}

#[test]
fn numbers_and_sums_at_scale_factor_1_are_the_known_ones() {
    let scale = ScaleFactor::new(1.0).unwrap();
    let (mut sums, mut count) = (Sums::default(), 0_u64);
    let mut lines = lines(scale, 0, scale.orders()).peekable();
    for order in orders(scale, 0, scale.orders()) {
        let mut is_late = false;
        while let Some(line) = lines.next_if(|line| line.l_orderkey == order.o_orderkey) {
            is_late |= line.l_commitdate < line.l_receiptdate;
            sums.add_line(&line);
            count += 1;
        }
        sums.add_order(&order, is_late);
    }
    assert!(lines.next().is_none(), "a line without its order");
    assert_eq!(count, 6_001_215);
    let pricing = sums.pricing.into_iter().map(|((flag, status), [quantity, price, discounted, charge, lines])| {
        let [flag, status] = [flag, status].map(str::to_owned);
        let quantity = format!("{quantity}.00");
        [flag, status, quantity, printed(price, 2), printed(discounted, 4), printed(charge, 6), lines.to_string()]
    });
    assert_eq!(pricing.collect::<Vec<_>>(), known(1, [0, 1, 2, 3, 4, 5, 9]));
    let late: Vec<_> =
        sums.late.into_iter().map(|(priority, orders)| [priority.to_owned(), orders.to_string()]).collect();
    assert_eq!(late, known(4, [0, 1]));
    assert_eq!([[printed(sums.revenue, 4)]], *known(6, [0]));
}
