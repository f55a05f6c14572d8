//! The rows in the form of COPY BINARY or as text, a range of places at a time, as the generator of crate `tpchgen` draws them.
//!
//! The fact that constrains it: the generator begins only at a multiple of an equal part of the table. So places are cut into
//! parts of at most a loader's step; it counts on beyond the last part, which is where the refresh sets come from.

mod encode;
#[cfg(test)]
mod known;

pub(super) use encode::{line, order};

use super::function::Function;
use super::scale::{SUPPLIERS_A_PART, ScaleFactor};
use super::table_id::TableId;
use bytes::{BufMut, BytesMut};
use encode::{Row, Untaken};
use plimsoll_target::postgres::bulk::PLACES_A_STEP;
use std::fmt::Write;
use std::hint::black_box;
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

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

/// The form in which rows are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowForm {
    /// COPY BINARY.
    Binary,
    /// A line of text with `|` between the values, the generator's own without the one that ends it.
    Text,
}

/// Something of the first and the last byte.
fn ends(text: &str) -> u8 {
    let (first, last) = (text.as_bytes().first(), text.as_bytes().last());
    first.map_or(0, |&byte| byte) ^ last.map_or(0, |&byte| byte)
}

impl RowForm {
    /// Appends every one of `rows`.
    pub(super) fn put_all<R: Row>(self, rows: impl Iterator<Item = R>, out: &mut BytesMut) {
        match self {
            Self::Binary => {
                // Comments lie anywhere in the generator's pool of words, so that each row would wait for memory; when they are
                // asked for beforehand, all of them at once, memory fetches many at a time.
                let rows: Vec<R> = rows.collect();
                black_box(rows.iter().fold(0, |seen, row| seen ^ ends(row.comment())));
                rows.iter().for_each(|row| row.put(out));
            }
            Self::Text => rows.for_each(|row| {
                // Room is made as it is needed, so that this cannot fail.
                let _ = write!(out, "{row}");
                out.truncate(out.len() - 1);
                out.put_u8(b'\n');
            }),
        }
    }
}

/// Appends the rows of places `from..to` of `table` in `form`.
pub(super) fn write(scale: ScaleFactor, table: TableId, (from, to): (u64, u64), form: RowForm, out: &mut BytesMut) {
    let (factor, total) = (scale.of_generator(), scale.places(table));
    let (skip, take) = (from as usize, (to - from) as usize);
    let all = cuts(total, from, to);
    match table {
        TableId::Region => form.put_all(RegionGenerator::default().iter().skip(skip).take(take), out),
        TableId::Nation => form.put_all(NationGenerator::default().iter().skip(skip).take(take), out),
        TableId::Supplier => all.for_each(|cut| {
            let rows = SupplierGenerator::new(factor, cut.part, cut.parts).iter();
            form.put_all(rows.skip(cut.skip).take(cut.take), out);
        }),
        TableId::Part => all.for_each(|cut| {
            let rows = PartGenerator::new(factor, cut.part, cut.parts).iter();
            form.put_all(rows.skip(cut.skip).take(cut.take), out);
        }),
        TableId::Partsupp => all.for_each(|cut| {
            let [skip, take] = [cut.skip, cut.take].map(|parts| parts * SUPPLIERS_A_PART as usize);
            let rows = PartSuppGenerator::new(factor, cut.part, cut.parts).iter();
            form.put_all(rows.skip(skip).take(take), out);
        }),
        TableId::Customer => all.for_each(|cut| {
            let rows = CustomerGenerator::new(factor, cut.part, cut.parts).iter();
            form.put_all(rows.skip(cut.skip).take(cut.take), out);
        }),
        TableId::Orders => form.put_all(orders(scale, from, to), out),
        TableId::Lineitem => form.put_all(lines(scale, from, to), out),
        TableId::RefreshSets => form.put_all(Function::ALL.into_iter().skip(skip).take(take).map(Untaken), out),
    }
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
