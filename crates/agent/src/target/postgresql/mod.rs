//! A server of PostgreSQL: how it is reached, its series, and what it commits beside a load.

mod data;
mod load;

use crate::failure::Failure;
use plimsoll_probe::postgres::Counters;
use plimsoll_target::postgres::{Address, Mode, quoted};
use serde::Deserialize;

/// The server, and where in it the data is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Postgresql {
    host: String,
    port: u16,
    user: String,
    #[serde(default)]
    password: Option<String>,
    pub(crate) dbname: String,
    #[serde(default = "default_admin_dbname")]
    admin_dbname: String,
    #[serde(default = "default_schema")]
    pub(crate) schema: String,
}

fn default_admin_dbname() -> String {
    "postgres".to_owned()
}

fn default_schema() -> String {
    "plimsoll".to_owned()
}

impl Postgresql {
    /// The database under test, without a search path.
    pub(crate) fn address(&self) -> Result<Address, Failure> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let name = &self.schema;
        if !begins(name) || !name.chars().all(allowed) || name.len() > 63 || name.starts_with("pg_") {
            let allowed = "lower-case letters, digits and _, at most 63, not beginning with a digit or pg_";
            return Err(Failure::Request(format!("target.schema: \"{name}\" is not allowed; allowed: {allowed}")));
        }
        Ok(Address {
            host: self.host.clone(),
            port: self.port,
            user: self.user.clone(),
            password: self.password.clone(),
            database: self.dbname.clone(),
            settings: Vec::new(),
        })
    }

    /// The database under test, inside the schema.
    pub(crate) fn address_in_schema(&self) -> Result<Address, Failure> {
        Ok(self.address()?.with_settings([("search_path", quoted(&self.schema).as_str())]))
    }

    /// The database from which counters are read.
    fn admin_address(&self) -> Result<Address, Failure> {
        Ok(self.address()?.with_database(&self.admin_dbname))
    }

    /// The server's own counters.
    pub(super) fn series(&self) -> Result<Counters, Failure> {
        Ok(Counters::open(&self.admin_address()?, &self.dbname)?)
    }
}

/// What sessions commit beside the load: PostgreSQL opens a transaction of its own as a backend starts; preparing the
/// statements is one more, since it is one request; and the session that looks at the data before the load asks in one.
pub(super) fn commits_beside(mode: Mode, sessions: u64) -> u64 {
    let each = if mode == Mode::Prepared { 2 } else { 1 };
    each * sessions + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(schema: &str) -> Postgresql {
        let target = json!({"host": "/tmp", "port": 5432, "user": "u", "dbname": "d", "schema": schema});
        serde_json::from_value(target).unwrap()
    }

    #[test]
    fn schemas_that_are_not_ours_to_name_are_refused() {
        assert!(target("plimsoll_2").address().is_ok());
        for schema in ["", "pg_catalog", "a\"b", "1a", "Ab", "a b"] {
            let error = target(schema).address().unwrap_err().to_string();
            assert!(error.contains("target.schema"), "{schema}: {error}");
        }
    }

    #[test]
    fn each_session_commits_as_it_opens_and_as_it_prepares() {
        assert_eq!((commits_beside(Mode::Prepared, 8), commits_beside(Mode::Simple, 8)), (18, 10));
    }
}
