//! What is under test, as a request names it: its kind, and what depends on the kind.
//!
//! The fact that constrains it: requests of earlier fronts name no kind; theirs is a server of PostgreSQL.

mod files;
mod postgresql;

use crate::failure::Failure;
pub(crate) use files::Files;
use plimsoll_probe::Probe;
#[cfg(feature = "bpf")]
use plimsoll_probe::{Refusal, Subject};
use plimsoll_target::postgres::Mode;
pub(crate) use postgresql::Postgresql;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// `target`.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A server that is talked to.
    Postgresql(Postgresql),
    /// A folder, and whoever uses it.
    Files(Files),
}

/// A series by its name in the record.
pub(crate) type Series = (&'static str, Box<dyn Probe>);

const KIND: &str = "kind";
const POSTGRESQL: &str = "postgresql";
const FILES: &str = "files";

fn read<T: DeserializeOwned, E: Error>(fields: Map<String, Value>) -> Result<T, E> {
    let named = |error| E::custom(format!("target.{error}"));
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(named)
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        match fields.remove(KIND) {
            None => read(fields).map(Self::Postgresql),
            Some(kind) if kind == POSTGRESQL => read(fields).map(Self::Postgresql),
            Some(kind) if kind == FILES => read(fields).map(Self::Files),
            Some(kind) => Err(Error::custom(format!("target.{KIND}: {kind} is not \"{POSTGRESQL}\" or \"{FILES}\""))),
        }
    }
}

impl Target {
    /// The server, for what needs one.
    pub(crate) fn postgresql(&self) -> Result<&Postgresql, Failure> {
        match self {
            Self::Postgresql(server) => Ok(server),
            Self::Files(_) => {
                let text =
                    format!("target.{KIND}: this needs a server, and \"{FILES}\" has none: give \"{POSTGRESQL}\"");
                Err(Failure::Request(text))
            }
        }
    }

    /// Its own counters; None if it has none.
    pub(crate) fn series(&self) -> Result<Option<Series>, Failure> {
        match self {
            Self::Postgresql(server) => Ok(Some(("server", Box::new(server.series()?)))),
            Self::Files(_) => Ok(None),
        }
    }

    /// What so many sessions commit beside their transactions; None where nothing is committed.
    pub(crate) fn commits_beside(&self, mode: Mode, sessions: u64) -> Option<u64> {
        match self {
            Self::Postgresql(_) => Some(postgresql::commits_beside(mode, sessions)),
            Self::Files(_) => None,
        }
    }

    /// Whether it tells its processes and files itself. A server of PostgreSQL may be elsewhere: probes are told its data
    /// directory.
    pub(crate) fn tells_its_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// Its processes and files, if it tells them.
    #[cfg(feature = "bpf")]
    pub(crate) fn subject(&self) -> Option<Result<Subject, Refusal>> {
        match self {
            Self::Postgresql(_) => None,
            Self::Files(files) => Some(files.subject()),
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
        assert_eq!(refused, "target.kind: this needs a server, and \"files\" has none: give \"postgresql\"");
    }

    #[test]
    fn wrong_targets_name_the_field() {
        for (value, field) in [
            (json!({"kind": "web"}), "target.kind: \"web\" is not"),
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
