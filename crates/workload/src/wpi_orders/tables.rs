//! The nine tables: names, columns, keys and how many rows they have.

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

    /// Its rows in `units`.
    pub(super) const fn rows(self, units: u64) -> u64 {
        match self {
            Self::Customer | Self::CustomerAccount | Self::History => 100 * units,
            Self::Item | Self::Stock => 2 * units,
            Self::Orders | Self::PendingOrder | Self::Payment | Self::Delivery => units,
        }
    }

    /// Its foreign keys: column and table.
    pub(super) const fn references(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Customer | Self::Item => &[],
            Self::Stock => &[("item_number", Self::Item)],
            Self::Delivery => &[("account_number", Self::Customer), ("item_number", Self::Item)],
            _ => &[("account_number", Self::Customer)],
        }
    }
}
