//! The workloads that a request can name; a new one is added here and nowhere else.

use crate::failure::Failure;
use plimsoll_target::postgres::{Client, Mode};
use plimsoll_workload::bank::{self, Bank};
use plimsoll_workload::decision_support::{self, DecisionSupport};
use plimsoll_workload::order_entry::{self, Compared, OrderEntry};
use plimsoll_workload::script::{self, Scripts};
use plimsoll_workload::wpi_orders::{self, WpiOrders};
use plimsoll_workload::{DataSet, Statement, Workload};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

const KNOWN: [&str; 5] = [bank::NAME, decision_support::NAME, order_entry::NAME, script::NAME, wpi_orders::NAME];

/// A workload that a request names.
pub(crate) enum Chosen {
    /// pgbench's tables and transactions.
    Bank(Bank),
    /// The decision-support workload of DBT-3.
    DecisionSupport(DecisionSupport),
    /// The order-entry workload derived from TPC-C.
    OrderEntry(Box<OrderEntry>),
    /// pgbench script files.
    Script(Scripts),
    /// The order-entry workload of the WPI and EMC study.
    WpiOrders(WpiOrders),
}

/// Does something with a workload whose type is known only when the request is.
pub(crate) trait Use {
    /// What comes of it.
    type Outcome;

    /// Does it with `workload`.
    fn of<W: Workload + 'static>(self, workload: W) -> Self::Outcome;
}

impl Chosen {
    /// Reads `value`; `mode` is how statements will be sent.
    pub(crate) fn from_request(value: &Value, mode: Mode) -> Result<Self, Failure> {
        match value.get("name").and_then(Value::as_str).unwrap_or_default() {
            bank::NAME => Bank::new(&parameters(value)?).map(Self::Bank),
            decision_support::NAME => DecisionSupport::new(&parameters(value)?).map(Self::DecisionSupport),
            order_entry::NAME => OrderEntry::new(&parameters(value)?).map(Box::new).map(Self::OrderEntry),
            script::NAME => Scripts::new(&parameters(value)?, mode).map(Self::Script),
            wpi_orders::NAME => WpiOrders::new(&parameters(value)?).map(Self::WpiOrders),
            name => Err(format!("workload.name: \"{name}\" is not known; known: {}", KNOWN.join(", "))),
        }
        .map_err(Failure::Request)
    }

    /// Hands the workload to `what`, if it has transactions.
    pub(crate) fn into_use<U: Use>(self, what: U) -> Result<U::Outcome, Failure> {
        match self {
            Self::Bank(bank) => Ok(what.of(bank)),
            Self::DecisionSupport(_) => Err(self.without_transactions()),
            Self::OrderEntry(orders) => Ok(what.of(*orders)),
            Self::Script(scripts) => Ok(what.of(scripts)),
            Self::WpiOrders(orders) => Ok(what.of(orders)),
        }
    }

    /// Refuses one whose work is not a mix of transactions.
    pub(crate) fn must_have_transactions(&self) -> Result<(), Failure> {
        match self {
            Self::DecisionSupport(_) => Err(self.without_transactions()),
            Self::Bank(_) | Self::OrderEntry(_) | Self::Script(_) | Self::WpiOrders(_) => Ok(()),
        }
    }

    /// The tables of decision_support, for verbs that only it knows.
    pub(crate) fn decision_support(&self) -> Result<&DecisionSupport, Failure> {
        match self {
            Self::DecisionSupport(tables) => Ok(tables),
            Self::Bank(_) | Self::OrderEntry(_) | Self::Script(_) | Self::WpiOrders(_) => Err(Failure::Request(
                format!("workload.name: {}: only {} can do this", self.name(), decision_support::NAME),
            )),
        }
    }

    fn without_transactions(&self) -> Failure {
        Failure::Request(format!("workload.name: {} has no transactions to load a server with", self.name()))
    }

    /// The workload's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bank(_) => bank::NAME,
            Self::DecisionSupport(_) => decision_support::NAME,
            Self::OrderEntry(_) => order_entry::NAME,
            Self::Script(_) => script::NAME,
            Self::WpiOrders(_) => wpi_orders::NAME,
        }
    }

    /// The tables that are its own; `None` if it works on whatever is there.
    pub(crate) fn data(&self) -> Option<&dyn DataSet> {
        match self {
            Self::Bank(bank) => Some(bank),
            Self::DecisionSupport(tables) => Some(tables),
            Self::OrderEntry(orders) => Some(orders.as_ref()),
            Self::Script(_) => None,
            Self::WpiOrders(orders) => Some(orders),
        }
    }

    /// The same, for verbs that need them.
    pub(crate) fn own_data(&self) -> Result<&dyn DataSet, Failure> {
        let none = || Failure::Request(format!("workload.name: {} has no tables of its own", self.name()));
        self.data().ok_or_else(none)
    }

    /// Names of the kinds of transaction.
    pub(crate) fn kinds(&self) -> Vec<String> {
        match self {
            Self::Bank(bank) => bank.kinds(),
            Self::DecisionSupport(_) => Vec::new(),
            Self::OrderEntry(orders) => orders.kinds(),
            Self::Script(scripts) => scripts.kinds(),
            Self::WpiOrders(orders) => orders.kinds(),
        }
    }

    /// The statements that are sent.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        match self {
            Self::Bank(bank) => bank.statements(),
            Self::DecisionSupport(_) => Vec::new(),
            Self::OrderEntry(orders) => orders.statements(),
            Self::Script(scripts) => scripts.statements(),
            Self::WpiOrders(orders) => orders.statements(),
        }
    }

    /// What of the workload belongs to its results beside its request.
    pub(crate) fn facts(&self) -> BTreeMap<String, Value> {
        match self {
            Self::DecisionSupport(tables) => tables.facts(),
            Self::OrderEntry(orders) => orders.facts(),
            Self::Bank(_) | Self::Script(_) | Self::WpiOrders(_) => BTreeMap::new(),
        }
    }

    /// Whether its users pause, which only a closed loop lets them.
    pub(crate) fn is_paced(&self) -> bool {
        matches!(self, Self::OrderEntry(orders) if orders.is_paced())
    }

    /// Compares the ledgers beside `summaries` with the tables in the search path; `None` if there is no ledger.
    pub(crate) fn compare_ledgers(
        &self,
        client: &mut Client,
        summaries: &[PathBuf],
    ) -> Result<Option<Compared>, Failure> {
        let Self::OrderEntry(_) = self else { return Ok(None) };
        let beside = |summary: &PathBuf| summary.with_file_name(order_entry::LEDGER_FILE);
        let ledgers: Vec<PathBuf> = summaries.iter().map(beside).filter(|ledger| ledger.exists()).collect();
        if ledgers.is_empty() {
            return Ok(None);
        }
        order_entry::compare(client, &ledgers).map(Some).map_err(|error| Failure::Target(error.to_string()))
    }

    /// Makes sure that `schema` holds the workload's data. What is asked is one transaction, so that the server's count of
    /// commits can be foretold.
    pub(crate) fn recognise(&self, client: &mut Client, schema: &str) -> Result<(), Failure> {
        let Some(data) = self.data() else { return Ok(()) };
        client.run("BEGIN")?;
        data.recognise(client, schema)?;
        Ok(client.run("COMMIT")?)
    }
}

/// The workload's own part of a request; the error names the field.
fn parameters<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(value).map_err(|error| Failure::Request(format!("workload.{error}")))
}
