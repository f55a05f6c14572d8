//! A load of web clients on the engine, and what it leaves.

use super::parameters;
use super::server::Server;
use plimsoll_load::{Config, Control, Outcomes, Tables, open_all, run};
use plimsoll_schedule::Schedule;
use plimsoll_session::Opener;
use plimsoll_web::post_log::{self, Sent};
use plimsoll_web::{Address, Trust, Web, WebOpener, acknowledged};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const FIRST_INDEX: u64 = 1_000;
pub(crate) const TRANSACTIONS: u64 = 3_000;

pub(crate) fn config() -> Config {
    Config {
        first_index: FIRST_INDEX,
        transactions: Some(TRANSACTIONS),
        duration_ns: None,
        schedule: Schedule::default(),
        kinds: 5,
        patience_ns: 60_000_000_000,
        reconnect: true,
        rows_max: u64::MAX,
        sample_one_in: 1,
        pin_threads: false,
        own_descriptors: false,
        dealt: Vec::new(),
    }
}

pub(crate) struct Served {
    pub(crate) outcomes: Outcomes,
    pub(crate) totals: BTreeMap<&'static str, i64>,
    folder: tempfile::TempDir,
    web: Arc<Web>,
}

impl Served {
    pub(crate) fn wrong(&self) -> u64 {
        self.outcomes.reports.iter().map(|report| report.verification.wrong).sum()
    }

    /// How many of the requests taken are for a file of each class.
    pub(crate) fn requests_of_classes(&self) -> [i64; 4] {
        let mut counts = [0; 4];
        for index in FIRST_INDEX..self.outcomes.next_index {
            counts[usize::from(self.web.mix().request(index).place.class)] += 1;
        }
        counts
    }

    /// Names of the post log's checks that fail, with what was found.
    pub(crate) fn log_faults(&self, server: &Server) -> Vec<(String, String)> {
        let acknowledged = acknowledged(self.folder.path()).unwrap();
        assert_eq!(acknowledged.len() as i64, self.totals["posts_acknowledged"]);
        let taken = FIRST_INDEX..self.outcomes.next_index;
        let request = |index| self.web.mix().request(index);
        let checks =
            post_log::check(&server.log(), &Sent { taken: &[taken], acknowledged: &acknowledged, request: &request });
        checks.into_iter().filter(|check| !check.ok).map(|check| (check.name, check.found)).collect()
    }
}

pub(crate) fn served(server: &Server, clients: u32, config: &Config, more: Value) -> Served {
    served_at(&server.url(), &Trust::default(), clients, config, more)
}

pub(crate) fn served_at(url: &str, trust: &Trust, clients: u32, config: &Config, more: Value) -> Served {
    let web = Arc::new(Web::new(parameters(more)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let address = Address::of_url(url, trust).unwrap();
    let opener = Arc::new(WebOpener::new(Arc::clone(&web), address, folder.path()).unwrap());
    let as_opener: Arc<dyn Opener> = Arc::clone(&opener) as Arc<dyn Opener>;
    let sessions = open_all(as_opener.as_ref(), clients).unwrap();
    let tables = Tables::create(folder.path()).unwrap();
    let outcomes = run(sessions, &as_opener, config, &Control::new(2), tables).unwrap();
    opener.close().unwrap();
    assert!(outcomes.identity.holds(), "{:?}", outcomes.identity);
    let mut totals = BTreeMap::new();
    for (name, value) in outcomes.reports.iter().flat_map(|report| &report.totals) {
        *totals.entry(*name).or_insert(0) += value;
    }
    Served { outcomes, totals, folder, web }
}
