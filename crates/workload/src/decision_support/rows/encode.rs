//! Each table's row in the form of COPY BINARY.

use crate::decision_support::function::Function;
use crate::decision_support::table_id::TableId;
use bytes::BytesMut;
use plimsoll_target::postgres::{Parameters, put_row};
use std::fmt::Display;
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{Customer, LineItem, Nation, Order, Part, PartSupp, Region, Supplier};

/// Digits after the point of money, and of quantities, discounts and taxes.
const CENTS: u32 = 2;
/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;

/// A row as the generator gives it.
pub(in crate::decision_support) trait Row: Display {
    /// Appends it in the form of COPY BINARY.
    fn put(&self, out: &mut BytesMut);

    /// What of it lies in the generator's pool of words.
    fn comment(&self) -> &str {
        ""
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

impl Row for Region<'_> {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Region), |row| {
            row.integer(self.r_regionkey as i32);
            row.text(self.r_name.as_bytes());
            row.text(self.r_comment.as_bytes());
        });
    }
}

impl Row for Nation<'_> {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Nation), |row| {
            row.integer(self.n_nationkey as i32);
            row.text(self.n_name.as_bytes());
            row.integer(self.n_regionkey as i32);
            row.text(self.n_comment.as_bytes());
        });
    }
}

impl Row for Supplier {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Supplier), |row| {
            row.integer(self.s_suppkey as i32);
            row.displayed(&self.s_name);
            row.displayed(&self.s_address);
            row.integer(self.s_nationkey as i32);
            row.displayed(&self.s_phone);
            money(row, self.s_acctbal);
            row.text(self.s_comment.as_bytes());
        });
    }
}

impl Row for Part<'_> {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Part), |row| {
            row.integer(self.p_partkey as i32);
            row.displayed(&self.p_name);
            row.displayed(&self.p_mfgr);
            row.displayed(&self.p_brand);
            row.text(self.p_type.as_bytes());
            row.integer(self.p_size);
            row.text(self.p_container.as_bytes());
            money(row, self.p_retailprice);
            row.text(self.p_comment.as_bytes());
        });
    }

    fn comment(&self) -> &str {
        self.p_comment
    }
}

impl Row for PartSupp<'_> {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Partsupp), |row| {
            row.integer(self.ps_partkey as i32);
            row.integer(self.ps_suppkey as i32);
            row.integer(self.ps_availqty);
            money(row, self.ps_supplycost);
            row.text(self.ps_comment.as_bytes());
        });
    }

    fn comment(&self) -> &str {
        self.ps_comment
    }
}

impl Row for Customer<'_> {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::Customer), |row| {
            row.integer(self.c_custkey as i32);
            row.displayed(&self.c_name);
            row.displayed(&self.c_address);
            row.integer(self.c_nationkey as i32);
            row.displayed(&self.c_phone);
            money(row, self.c_acctbal);
            row.text(self.c_mktsegment.as_bytes());
            row.text(self.c_comment.as_bytes());
        });
    }

    fn comment(&self) -> &str {
        self.c_comment
    }
}

/// A function that has taken no refresh set.
pub(super) struct Untaken(pub(super) Function);

impl Display for Untaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}|0|", self.0.name())
    }
}

impl Row for Untaken {
    fn put(&self, out: &mut BytesMut) {
        put_row(out, width(TableId::RefreshSets), |row| {
            row.text(self.0.name().as_bytes());
            row.integer(0);
        });
    }
}

impl Row for Order<'_> {
    fn put(&self, out: &mut BytesMut) {
        order(self, self.o_orderkey, out);
    }

    fn comment(&self) -> &str {
        self.o_comment
    }
}

impl Row for LineItem<'_> {
    #[inline]
    fn put(&self, out: &mut BytesMut) {
        line(self, self.l_orderkey, out);
    }

    fn comment(&self) -> &str {
        self.l_comment
    }
}

/// Appends `order` with the key `key`.
pub(in crate::decision_support) fn order(order: &Order<'_>, key: i64, out: &mut BytesMut) {
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
pub(in crate::decision_support) fn line(line: &LineItem<'_>, key: i64, out: &mut BytesMut) {
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
