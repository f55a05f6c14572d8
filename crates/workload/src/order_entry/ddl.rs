//! How the nine tables, their keys, constraints and indexes are made (clause 1.3 of TPC-C 5.11).
//!
//! - Columns have the names and the order of the specification. Texts are varchar, those of fixed length too: their values are
//!   always full, and blanks need no care. Numbers that count or name something are integers.
//! - Sums that only grow, and balances, have more digits than the specification asks for: four million payments, which without
//!   pacing do not take long, would fill its W_YTD.
//! - Beside the primary keys there are two indexes: customers by name, and orders by customer. `history` has no key.
//! - Keys, indexes and foreign keys are made after the rows.

use super::data::Data;
use super::scale;
use super::tables::TableId;
use crate::data_set::{Job, Making};
use plimsoll_target::postgres::bulk::{Filling, Table};

/// From so many connections on, the three large tables are filled by all of them, although their rows are then logged, and
/// frozen only afterwards: filled with its creation, a table is one connection's work, and more than half of all rows are lines.
const BY_RANGES_FROM: usize = 4;

fn table(id: TableId, data: &Data, parallel: usize) -> Table {
    let null = |column: &str| if TableId::may_be_null(column) { "" } else { " NOT NULL" };
    let columns: Vec<String> = id.columns().iter().map(|(name, kind)| format!("{name} {kind}{}", null(name))).collect();
    let is_large = matches!(id, TableId::Customer | TableId::OrderLine | TableId::Stock);
    let name = id.name();
    let create = format!("CREATE TABLE {name} ({})", columns.join(", "));
    let filling = if is_large && parallel >= BY_RANGES_FROM { Filling::ByRanges } else { Filling::WithCreation };
    let places = data.count(id);
    Table { places, estimated_bytes: scale::heap_bytes(id, places), ..Table::whole(name, create, filling) }
}

/// The statements that make the primary key of `id`, and its index.
fn keys(id: TableId) -> Option<Job> {
    let name = id.name();
    let index = id.index().map(|(index, columns)| format!("; CREATE INDEX {index} ON {name} ({columns})"));
    let key = || format!("ALTER TABLE {name} ADD PRIMARY KEY ({}){}", id.key(), index.unwrap_or_default());
    (!id.key().is_empty()).then(|| Job::new(name, key()))
}

/// How the nine tables are made over `parallel` connections. `functions` are made when the rows are in. Foreign keys are added
/// without their check first, so that the checks can run side by side: one statement for each table, for two would wait for
/// each other.
pub(super) fn making(data: &Data, parallel: usize, functions: Vec<String>) -> Making {
    // What takes longest is begun first.
    let mut by_size = TableId::ALL;
    by_size.sort_by_key(|&id| std::cmp::Reverse(data.count(id)));
    let mut making = Making {
        tables: TableId::ALL.map(|id| table(id, data, parallel)).to_vec(),
        joined: functions,
        vacuumed: by_size.map(|id| id.name().to_owned()).to_vec(),
        keys: by_size.into_iter().filter_map(keys).collect(),
        ..Making::default()
    };
    for id in by_size.into_iter().filter(|id| data.has_foreign_keys && !id.references().is_empty()) {
        let (name, constraint) = (id.name(), |other: TableId| format!("{}_{}_fkey", id.name(), other.name()));
        let other = |&(columns, other): &(&str, TableId)| {
            let (constraint, other, key) = (constraint(other), other.name(), other.key());
            format!("ADD CONSTRAINT {constraint} FOREIGN KEY ({columns}) REFERENCES {other} ({key}) NOT VALID")
        };
        let added: Vec<String> = id.references().iter().map(other).collect();
        let checked = |&(_, other): &(&str, TableId)| format!("VALIDATE CONSTRAINT {}", constraint(other));
        let validated: Vec<String> = id.references().iter().map(checked).collect();
        making.foreign_keys.push(format!("ALTER TABLE {name} {}", added.join(", ")));
        making.validations.push(Job::new(name, format!("ALTER TABLE {name} {}", validated.join(", "))));
    }
    making
}
