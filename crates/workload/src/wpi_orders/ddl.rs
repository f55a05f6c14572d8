//! The nine tables, their keys and every index, in one place.
//!
//! The only indexes are the nine primary keys. Foreign-key columns have none: nothing is ever deleted and no key is ever
//! changed, so nothing would use them, and the study's tables had primary and foreign keys only.

use super::size;
use crate::data_set::{Job, Making};
use plimsoll_target::postgres::bulk::{Filling, Table};

/// A table; its number is its place in [`TableId::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TableId {
    /// Name, address, telephone, credit information.
    Customer,
    /// Balance.
    CustomerAccount,
    /// Total spent, first and last order date; updated by new orders.
    History,
    /// Name, description, cost.
    Item,
    /// Quantity, manufacturer's cost.
    Stock,
    /// Dates, item list and quantities.
    Orders,
    /// Total spent, current items; new orders insert here.
    PendingOrder,
    /// Amount and date; payments insert here.
    Payment,
    /// Times of arrival and departure; deliveries insert here.
    Delivery,
}

/// Room that is left on each page of `history`, per cent filled. A new order updates one row there and no indexed column of
/// it, so with room on the page the new version stays there and the index is not touched (heap-only tuple).
pub(super) const HISTORY_FILLFACTOR: u64 = 90;

type Columns = &'static [(&'static str, &'static str)];

impl TableId {
    /// All tables.
    pub const ALL: [Self; 9] = [
        Self::Customer,
        Self::CustomerAccount,
        Self::History,
        Self::Item,
        Self::Stock,
        Self::Orders,
        Self::PendingOrder,
        Self::Payment,
        Self::Delivery,
    ];

    /// The table's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::CustomerAccount => "customer_account",
            Self::History => "history",
            Self::Item => "item",
            Self::Stock => "stock",
            Self::Orders => "orders",
            Self::PendingOrder => "pending_order",
            Self::Payment => "payment",
            Self::Delivery => "delivery",
        }
    }

    /// Columns and their types, in order; the first is the primary key.
    pub const fn columns(self) -> Columns {
        match self {
            Self::Customer => &[
                ("account_number", "bigint"),
                ("name", "text"),
                ("address", "text"),
                ("telephone", "text"),
                ("credit_information", "text"),
            ],
            Self::CustomerAccount => &[("account_number", "bigint"), ("balance", "bigint")],
            Self::History => &[
                ("account_number", "bigint"),
                ("total_spent", "bigint"),
                ("first_order_date", "date"),
                ("last_order_date", "date"),
            ],
            Self::Item => &[("item_number", "bigint"), ("name", "text"), ("description", "text"), ("cost", "bigint")],
            Self::Stock => &[("item_number", "bigint"), ("quantity", "integer"), ("manufacturer_cost", "bigint")],
            Self::Orders => &[
                ("order_number", "bigint"),
                ("account_number", "bigint"),
                ("order_date", "date"),
                ("ship_date", "date"),
                ("items", "bigint[]"),
                ("quantities", "integer[]"),
            ],
            Self::PendingOrder => &[
                ("order_number", "bigint"),
                ("account_number", "bigint"),
                ("total_spent", "bigint"),
                ("current_items", "bigint[]"),
                ("order_date", "date"),
            ],
            Self::Payment => &[
                ("payment_number", "bigint"),
                ("account_number", "bigint"),
                ("amount", "bigint"),
                ("paid_date", "date"),
            ],
            Self::Delivery => &[
                ("shipping_number", "bigint"),
                ("account_number", "bigint"),
                ("item_number", "bigint"),
                ("estimated_arrival", "timestamp"),
                ("estimated_departure", "timestamp"),
                ("actual_arrival", "timestamp"),
                ("actual_departure", "timestamp"),
                ("address", "text"),
                ("name", "text"),
            ],
        }
    }

    const fn references(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Customer | Self::Item => &[],
            Self::Stock => &[("item_number", Self::Item)],
            Self::Delivery => &[("account_number", Self::Customer), ("item_number", Self::Item)],
            _ => &[("account_number", Self::Customer)],
        }
    }
}

/// How `table` is made and how large it becomes.
fn table(table: TableId, units: u64) -> Table {
    let columns: Vec<String> = table.columns().iter().map(|(name, kind)| format!("{name} {kind} NOT NULL")).collect();
    let fillfactor = match table {
        TableId::History => format!(" WITH (fillfactor = {HISTORY_FILLFACTOR})"),
        _ => String::new(),
    };
    let name = table.name();
    let create = format!("CREATE TABLE {name} ({}){fillfactor}", columns.join(", "));
    Table {
        places: size::rows(table, units),
        estimated_bytes: size::table_bytes(table, units),
        ..Table::whole(name, create, Filling::WithCreation)
    }
}

/// How the nine tables are made. Foreign keys are added without their check first, so that the checks can run side by side.
pub(super) fn making(units: u64) -> Making {
    let key = |table: TableId| {
        let (name, column) = (table.name(), table.columns()[0].0);
        Job::new(name, format!("ALTER TABLE {name} ADD PRIMARY KEY ({column})"))
    };
    let mut making = Making {
        tables: TableId::ALL.map(|id| table(id, units)).to_vec(),
        vacuumed: TableId::ALL.map(|table| table.name().to_owned()).to_vec(),
        keys: TableId::ALL.map(key).to_vec(),
        ..Making::default()
    };
    for (table, (column, other)) in
        TableId::ALL.into_iter().flat_map(|table| table.references().iter().map(move |key| (table, key)))
    {
        let (name, other) = (table.name(), other.name());
        let constraint = format!("{name}_{column}_fkey");
        making.foreign_keys.push(format!(
            "ALTER TABLE {name} ADD CONSTRAINT {constraint} FOREIGN KEY ({column}) REFERENCES {other} NOT VALID"
        ));
        making.validations.push(Job::new(name, format!("ALTER TABLE {name} VALIDATE CONSTRAINT {constraint}")));
    }
    making
}
