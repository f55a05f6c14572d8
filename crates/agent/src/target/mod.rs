//! What is under test, as a request names it: its kind, and what depends on the kind.
//!
//! The fact that constrains it: requests of earlier fronts name no kind; theirs is a server of PostgreSQL.

mod files;
mod postgresql;
mod prepared;
mod web;

use crate::failure::Failure;
use files::Files;
use plimsoll_probe::Probe;
use plimsoll_probe::{Refusal, Subject};
use plimsoll_record::Summary;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::AnyWorkload;
pub(crate) use postgresql::Postgresql;
pub(crate) use prepared::{Prepared, Wanted};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::path::PathBuf;
use web::OnWeb;

/// `target`. Nobody outside of this room can ask of which kind it is: what depends on that is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Target(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A server that is talked to.
    Postgresql(Postgresql),
    /// A folder, and whoever uses it.
    Files(Files),
    /// A web server, and the folder of its files.
    Web(OnWeb),
}

/// A series by its name in the record.
pub(crate) type Series = (&'static str, Box<dyn Probe>);

const KIND: &str = "kind";
const POSTGRESQL: &str = "postgresql";
const FILES: &str = "files";
const WEB: &str = "web";

fn read<T: DeserializeOwned, E: Error>(fields: Map<String, Value>) -> Result<T, E> {
    let named = |error| E::custom(format!("target.{error}"));
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(named)
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        match fields.remove(KIND) {
            None => read(fields).map(Kind::Postgresql).map(Self),
            Some(kind) if kind == POSTGRESQL => read(fields).map(Kind::Postgresql).map(Self),
            Some(kind) if kind == FILES => read(fields).map(Kind::Files).map(Self),
            Some(kind) if kind == WEB => read(fields).map(Kind::Web).map(Self),
            Some(kind) => {
                let known = format!("\"{POSTGRESQL}\", \"{FILES}\" or \"{WEB}\"");
                Err(Error::custom(format!("target.{KIND}: {kind} is not {known}")))
            }
        }
    }
}

fn no_database(kind: &str) -> Failure {
    Failure::Request(format!("target.{KIND}: this needs a database, and \"{kind}\" has none: give \"{POSTGRESQL}\""))
}

impl Target {
    /// The server, for what needs one.
    pub(crate) fn postgresql(&self) -> Result<&Postgresql, Failure> {
        match &self.0 {
            Kind::Postgresql(server) => Ok(server),
            Kind::Files(_) => Err(no_database(FILES)),
            Kind::Web(_) => Err(no_database(WEB)),
        }
    }

    /// Makes the data of a workload; over so many connections, where there are any.
    pub(crate) fn populate(&self, workload: Box<dyn AnyWorkload>, parallel: u32) -> Result<(), Failure> {
        match &self.0 {
            Kind::Postgresql(server) => server.populate(workload.as_ref(), parallel),
            Kind::Files(files) => files.populate(workload),
            Kind::Web(web) => web.populate(workload),
        }
    }

    /// Opens the sessions of a load.
    pub(crate) fn prepare(&self, wanted: &Wanted<'_>, workload: Box<dyn AnyWorkload>) -> Result<Prepared, Failure> {
        match &self.0 {
            Kind::Postgresql(server) => server.prepare(wanted, workload),
            Kind::Files(files) => files.prepare(wanted, workload),
            Kind::Web(web) => web.prepare(wanted, workload),
        }
    }

    /// Checks what `segments`, whose summaries lie at `paths`, have left of a workload's data.
    pub(crate) fn check(
        &self,
        workload: Box<dyn AnyWorkload>,
        segments: &[Summary],
        paths: &[PathBuf],
    ) -> Result<(), Failure> {
        match &self.0 {
            Kind::Postgresql(server) => server.check(workload.as_ref(), segments, paths),
            Kind::Files(files) => files.check(workload, segments),
            Kind::Web(web) => web.check(workload, segments, paths),
        }
    }

    /// Removes a workload's data.
    pub(crate) fn remove(&self, workload: &dyn AnyWorkload) -> Result<(), Failure> {
        match &self.0 {
            Kind::Postgresql(server) => server.remove(workload),
            Kind::Files(files) => files.remove(),
            Kind::Web(web) => web.remove(),
        }
    }

    /// Its own counters; None if it has none.
    pub(crate) fn series(&self) -> Result<Option<Series>, Failure> {
        match &self.0 {
            Kind::Postgresql(server) => Ok(Some(("server", Box::new(server.series()?)))),
            Kind::Files(_) | Kind::Web(_) => Ok(None),
        }
    }

    /// What so many sessions commit beside their transactions; None where nothing is committed.
    pub(crate) fn commits_beside(&self, mode: Mode, sessions: u64) -> Option<u64> {
        match &self.0 {
            Kind::Postgresql(_) => Some(postgresql::commits_beside(mode, sessions)),
            Kind::Files(_) | Kind::Web(_) => None,
        }
    }

    /// Whether it tells its processes and files itself. A server of PostgreSQL may be elsewhere: probes are told its data
    /// directory.
    pub(crate) fn tells_its_files(&self) -> bool {
        matches!(self.0, Kind::Files(_))
    }

    /// Its processes and files, if it tells them.
    pub(crate) fn subject(&self) -> Option<Result<Subject, Refusal>> {
        match &self.0 {
            Kind::Postgresql(_) | Kind::Web(_) => None,
            Kind::Files(files) => Some(files.subject()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(value: Value) -> Result<Target, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn who_names_no_kind_means_a_server_of_postgresql() {
        let server = json!({"host": "/tmp", "port": 5432, "user": "u", "dbname": "d"});
        let mut named = server.clone();
        named["kind"] = json!("postgresql");
        for value in [server, named] {
            let target = target(value).unwrap();
            let server = target.postgresql().unwrap();
            assert_eq!((server.schema.as_str(), server.dbname.as_str()), ("plimsoll", "d"));
            assert_eq!(target.commits_beside(Mode::Simple, 1), Some(3));
            assert!(!target.tells_its_files());
        }
    }

    #[test]
    fn a_folder_has_no_server_no_series_and_no_commits() {
        let target = target(json!({"kind": "files", "folder": "/tmp"})).unwrap();
        assert!(target.series().unwrap().is_none() && target.tells_its_files());
        assert_eq!(target.commits_beside(Mode::Simple, 1), None);
        let refused = target.postgresql().unwrap_err().to_string();
        assert_eq!(refused, "target.kind: this needs a database, and \"files\" has none: give \"postgresql\"");
    }

    #[test]
    fn wrong_targets_name_the_field() {
        for (value, field) in [
            (json!({"kind": "mail"}), "target.kind: \"mail\" is not"),
            (json!({"kind": "web", "uri": "http://h"}), "uri"),
            (json!({"kind": "files"}), "folder"),
            (json!({"kind": "files", "folder": "/tmp", "port": 1}), "port"),
            (json!({"host": "/tmp", "port": "x", "user": "u", "dbname": "d"}), "target.port: invalid type"),
            (json!({"host": "/tmp", "port": 1, "user": "u"}), "dbname"),
        ] {
            let error = target(value).unwrap_err();
            assert!(error.contains(field), "{error}");
        }
    }
}
