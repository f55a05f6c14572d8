//! A workload on a folder among the others: its verbs ask for [`AnyWorkload::on_files`].

use crate::any::AnyWorkload;
use crate::data_set::DataSet;
use plimsoll_files::FileWorkload;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A workload on a folder.
pub(crate) struct OnFiles(pub(crate) Arc<dyn FileWorkload>);

impl AnyWorkload for OnFiles {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn data(&self) -> Option<&dyn DataSet> {
        None
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        self.0.facts()
    }

    fn kinds(&self) -> Vec<String> {
        self.0.kinds()
    }

    fn has_transactions(&self) -> bool {
        true
    }

    fn on_files(self: Box<Self>) -> Option<Arc<dyn FileWorkload>> {
        Some(self.0)
    }
}
