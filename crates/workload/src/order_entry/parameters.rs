//! The parameters of a request, and what is refused, each by the name of its field.

use super::deck::Mix;
use serde::Deserialize;

/// Some 10 TB.
const WAREHOUSES_MAX: u32 = 100_000;
/// A think time stays below an hour and a half at this.
const TIME_SCALE_MAX: f64 = 40.0;

/// Where the logic of the transactions is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statements {
    /// In the client, which sends statements.
    #[default]
    Client,
    /// In the server, by functions that the client calls.
    Functions,
}

/// The isolation level of every transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Isolation {
    /// The conditions hold by the rows that are locked.
    #[default]
    #[serde(rename = "read committed")]
    ReadCommitted,
    /// Snapshot isolation; conflicts are tried again.
    #[serde(rename = "repeatable read")]
    RepeatableRead,
    /// Serializable; conflicts are tried again.
    #[serde(rename = "serializable")]
    Serializable,
}

/// When a Delivery is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum DeliveryMode {
    /// As any other transaction: the user waits for it.
    #[serde(rename = "in turn")]
    InTurn,
    /// The user does not wait for it (clause 2.7.2); only with keying and think times, during which it is performed.
    #[serde(rename = "deferred")]
    Deferred,
}

/// The workload's own part of a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Always [`NAME`].
    pub name: String,
    /// Warehouses: the scale.
    pub warehouses: u32,
    /// Decides rows and transactions.
    pub seed: u64,
    /// Where the logic is.
    #[serde(default)]
    pub statements: Statements,
    /// The isolation level.
    #[serde(default)]
    pub isolation: Isolation,
    /// How the next transaction is chosen.
    #[serde(default)]
    pub mix: Mix,
    /// Whether users key and think.
    #[serde(default)]
    pub keying_and_think: bool,
    /// Multiplies keying and think times; 1 unless given, and only with them.
    #[serde(default)]
    pub time_scale: Option<f64>,
    /// When a Delivery is performed: deferred with keying and think times, else in turn, unless given.
    #[serde(default)]
    pub delivery: Option<DeliveryMode>,
    /// Whether acknowledged New-Orders and Payments are written down.
    #[serde(default)]
    pub ledger: bool,
    /// Whether the tables have the foreign keys of the specification.
    #[serde(default = "yes")]
    pub foreign_keys: bool,
}

fn yes() -> bool {
    true
}

impl Isolation {
    /// The server's name of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

impl Parameters {
    /// # Errors
    /// A sentence that names the field.
    pub(super) fn validate(&self) -> Result<(), String> {
        let (warehouses, paced) = (self.warehouses, self.keying_and_think);
        if !(1..=WAREHOUSES_MAX).contains(&warehouses) {
            return Err(format!("workload.warehouses: {warehouses} is not between 1 and {WAREHOUSES_MAX}"));
        }
        self.mix.validate()?;
        match self.time_scale {
            Some(_) if !paced => return Err("workload.time_scale: only with keying_and_think".to_owned()),
            Some(scale) if !(scale > 0.0 && scale <= TIME_SCALE_MAX) => {
                return Err(format!("workload.time_scale: {scale} is not above 0 and at most {TIME_SCALE_MAX}"));
            }
            _ => {}
        }
        if self.delivery == Some(DeliveryMode::Deferred) && !paced {
            return Err("workload.delivery: deferred only with keying_and_think".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Workload;
    use crate::order_entry::OrderEntry;

    fn orders(more: &str) -> Result<OrderEntry, String> {
        let text = format!(r#"{{"name": "order_entry", "seed": 7{more}}}"#);
        let parameters = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        OrderEntry::new(&parameters)
    }

    #[test]
    fn deliveries_are_deferred_where_users_think() {
        assert!(!orders(r#", "warehouses": 1"#).unwrap().defers);
        assert!(orders(r#", "warehouses": 1, "keying_and_think": true"#).unwrap().defers);
        let in_turn = orders(r#", "warehouses": 1, "keying_and_think": true, "delivery": "in turn""#).unwrap();
        assert!(!in_turn.defers && in_turn.is_paced());
    }

    #[test]
    fn wrong_parameters_name_the_field() {
        for (more, field) in [
            ("", "warehouses"),
            (r#", "warehouses": 0"#, "workload.warehouses"),
            (r#", "warehouses": 1, "mix": {}"#, "workload.mix"),
            (r#", "warehouses": 1, "mix": {"new_orders": 1}"#, "weights"),
            (r#", "warehouses": 1, "mix": "cards""#, "deck"),
            (r#", "warehouses": 1, "statements": "server""#, "server"),
            (r#", "warehouses": 1, "isolation": "chaos""#, "chaos"),
            (r#", "warehouses": 1, "time_scale": 1"#, "workload.time_scale"),
            (r#", "warehouses": 1, "keying_and_think": true, "time_scale": 0"#, "workload.time_scale"),
            (r#", "warehouses": 1, "delivery": "deferred""#, "workload.delivery"),
            (r#", "warehouses": 1, "terminals": 10"#, "terminals"),
        ] {
            let error = orders(more).unwrap_err();
            assert!(error.contains(field), "{more}: {error}");
        }
    }
}
