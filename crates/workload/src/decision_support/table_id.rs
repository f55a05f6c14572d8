//! The eight tables and one of our own: names, columns, primary keys.

/// A table; its number is its place in [`TableId::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TableId {
    Region,
    Nation,
    Supplier,
    Part,
    Partsupp,
    Customer,
    Orders,
    Lineitem,
    RefreshSets,
}

type Columns = &'static [(&'static str, &'static str)];

impl TableId {
    pub(super) const ALL: [Self; 9] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Part,
        Self::Partsupp,
        Self::Customer,
        Self::Orders,
        Self::Lineitem,
        Self::RefreshSets,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Customer => "customer",
            Self::Orders => "orders",
            Self::Lineitem => "lineitem",
            Self::RefreshSets => "refresh_sets",
        }
    }

    /// Columns and their types, in order; none may be NULL.
    pub(super) const fn columns(self) -> Columns {
        match self {
            Self::Region => &[("r_regionkey", "integer"), ("r_name", "char(25)"), ("r_comment", "varchar(152)")],
            Self::Nation => &[
                ("n_nationkey", "integer"),
                ("n_name", "char(25)"),
                ("n_regionkey", "integer"),
                ("n_comment", "varchar(152)"),
            ],
            Self::Supplier => &[
                ("s_suppkey", "integer"),
                ("s_name", "char(25)"),
                ("s_address", "varchar(40)"),
                ("s_nationkey", "integer"),
                ("s_phone", "char(15)"),
                ("s_acctbal", "numeric(15,2)"),
                ("s_comment", "varchar(101)"),
            ],
            Self::Part => &[
                ("p_partkey", "integer"),
                ("p_name", "varchar(55)"),
                ("p_mfgr", "char(25)"),
                ("p_brand", "char(10)"),
                ("p_type", "varchar(25)"),
                ("p_size", "integer"),
                ("p_container", "char(10)"),
                ("p_retailprice", "numeric(15,2)"),
                ("p_comment", "varchar(23)"),
            ],
            Self::Partsupp => &[
                ("ps_partkey", "integer"),
                ("ps_suppkey", "integer"),
                ("ps_availqty", "integer"),
                ("ps_supplycost", "numeric(15,2)"),
                ("ps_comment", "varchar(199)"),
            ],
            Self::Customer => &[
                ("c_custkey", "integer"),
                ("c_name", "varchar(25)"),
                ("c_address", "varchar(40)"),
                ("c_nationkey", "integer"),
                ("c_phone", "char(15)"),
                ("c_acctbal", "numeric(15,2)"),
                ("c_mktsegment", "char(10)"),
                ("c_comment", "varchar(117)"),
            ],
            Self::Orders => &[
                ("o_orderkey", "bigint"),
                ("o_custkey", "integer"),
                ("o_orderstatus", "char(1)"),
                ("o_totalprice", "numeric(15,2)"),
                ("o_orderdate", "date"),
                ("o_orderpriority", "char(15)"),
                ("o_clerk", "char(15)"),
                ("o_shippriority", "integer"),
                ("o_comment", "varchar(79)"),
            ],
            Self::Lineitem => &[
                ("l_orderkey", "bigint"),
                ("l_partkey", "integer"),
                ("l_suppkey", "integer"),
                ("l_linenumber", "integer"),
                ("l_quantity", "numeric(15,2)"),
                ("l_extendedprice", "numeric(15,2)"),
                ("l_discount", "numeric(15,2)"),
                ("l_tax", "numeric(15,2)"),
                ("l_returnflag", "char(1)"),
                ("l_linestatus", "char(1)"),
                ("l_shipdate", "date"),
                ("l_commitdate", "date"),
                ("l_receiptdate", "date"),
                ("l_shipinstruct", "char(25)"),
                ("l_shipmode", "char(10)"),
                ("l_comment", "varchar(44)"),
            ],
            Self::RefreshSets => &[("function", "char(3)"), ("taken", "integer")],
        }
    }

    /// Columns of the primary key, and bytes of an entry of it.
    pub(super) const fn key(self) -> (&'static str, u64) {
        match self {
            Self::Region => ("r_regionkey", 4),
            Self::Nation => ("n_nationkey", 4),
            Self::Supplier => ("s_suppkey", 4),
            Self::Part => ("p_partkey", 4),
            Self::Partsupp => ("ps_partkey, ps_suppkey", 8),
            Self::Customer => ("c_custkey", 4),
            Self::Orders => ("o_orderkey", 8),
            Self::Lineitem => ("l_orderkey, l_linenumber", 12),
            Self::RefreshSets => ("function", 4),
        }
    }
}
