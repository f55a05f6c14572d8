//! A load of a web server: its clients open.

use super::OnWeb;
use crate::failure::Failure;
use crate::target::prepared::{Prepared, Wanted};
use crate::workload::on_web;
use plimsoll_load::{open_all, raise_descriptor_limit, run};
use plimsoll_session::Opener;
use plimsoll_web::{Web, WebOpener};
use plimsoll_workload::AnyWorkload;
use std::sync::Arc;

/// Descriptors of a client: while it connects anew the connection before is still open.
const DESCRIPTORS: u32 = 2;

impl OnWeb {
    /// Opens the sessions of a load.
    pub(in crate::target) fn prepare(
        &self,
        wanted: &Wanted<'_>,
        workload: Box<dyn AnyWorkload>,
    ) -> Result<Prepared, Failure> {
        let facts = workload.facts();
        let web = on_web(workload)?;
        let address = self.address()?;
        raise_descriptor_limit(wanted.clients.saturating_mul(DESCRIPTORS))
            .map_err(|error| Failure::Target(error.to_string()))?;
        let opener = WebOpener::new(web, address, wanted.out);
        let opener =
            opener.map_err(|error| Failure::Record(format!("a file of the workload cannot be written: {error}")))?;
        let opener = Arc::new(opener);
        let sessions = open_all(opener.as_ref(), wanted.clients)?;
        let reopens: Arc<dyn Opener> = Arc::clone(&opener) as Arc<dyn Opener>;
        Ok(Prepared {
            name: Web::NAME,
            kinds: Web::kinds(),
            facts,
            threads: wanted.threads,
            counts_commits: false,
            start: Box::new(move |config, control, tables| run(sessions, &reopens, config, control, tables)),
            conclude: Box::new(move || opener.close().map_err(Failure::Record)),
        })
    }
}
