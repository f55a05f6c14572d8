//! The nine tables: names, columns, keys and references (clause 1.3 of TPC-C 5.11).

/// A table; its number is its place in [`TableId::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TableId {
    Warehouse,
    District,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
    Stock,
    Item,
}

type Columns = &'static [(&'static str, &'static str)];

const NAME: &str = "varchar(10)";
const STREET: &str = "varchar(20)";
const STATE: &str = "varchar(2)";
const ZIP: &str = "varchar(9)";
const RATE: &str = "numeric(4,4)";
const SUM: &str = "numeric(18,2)";
const INFO: &str = "varchar(24)";
const DATA: &str = "varchar(50)";
const INTEGER: &str = "integer";
const TIME: &str = "timestamp";

impl TableId {
    /// All tables.
    pub(super) const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
        Self::Stock,
        Self::Item,
    ];

    /// The table's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
            Self::Stock => "stock",
            Self::Item => "item",
        }
    }

    /// Columns and their types, in order.
    pub(super) const fn columns(self) -> Columns {
        match self {
            Self::Warehouse => &[
                ("w_id", INTEGER),
                ("w_name", NAME),
                ("w_street_1", STREET),
                ("w_street_2", STREET),
                ("w_city", STREET),
                ("w_state", STATE),
                ("w_zip", ZIP),
                ("w_tax", RATE),
                ("w_ytd", SUM),
            ],
            Self::District => &[
                ("d_id", INTEGER),
                ("d_w_id", INTEGER),
                ("d_name", NAME),
                ("d_street_1", STREET),
                ("d_street_2", STREET),
                ("d_city", STREET),
                ("d_state", STATE),
                ("d_zip", ZIP),
                ("d_tax", RATE),
                ("d_ytd", SUM),
                ("d_next_o_id", INTEGER),
            ],
            Self::Customer => &[
                ("c_id", INTEGER),
                ("c_d_id", INTEGER),
                ("c_w_id", INTEGER),
                ("c_first", "varchar(16)"),
                ("c_middle", "varchar(2)"),
                ("c_last", "varchar(16)"),
                ("c_street_1", STREET),
                ("c_street_2", STREET),
                ("c_city", STREET),
                ("c_state", STATE),
                ("c_zip", ZIP),
                ("c_phone", "varchar(16)"),
                ("c_since", TIME),
                ("c_credit", "varchar(2)"),
                ("c_credit_lim", "numeric(12,2)"),
                ("c_discount", RATE),
                ("c_balance", SUM),
                ("c_ytd_payment", SUM),
                ("c_payment_cnt", INTEGER),
                ("c_delivery_cnt", INTEGER),
                ("c_data", "varchar(500)"),
            ],
            Self::History => &[
                ("h_c_id", INTEGER),
                ("h_c_d_id", INTEGER),
                ("h_c_w_id", INTEGER),
                ("h_d_id", INTEGER),
                ("h_w_id", INTEGER),
                ("h_date", TIME),
                ("h_amount", "numeric(6,2)"),
                ("h_data", "varchar(24)"),
            ],
            Self::Orders => &[
                ("o_id", INTEGER),
                ("o_d_id", INTEGER),
                ("o_w_id", INTEGER),
                ("o_c_id", INTEGER),
                ("o_entry_d", TIME),
                ("o_carrier_id", INTEGER),
                ("o_ol_cnt", INTEGER),
                ("o_all_local", INTEGER),
            ],
            Self::NewOrder => &[("no_o_id", INTEGER), ("no_d_id", INTEGER), ("no_w_id", INTEGER)],
            Self::OrderLine => &[
                ("ol_o_id", INTEGER),
                ("ol_d_id", INTEGER),
                ("ol_w_id", INTEGER),
                ("ol_number", INTEGER),
                ("ol_i_id", INTEGER),
                ("ol_supply_w_id", INTEGER),
                ("ol_delivery_d", TIME),
                ("ol_quantity", INTEGER),
                ("ol_amount", "numeric(6,2)"),
                ("ol_dist_info", INFO),
            ],
            Self::Stock => &[
                ("s_i_id", INTEGER),
                ("s_w_id", INTEGER),
                ("s_quantity", INTEGER),
                ("s_dist_01", INFO),
                ("s_dist_02", INFO),
                ("s_dist_03", INFO),
                ("s_dist_04", INFO),
                ("s_dist_05", INFO),
                ("s_dist_06", INFO),
                ("s_dist_07", INFO),
                ("s_dist_08", INFO),
                ("s_dist_09", INFO),
                ("s_dist_10", INFO),
                ("s_ytd", INTEGER),
                ("s_order_cnt", INTEGER),
                ("s_remote_cnt", INTEGER),
                ("s_data", DATA),
            ],
            Self::Item => &[
                ("i_id", INTEGER),
                ("i_im_id", INTEGER),
                ("i_name", "varchar(24)"),
                ("i_price", "numeric(5,2)"),
                ("i_data", DATA),
            ],
        }
    }

    /// Columns of the primary key; none: no key.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Warehouse => "w_id",
            Self::District => "d_w_id, d_id",
            Self::Customer => "c_w_id, c_d_id, c_id",
            Self::History => "",
            Self::Orders => "o_w_id, o_d_id, o_id",
            Self::NewOrder => "no_w_id, no_d_id, no_o_id",
            Self::OrderLine => "ol_w_id, ol_d_id, ol_o_id, ol_number",
            Self::Stock => "s_w_id, s_i_id",
            Self::Item => "i_id",
        }
    }

    /// The other index: its name and columns.
    pub(super) const fn index(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Customer => Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
            Self::Orders => Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
            _ => None,
        }
    }

    /// Foreign keys: columns, and the table whose primary key they name.
    pub(super) const fn references(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Warehouse | Self::Item => &[],
            Self::District => &[("d_w_id", Self::Warehouse)],
            Self::Customer => &[("c_w_id, c_d_id", Self::District)],
            Self::History => &[("h_c_w_id, h_c_d_id, h_c_id", Self::Customer), ("h_w_id, h_d_id", Self::District)],
            Self::Orders => &[("o_w_id, o_d_id, o_c_id", Self::Customer)],
            Self::NewOrder => &[("no_w_id, no_d_id, no_o_id", Self::Orders)],
            Self::OrderLine => &[("ol_w_id, ol_d_id, ol_o_id", Self::Orders), ("ol_supply_w_id, ol_i_id", Self::Stock)],
            Self::Stock => &[("s_w_id", Self::Warehouse), ("s_i_id", Self::Item)],
        }
    }

    pub(super) const fn may_be_null(column: &str) -> bool {
        matches!(column.as_bytes(), b"o_carrier_id" | b"ol_delivery_d")
    }
}
