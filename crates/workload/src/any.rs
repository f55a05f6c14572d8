//! A workload as an object, whatever it is: what the agent's verbs ask of it. A new one is named here.

use crate::bank::Bank;
use crate::conversation::ConversationOpener;
use crate::data_set::DataSet;
use crate::decision_support::{self, DecisionSupport};
use crate::order_entry::OrderEntry;
use crate::script::Scripts;
use crate::workload::{LedgerComparison, Statement, Workload};
use crate::wpi_orders::WpiOrders;
use plimsoll_session::Opener;
use plimsoll_target::postgres::{Address, Client, Error, Mode, Protocol};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Any workload.
pub trait AnyWorkload {
    /// What requests and records call it.
    fn name(&self) -> &'static str;

    /// The tables that are its own; `None` if it works on whatever is there.
    fn data(&self) -> Option<&dyn DataSet>;

    /// What belongs to the results beside the request.
    fn facts(&self) -> BTreeMap<String, Value>;

    /// Names of the kinds of transaction.
    fn kinds(&self) -> Vec<String> {
        Vec::new()
    }

    /// The statements that are sent, for people.
    fn statements(&self) -> Vec<Statement> {
        Vec::new()
    }

    /// Whether it is a mix of transactions; else verbs of its own perform it.
    fn has_transactions(&self) -> bool {
        false
    }

    /// Whether its users pause, which only a closed loop lets them.
    fn is_paced(&self) -> bool {
        false
    }

    /// As [`Workload::record_in`] has it.
    ///
    /// # Errors
    /// When a file cannot be made there.
    fn record_in(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Opens connections that perform its transactions, as [`ConversationOpener::new`] has it; `None` if it has none.
    ///
    /// # Errors
    /// When a statement cannot be sent at all.
    fn into_opener(
        self: Box<Self>,
        _to: &Address,
        _by: Protocol,
        _retries: u32,
    ) -> Result<Option<Arc<dyn Opener>>, Error> {
        Ok(None)
    }

    /// As [`Workload::compare_ledgers`] has it.
    ///
    /// # Errors
    /// When a file of the segments or the server cannot be read.
    fn compare_ledgers(&self, _: &mut Client, _: &[PathBuf]) -> Result<Option<LedgerComparison>, String> {
        Ok(None)
    }

    /// For verbs that perform the tests of decision support and nothing else.
    fn decision_support(&self) -> Option<&DecisionSupport> {
        None
    }
}

impl<W: Workload + 'static> AnyWorkload for W {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn data(&self) -> Option<&dyn DataSet> {
        Workload::data(self)
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        Workload::facts(self)
    }

    fn kinds(&self) -> Vec<String> {
        Workload::kinds(self)
    }

    fn statements(&self) -> Vec<Statement> {
        Workload::statements(self)
    }

    fn has_transactions(&self) -> bool {
        true
    }

    fn is_paced(&self) -> bool {
        Workload::is_paced(self)
    }

    fn record_in(&mut self, folder: &Path) -> io::Result<()> {
        Workload::record_in(self, folder)
    }

    fn into_opener(
        self: Box<Self>,
        to: &Address,
        by: Protocol,
        retries: u32,
    ) -> Result<Option<Arc<dyn Opener>>, Error> {
        Ok(Some(Arc::new(ConversationOpener::new(to, Arc::new(*self), by, retries)?)))
    }

    fn compare_ledgers(&self, client: &mut Client, summaries: &[PathBuf]) -> Result<Option<LedgerComparison>, String> {
        Workload::compare_ledgers(self, client, summaries)
    }
}

impl AnyWorkload for DecisionSupport {
    fn name(&self) -> &'static str {
        decision_support::NAME
    }

    fn data(&self) -> Option<&dyn DataSet> {
        Some(self)
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        DecisionSupport::facts(self)
    }

    fn decision_support(&self) -> Option<&DecisionSupport> {
        Some(self)
    }
}

/// Makes a workload of its own part of a request; the mode is how its statements will be sent.
type Make = fn(&Value, Mode) -> Result<Box<dyn AnyWorkload>, String>;

/// A workload's name, and how it is made.
type Listed = (&'static str, Make);

/// All of them, by name.
const REGISTRY: [Listed; 5] = [
    (Bank::NAME, |value, _| made(Bank::new(&parameters(value)?))),
    (decision_support::NAME, |value, _| made(DecisionSupport::new(&parameters(value)?))),
    (OrderEntry::NAME, |value, _| made(OrderEntry::new(&parameters(value)?))),
    (Scripts::NAME, |value, mode| made(Scripts::new(&parameters(value)?, mode))),
    (WpiOrders::NAME, |value, _| made(WpiOrders::new(&parameters(value)?))),
];

fn made<W: AnyWorkload + 'static>(workload: Result<W, String>) -> Result<Box<dyn AnyWorkload>, String> {
    workload.map(|workload| Box::new(workload) as Box<dyn AnyWorkload>)
}

fn parameters<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| format!("workload.{error}"))
}

/// The workload that `value` names and describes; `mode` is how its statements will be sent.
///
/// # Errors
/// A sentence that names the field.
pub fn workload_of(value: &Value, mode: Mode) -> Result<Box<dyn AnyWorkload>, String> {
    listed_in(&REGISTRY, value, mode)
}

fn listed_in(registry: &[Listed], value: &Value, mode: Mode) -> Result<Box<dyn AnyWorkload>, String> {
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
    let known = || registry.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let unknown = || format!("workload.name: \"{name}\" is not known; known: {}", known());
    let (_, make) = registry.iter().find(|(of, _)| *of == name).ok_or_else(unknown)?;
    make(value, mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Toy {
        #[serde(rename = "name")]
        _name: String,
        blocks: u64,
    }

    impl AnyWorkload for Toy {
        fn name(&self) -> &'static str {
            "toy"
        }

        fn data(&self) -> Option<&dyn DataSet> {
            None
        }

        fn facts(&self) -> BTreeMap<String, Value> {
            BTreeMap::from([("blocks".to_owned(), self.blocks.into())])
        }
    }

    #[test]
    fn a_workload_is_added_by_a_line_of_the_list() {
        let registry: [Listed; 2] = [REGISTRY[0], ("toy", |value, _| made(parameters::<Toy>(value)))];
        let listed = |value| listed_in(&registry, &value, Mode::Simple);
        let toy = listed(json!({"name": "toy", "blocks": 7})).unwrap();
        assert_eq!((toy.name(), &toy.facts()["blocks"]), ("toy", &json!(7)));
        assert!(toy.data().is_none() && !toy.has_transactions(), "what it does not say, it has not");
        assert!(listed(json!({"name": "bank", "scale": 1, "seed": 1})).unwrap().has_transactions());
        let wrong = listed(json!({"name": "toy", "blocks": -1})).err().unwrap();
        assert!(wrong.starts_with("workload.blocks: "), "{wrong}");
        assert_eq!(
            listed(json!({"name": "toi"})).err().unwrap(),
            "workload.name: \"toi\" is not known; known: bank, toy"
        );
    }
}
