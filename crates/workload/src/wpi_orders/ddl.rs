//! How the nine tables, their keys and every index are made.
//!
//! The only indexes are the nine primary keys. Foreign-key columns have none: nothing is ever deleted and no key is ever
//! changed, so nothing would use them, and the study's tables had primary and foreign keys only.

use super::size;
use super::tables::{HISTORY_FILLFACTOR, TableId};
use crate::data_set::{Job, Making};
use plimsoll_target::postgres::bulk::{Filling, Table};

/// How `table` is made and how large it becomes.
fn table(table: TableId, units: u64) -> Table {
    let columns: Vec<String> = table.columns().iter().map(|(name, kind)| format!("{name} {kind} NOT NULL")).collect();
    let fillfactor = match table {
        TableId::History => format!(" WITH (fillfactor = {HISTORY_FILLFACTOR})"),
        _ => String::new(),
    };
    let name = table.name();
    let create = format!("CREATE TABLE {name} ({}){fillfactor}", columns.join(", "));
    Table {
        places: table.rows(units),
        estimated_bytes: size::table_bytes(table, units),
        ..Table::whole(name, create, Filling::WithCreation)
    }
}

/// How the nine tables are made. Foreign keys are added without their check first, so that the checks can run side by side.
pub(super) fn making(units: u64) -> Making {
    let key = |table: TableId| {
        let (name, column) = (table.name(), table.columns()[0].0);
        Job::new(name, format!("ALTER TABLE {name} ADD PRIMARY KEY ({column})"))
    };
    let mut making = Making {
        tables: TableId::ALL.map(|id| table(id, units)).to_vec(),
        vacuumed: TableId::ALL.map(|table| table.name().to_owned()).to_vec(),
        keys: TableId::ALL.map(key).to_vec(),
        ..Making::default()
    };
    for (table, (column, other)) in
        TableId::ALL.into_iter().flat_map(|table| table.references().iter().map(move |key| (table, key)))
    {
        let (name, other) = (table.name(), other.name());
        let constraint = format!("{name}_{column}_fkey");
        making.foreign_keys.push(format!(
            "ALTER TABLE {name} ADD CONSTRAINT {constraint} FOREIGN KEY ({column}) REFERENCES {other} NOT VALID"
        ));
        making.validations.push(Job::new(name, format!("ALTER TABLE {name} VALIDATE CONSTRAINT {constraint}")));
    }
    making
}
