//! What one client keeps: its variables, its streams of draws, and how far its script has come.

use super::Scripts;
use super::columns::Columns;
use super::random::Generator;
use super::value::Value;
use super::variables::Variables;
use crate::workload::RoundTrip;

/// A client of [`Scripts`], which lives as long as its connection.
#[derive(Debug)]
pub struct ScriptClient {
    pub(super) variables: Variables,
    /// What its random functions draw from.
    pub(super) draws: Generator,
    /// The same as it was when the transaction began.
    pub(super) draws_at_begin: Generator,
    /// What its choice of scripts draws from.
    pub(super) choice: Generator,
    pub(super) script: usize,
    /// The step to take next.
    pub(super) step: usize,
    /// True if a transaction block is open for certain.
    pub(super) in_block: bool,
    /// The command, by its place, whose answer gives variables.
    pub(super) awaited: Option<usize>,
    pub(super) columns: Columns,
    /// The round trip that an open pipeline has become so far; nothing of it is sent.
    pub(super) pipeline: Option<RoundTrip>,
    /// Room for a variable's text.
    pub(super) room: Vec<u8>,
}

impl ScriptClient {
    /// Client `number` as it is before its first transaction.
    pub(super) fn new(scripts: &Scripts, number: u32) -> Self {
        let mut variables = scripts.variables.clone();
        if let Some(place) = scripts.client_id {
            variables.set(place, Value::Integer(number.into()));
        }
        let draws = scripts.seeds.functions(number);
        Self {
            variables,
            draws_at_begin: draws.clone(),
            draws,
            choice: scripts.seeds.choice(number),
            script: 0,
            step: 0,
            in_block: false,
            awaited: None,
            columns: Columns::default(),
            pipeline: None,
            room: Vec::new(),
        }
    }

    /// Chooses the script of the next transaction and puts the client before its first step.
    pub(super) fn begin(&mut self, scripts: &Scripts) {
        self.script = match scripts.scripts.len() {
            1 => 0,
            _ => {
                let total: u64 = scripts.scripts.iter().map(|script| u64::from(script.weight)).sum();
                let mut drawn = self.choice.up_to(total - 1);
                // A script of weight w takes w of the numbers.
                let is_it = |weight: u64| {
                    let is_it = drawn < weight;
                    drawn = drawn.saturating_sub(weight);
                    is_it
                };
                scripts.scripts.iter().map(|script| u64::from(script.weight)).position(is_it).unwrap_or(0)
            }
        };
        self.draws_at_begin = self.draws.clone();
        self.restart();
    }

    /// Puts the client before the first step of its script once more, with the same draws.
    pub(super) fn again(&mut self) {
        self.draws = self.draws_at_begin.clone();
        self.restart();
    }

    fn restart(&mut self) {
        self.step = 0;
        self.in_block = false;
        self.awaited = None;
        self.pipeline = None;
    }
}
