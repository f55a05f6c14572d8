//! The rows in the form of COPY BINARY, a range of places at a time, as the generator of crate `tpchgen` draws them.
//!
//! The fact that constrains it: the generator begins only at a multiple of an equal part of the table. So places are cut into
//! parts of at most a loader's step; it counts on beyond the last part, which is where the refresh sets come from.

use super::refresh::Function;
use super::scale::ScaleFactor;
use super::tables::TableId;
use bytes::BytesMut;
use plimsoll_target::postgres::bulk::PLACES_A_STEP;
use plimsoll_target::postgres::{Parameters, put_row};
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order, OrderGenerator, Part,
    PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};

/// Digits after the point of money, and of quantities, discounts and taxes.
const CENTS: u32 = 2;
/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;

/// Places of a table that lie in one part of it, and how the generator comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// The part, counted from 1.
    part: i32,
    /// Into how many equal parts the table is cut.
    parts: i32,
    /// Places to pass over.
    skip: usize,
    /// Places to take.
    take: usize,
    /// The first place taken.
    from: u64,
}

/// Cuts places `from..to` of a table of `total` along its parts. A number of parts that have exactly `n` places each can be found
/// if there are at least n (n + 1) places.
fn cuts(total: u64, from: u64, to: u64) -> impl Iterator<Item = Cut> {
    let places = if total >= PLACES_A_STEP * (PLACES_A_STEP + 1) {
        PLACES_A_STEP
    } else {
        (1..PLACES_A_STEP).take_while(|n| n * (n + 1) <= total).last().unwrap_or(1)
    };
    let part_of = move |place: u64| place / places;
    let last = if from < to { part_of(to - 1) + 1 } else { part_of(from) };
    (part_of(from)..last).map(move |part| {
        let (start, end) = (part * places, (part + 1) * places);
        let first = from.max(start);
        Cut {
            part: part as i32 + 1,
            parts: (total / places) as i32,
            skip: (first - start) as usize,
            take: (to.min(end) - first) as usize,
            from: first,
        }
    })
}

/// The orders at places `from..to`, in order.
pub(super) fn orders(scale: ScaleFactor, from: u64, to: u64) -> impl Iterator<Item = Order<'static>> {
    let of = move |cut: Cut| {
        let generator = OrderGenerator::new(scale.of_generator(), cut.part, cut.parts);
        generator.iter().skip(cut.skip).take(cut.take)
    };
    cuts(scale.orders(), from, to).flat_map(of)
}

/// The lines of the orders at places `from..to`, in order.
pub(super) fn lines(scale: ScaleFactor, from: u64, to: u64) -> impl Iterator<Item = LineItem<'static>> {
    let of = move |cut: Cut| {
        let generator = LineItemGenerator::new(scale.of_generator(), cut.part, cut.parts);
        let key = |place: u64| OrderGenerator::make_order_key(place as i64 + 1);
        let (first, end) = (key(cut.from), key(cut.from + cut.take as u64));
        generator.iter().skip_while(move |line| line.l_orderkey < first).take_while(move |line| line.l_orderkey < end)
    };
    cuts(scale.orders(), from, to).flat_map(of)
}

/// Appends the rows of places `from..to` of `table`.
pub(super) fn write(scale: ScaleFactor, table: TableId, from: u64, to: u64, out: &mut BytesMut) {
    let (factor, total) = (scale.of_generator(), scale.places(table));
    let (skip, take) = (from as usize, (to - from) as usize);
    let all = cuts(total, from, to);
    match table {
        TableId::Region => RegionGenerator::default().iter().skip(skip).take(take).for_each(|row| region(&row, out)),
        TableId::Nation => NationGenerator::default().iter().skip(skip).take(take).for_each(|row| nation(&row, out)),
        TableId::Supplier => all.for_each(|cut| {
            let rows = SupplierGenerator::new(factor, cut.part, cut.parts).iter();
            rows.skip(cut.skip).take(cut.take).for_each(|row| supplier(&row, out));
        }),
        TableId::Part => all.for_each(|cut| {
            let rows = PartGenerator::new(factor, cut.part, cut.parts).iter();
            rows.skip(cut.skip).take(cut.take).for_each(|row| part(&row, out));
        }),
        TableId::Partsupp => all.for_each(|cut| {
            let [skip, take] = [cut.skip, cut.take].map(|parts| parts * super::scale::SUPPLIERS_A_PART as usize);
            let rows = PartSuppGenerator::new(factor, cut.part, cut.parts).iter();
            rows.skip(skip).take(take).for_each(|row| partsupp(&row, out));
        }),
        TableId::Customer => all.for_each(|cut| {
            let rows = CustomerGenerator::new(factor, cut.part, cut.parts).iter();
            rows.skip(cut.skip).take(cut.take).for_each(|row| customer(&row, out));
        }),
        TableId::Orders => orders(scale, from, to).for_each(|row| order(&row, row.o_orderkey, out)),
        TableId::Lineitem => lines(scale, from, to).for_each(|row| line(&row, row.l_orderkey, out)),
        TableId::RefreshSets => Function::ALL[skip..skip + take].iter().for_each(|&function| untaken(function, out)),
    }
}

/// Columns of `table`, as the form wants them.
fn width(table: TableId) -> u16 {
    table.columns().len() as u16
}

fn money(row: &mut Parameters<'_>, value: TPCHDecimal) {
    row.numeric(value.into_inner(), CENTS);
}

fn date(row: &mut Parameters<'_>, date: TPCHDate) {
    row.date(date.to_unix_epoch() - DAYS_TO_2000);
}

fn region(region: &Region<'_>, out: &mut BytesMut) {
    put_row(out, width(TableId::Region), |row| {
        row.integer(region.r_regionkey as i32);
        row.text(region.r_name.as_bytes());
        row.text(region.r_comment.as_bytes());
    });
}

fn nation(nation: &Nation<'_>, out: &mut BytesMut) {
    put_row(out, width(TableId::Nation), |row| {
        row.integer(nation.n_nationkey as i32);
        row.text(nation.n_name.as_bytes());
        row.integer(nation.n_regionkey as i32);
        row.text(nation.n_comment.as_bytes());
    });
}

fn supplier(supplier: &Supplier, out: &mut BytesMut) {
    put_row(out, width(TableId::Supplier), |row| {
        row.integer(supplier.s_suppkey as i32);
        row.displayed(&supplier.s_name);
        row.displayed(&supplier.s_address);
        row.integer(supplier.s_nationkey as i32);
        row.displayed(&supplier.s_phone);
        money(row, supplier.s_acctbal);
        row.text(supplier.s_comment.as_bytes());
    });
}

fn part(part: &Part<'_>, out: &mut BytesMut) {
    put_row(out, width(TableId::Part), |row| {
        row.integer(part.p_partkey as i32);
        row.displayed(&part.p_name);
        row.displayed(&part.p_mfgr);
        row.displayed(&part.p_brand);
        row.text(part.p_type.as_bytes());
        row.integer(part.p_size);
        row.text(part.p_container.as_bytes());
        money(row, part.p_retailprice);
        row.text(part.p_comment.as_bytes());
    });
}

fn partsupp(partsupp: &PartSupp<'_>, out: &mut BytesMut) {
    put_row(out, width(TableId::Partsupp), |row| {
        row.integer(partsupp.ps_partkey as i32);
        row.integer(partsupp.ps_suppkey as i32);
        row.integer(partsupp.ps_availqty);
        money(row, partsupp.ps_supplycost);
        row.text(partsupp.ps_comment.as_bytes());
    });
}

fn customer(customer: &Customer<'_>, out: &mut BytesMut) {
    put_row(out, width(TableId::Customer), |row| {
        row.integer(customer.c_custkey as i32);
        row.displayed(&customer.c_name);
        row.displayed(&customer.c_address);
        row.integer(customer.c_nationkey as i32);
        row.displayed(&customer.c_phone);
        money(row, customer.c_acctbal);
        row.text(customer.c_mktsegment.as_bytes());
        row.text(customer.c_comment.as_bytes());
    });
}

/// No refresh set was taken by `function`.
fn untaken(function: Function, out: &mut BytesMut) {
    put_row(out, width(TableId::RefreshSets), |row| {
        row.text(function.name().as_bytes());
        row.integer(0);
    });
}

/// Appends `order` with the key `key`.
pub(super) fn order(order: &Order<'_>, key: i64, out: &mut BytesMut) {
    put_row(out, width(TableId::Orders), |row| {
        row.bigint(key);
        row.integer(order.o_custkey as i32);
        row.text(order.o_orderstatus.as_str().as_bytes());
        money(row, order.o_totalprice);
        date(row, order.o_orderdate);
        row.text(order.o_orderpriority.as_bytes());
        row.displayed(&order.o_clerk);
        row.integer(order.o_shippriority);
        row.text(order.o_comment.as_bytes());
    });
}

/// Appends `line` with the order key `key`.
#[inline]
pub(super) fn line(line: &LineItem<'_>, key: i64, out: &mut BytesMut) {
    put_row(out, width(TableId::Lineitem), |row| {
        row.bigint(key);
        row.integer(line.l_partkey as i32);
        row.integer(line.l_suppkey as i32);
        row.integer(line.l_linenumber);
        row.numeric(100 * line.l_quantity, CENTS);
        money(row, line.l_extendedprice);
        money(row, line.l_discount);
        money(row, line.l_tax);
        row.text(line.l_returnflag.as_bytes());
        row.text(line.l_linestatus.as_bytes());
        date(row, line.l_shipdate);
        date(row, line.l_commitdate);
        date(row, line.l_receiptdate);
        row.text(line.l_shipinstruct.as_bytes());
        row.text(line.l_shipmode.as_bytes());
        row.text(line.l_comment.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(value: f64) -> ScaleFactor {
        ScaleFactor::new(value).unwrap()
    }

    /// Cuts are what the generator makes of their parts.
    #[test]
    fn cuts_hold_every_place_once() {
        for total in [5_u64, 100, 2_000, 15_000, 65_791, 65_792, 66_000, 1_500_000] {
            for (from, to) in [(0, total), (total / 3, total / 2), (total, total + 1_000), (7, 7)] {
                let mut next = from;
                for cut in cuts(total, from, to) {
                    let places = total as i64 / i64::from(cut.parts);
                    let start = places * i64::from(cut.part - 1) + cut.skip as i64;
                    assert_eq!((start as u64, cut.from), (next, next), "{total}: {cut:?}");
                    assert!(cut.skip + cut.take <= places as usize && cut.take > 0, "{total}: {cut:?}");
                    next += cut.take as u64;
                }
                assert_eq!(next, to, "{total}: {from}..{to}");
            }
        }
    }

    #[test]
    fn orders_and_lines_are_those_of_the_whole_table() {
        let scale = scale(0.05);
        let whole: Vec<_> = OrderGenerator::new(0.05, 1, 1).iter().collect();
        let whole_lines: Vec<_> = LineItemGenerator::new(0.05, 1, 1).iter().collect();
        for (from, to) in [(0, 300), (255, 257), (40_000, 41_111), (74_990, 75_000)] {
            let part = &whole[from..to];
            assert_eq!(orders(scale, from as u64, to as u64).collect::<Vec<_>>(), part);
            let keys = part[0].o_orderkey..=part[part.len() - 1].o_orderkey;
            let of_part: Vec<_> = whole_lines.iter().filter(|line| keys.contains(&line.l_orderkey)).cloned().collect();
            assert_eq!(lines(scale, from as u64, to as u64).collect::<Vec<_>>(), of_part);
            assert_eq!(super::super::scale::lines(from as u64, to as u64), of_part.len() as u64);
        }
    }
}
