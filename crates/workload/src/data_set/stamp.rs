//! What data that we made says of itself, as the comment of its schema or of one of its tables: so another data set is refused with a sentence instead of being
//! found out by wrong answers.

use super::DataSetError;
use plimsoll_target::postgres::{Client, Error, literal, quoted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The format of the data sets' rows: changes whenever any generator or size rule does.
const DATA_FORMAT: u32 = 1;

/// What data says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamp {
    /// Format of the rows.
    pub data_format: u32,
    /// The workload's name.
    pub workload: String,
    /// Bytes of each table's main fork when loading had ended; empty before.
    #[serde(default)]
    pub heap_bytes: BTreeMap<String, i64>,
    /// The parameters that decide the rows.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Value>,
}

impl Stamp {
    /// The stamp of data that `workload` makes from `parameters`.
    pub fn new(workload: &str, parameters: &[(&str, Value)]) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { data_format: DATA_FORMAT, workload: workload.to_owned(), heap_bytes: BTreeMap::new(), parameters }
    }

    /// The same, sizes left out.
    fn bare(&self) -> Self {
        Self { heap_bytes: BTreeMap::new(), ..self.clone() }
    }

    /// The same of what [`stamp_of_schema`] found, with a sentence where there is no schema.
    pub(crate) fn require_of_schema(
        &self,
        (exists, found): (bool, Option<Self>),
        schema: &str,
    ) -> Result<Self, DataSetError> {
        if !exists {
            let message = format!("target.schema: {schema} does not exist; populate it first");
            return Err(DataSetError::Schema(message));
        }
        self.require(found, schema)
    }

    /// `found` if it is a stamp of the same data, else the sentence that refuses `schema`.
    pub(crate) fn require(&self, found: Option<Self>, schema: &str) -> Result<Self, DataSetError> {
        let refused =
            |what: &str| Err(DataSetError::Schema(format!("target.schema: {schema} {what}; populate it first")));
        match found {
            None => refused("was not (or not completely) loaded by plimsoll-agent"),
            Some(found) if found.bare() != self.bare() => refused(&format!("holds {found} and not {self}")),
            Some(found) => Ok(found),
        }
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.workload)?;
        self.parameters.iter().try_for_each(|(name, value)| write!(f, " {name} {value}"))?;
        write!(f, " data format {}", self.data_format)
    }
}

/// The statement that stamps `what`, such as `SCHEMA plimsoll`.
pub(super) fn comment_on(what: &str, stamp: &Stamp) -> Result<String, Error> {
    let text = serde_json::to_string(stamp).map_err(|error| Error::Protocol(error.to_string()))?;
    Ok(format!("COMMENT ON {what} IS {}", literal(&text)))
}

/// Whether `schema` exists, and the stamp that it bears.
pub(crate) fn stamp_of_schema(client: &mut Client, schema: &str) -> Result<(bool, Option<Stamp>), Error> {
    let name = literal(schema);
    stamp_by(client, &format!("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = {name}"))
}

/// Whether `table` exists in `schema`, and the stamp that it bears.
pub(crate) fn stamp_of_table(client: &mut Client, schema: &str, table: &str) -> Result<(bool, Option<Stamp>), Error> {
    stamp_by(
        client,
        &format!(
            "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE relname = {} AND relnamespace = to_regnamespace({})",
            literal(table),
            literal(&quoted(schema))
        ),
    )
}

fn stamp_by(client: &mut Client, sql: &str) -> Result<(bool, Option<Stamp>), Error> {
    let Some(row) = client.rows(sql)?.into_iter().next() else { return Ok((false, None)) };
    let comment = row.into_iter().next().flatten();
    Ok((true, comment.and_then(|text| serde_json::from_str(&text).ok())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stamps_of_earlier_agents_are_read() {
        let text =
            r#"{"data_format":1,"workload":"wpi_orders","seed":7,"size_bytes":8388608,"heap_bytes":{"item":8192}}"#;
        let found: Stamp = serde_json::from_str(text).unwrap();
        let wanted = |seed: u64| Stamp::new("wpi_orders", &[("seed", json!(seed)), ("size_bytes", json!(8_388_608))]);
        assert_eq!(wanted(7).require(Some(found.clone()), "s").unwrap().heap_bytes["item"], 8192);
        let refused = wanted(8).require(Some(found), "s").unwrap_err().to_string();
        assert!(refused.contains("seed 7") && refused.contains("not wpi_orders seed 8"), "{refused}");
        assert!(wanted(8).require(None, "s").is_err());
    }
}
