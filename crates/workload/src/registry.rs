//! The workloads there are, by name. A new one is named here.

use crate::any::AnyWorkload;
use crate::bank::Bank;
use crate::decision_support::{self, DecisionSupport};
use crate::on_files::OnFiles;
use crate::on_web::OnWeb;
use crate::order_entry::OrderEntry;
use crate::script::Scripts;
use crate::workload::Workload;
use crate::wpi_orders::WpiOrders;
use plimsoll_files::{FileServing, FileWorkload, Mix, RawStorage, SequentialIo};
use plimsoll_target::postgres::Mode;
use plimsoll_web::Web;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Makes a workload of its own part of a request; the mode is how its statements will be sent.
type Make = fn(&Value, Mode) -> Result<Box<dyn AnyWorkload>, String>;

/// A workload's name, and how it is made.
type Listed = (&'static str, Make);

/// All of them, by name.
const REGISTRY: [Listed; 10] = [
    (Bank::NAME, |value, _| made(Bank::new(&parameters(value)?))),
    (decision_support::NAME, |value, _| made(DecisionSupport::new(&parameters(value)?))),
    (FileServing::NAME, |value, _| on_files(FileServing::new(&parameters(value)?))),
    (Mix::NAME, |value, _| on_files(Mix::new(&parameters(value)?))),
    (OrderEntry::NAME, |value, _| made(OrderEntry::new(&parameters(value)?))),
    (RawStorage::NAME, |value, _| on_files(RawStorage::new(&parameters(value)?))),
    (Scripts::NAME, |value, mode| made(Scripts::new(&parameters(value)?, mode))),
    (SequentialIo::NAME, |value, _| on_files(SequentialIo::new(&parameters(value)?))),
    (Web::NAME, |value, _| {
        made(Web::new(parameters(value)?).map(|web| OnWeb(Arc::new(web))).map_err(|error| format!("workload.{error}")))
    }),
    (WpiOrders::NAME, |value, _| made(WpiOrders::new(&parameters(value)?))),
];

fn made<W: AnyWorkload + 'static>(workload: Result<W, String>) -> Result<Box<dyn AnyWorkload>, String> {
    workload.map(|workload| Box::new(workload) as Box<dyn AnyWorkload>)
}

/// A workload on a folder.
fn on_files<W: FileWorkload + 'static>(workload: Result<W, String>) -> Result<Box<dyn AnyWorkload>, String> {
    workload.map(|workload| Box::new(OnFiles(Arc::new(workload))) as Box<dyn AnyWorkload>)
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
    use crate::data_set::DataSet;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

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
