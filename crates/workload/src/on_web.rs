//! The workload on a web server among the others: its verbs ask for [`AnyWorkload::on_web`].

use crate::any::AnyWorkload;
use crate::data_set::DataSet;
use plimsoll_web::Web;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The workload on a web server.
pub(crate) struct OnWeb(pub(crate) Arc<Web>);

impl AnyWorkload for OnWeb {
    fn name(&self) -> &'static str {
        Web::NAME
    }

    fn data(&self) -> Option<&dyn DataSet> {
        None
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        self.0.facts().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    fn kinds(&self) -> Vec<String> {
        Web::kinds()
    }

    fn has_transactions(&self) -> bool {
        true
    }

    fn on_web(self: Box<Self>) -> Option<Arc<Web>> {
        Some(self.0)
    }
}
