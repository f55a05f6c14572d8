//! A workload as an object, whatever it is: what the agent's verbs ask of it.

use crate::conversation::ConversationOpener;
use crate::data_set::DataSet;
use crate::decision_support::{self, DecisionSupport};
use crate::workload::{LedgerComparison, Statement, Workload};
use plimsoll_files::FileWorkload;
use plimsoll_session::Opener;
use plimsoll_target::postgres::{Address, Client, Error, Protocol};
use plimsoll_web::Web;
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

    /// Itself as a workload on a folder; `None` if it is one on a server.
    fn on_files(self: Box<Self>) -> Option<Arc<dyn FileWorkload>> {
        None
    }

    /// Itself as the workload on a web server; `None` if it is none.
    fn on_web(self: Box<Self>) -> Option<Arc<Web>> {
        None
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
