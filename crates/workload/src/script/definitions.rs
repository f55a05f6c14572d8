//! What variables are before the first transaction: those that are defined from outside, and pgbench's own.

use super::names::{DEFAULT_SEED, Names};
use super::random::Seeds;
use super::value::Value;
use super::variables::Variables;
use serde::Deserialize;
use std::collections::BTreeMap;

const SCALE: &str = "scale";
const CLIENT_ID: &str = "client_id";
const RANDOM_SEED: &str = "random_seed";

/// A variable that is defined from outside.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Definition {
    /// Its text, as behind pgbench's `-D`.
    Text(String),
    /// A truth value.
    Boolean(bool),
    /// A number.
    Number(serde_json::Number),
}

/// The variables that every client begins with, and the place of its number unless that is defined from outside.
pub(super) fn first_variables(
    defined: &BTreeMap<String, Definition>,
    seed: u64,
    seeds: &Seeds,
    names: &mut Names,
) -> (Variables, Option<usize>) {
    let given: Vec<(usize, String)> = defined
        .iter()
        .map(|(name, definition)| {
            let text = match definition {
                Definition::Text(text) => text.clone(),
                Definition::Boolean(value) => value.to_string(),
                Definition::Number(value) => value.to_string(),
            };
            (names.place(name), text)
        })
        .collect();
    let automatic = [(SCALE, Some(1)), (RANDOM_SEED, Some(seed as i64)), (DEFAULT_SEED, seeds.default_seed())];
    let automatic = automatic.map(|(name, value)| (names.place(name), value));
    let client_id = names.place(CLIENT_ID);
    let mut variables = Variables::new(names.count());
    for (place, value) in automatic {
        if let Some(value) = value {
            variables.set(place, Value::Integer(value));
        }
    }
    given.iter().for_each(|(place, text)| variables.set_text(*place, text.as_bytes()));
    (variables, (!defined.contains_key(CLIENT_ID)).then_some(client_id))
}
