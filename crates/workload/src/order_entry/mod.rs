//! `order_entry`: the order-entry workload derived from TPC-C 5.11, complete. Results are "-like", not comparable to published
//! ones.
//!
//! - Nine tables; rows are a pure function of (seed, table, key), so answers are compared with the seed as far as it decides
//!   them: names, prices, taxes, discounts. The rest is checked by the consistency conditions.
//! - A connection is a terminal of one warehouse. What transaction i does is a pure function of (seed, i, terminal); its kind
//!   comes from the terminal's deck.
//! - Every transaction is one BEGIN ... COMMIT block, its statements sent in as few round trips as the data allow, or one call
//!   of a function in the server.
//! - With keying and think times the users of clause 5.2.5 type and think; without, it is a different benchmark, and the record
//!   says which. A deferred Delivery is handed in: its user goes on at once, and its terminal performs it meanwhile.

mod answers;
mod check;
mod compare;
mod data;
mod ddl;
mod deck;
mod encode;
mod functions;
mod ledger;
mod loading;
mod numbers;
mod pacing;
mod parameters;
mod rows;
mod scale;
mod statements;
mod tables;
mod terminal;
mod totals;
mod transactions;

pub use compare::{CompareError, Compared, Fate, Lost, compare};
pub use deck::{Dealt, Mix, Weights};
pub use ledger::FILE as LEDGER_FILE;
pub use parameters::{DeliveryMode, Isolation, Parameters, Statements};
pub use terminal::Terminal;

use crate::data_set::DataSet;
use crate::workload::{LedgerComparison, Next, Statement, Workload};
use answers::{Values, count_of};
use data::Data;
use deck::Kind;
use ledger::Ledger;
use pacing::Pacing;
use plimsoll_keys::Words;
use plimsoll_record::Outcome;
use plimsoll_session::Pause;
use plimsoll_session::{Begun, Failure};
use plimsoll_target::postgres::{Client as Administrator, Connection, Query};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use transactions::{Draw, Plan};

/// The workload's name.
pub const NAME: &str = "order_entry";
/// The standard's io_error, of those that the server uses for its own files.
const IO_ERROR: &str = "58030";

/// The workload at one size and seed.
#[derive(Debug)]
pub struct OrderEntry {
    data: Data,
    seed: u64,
    by_functions: bool,
    mix: Mix,
    pacing: Option<Pacing>,
    defers: bool,
    settings: [(&'static str, &'static str); 2],
    draw: Draw,
    has_ledger: bool,
    ledger: Option<Ledger>,
}

impl OrderEntry {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        parameters.validate()?;
        let &Parameters { warehouses, seed, keying_and_think: paced, time_scale, delivery, .. } = parameters;
        let data = Data::new(seed, warehouses, parameters.foreign_keys);
        Ok(Self {
            draw: Draw::new(data.warehouses(), data.constants()),
            data,
            seed,
            by_functions: parameters.statements == Statements::Functions,
            mix: parameters.mix,
            pacing: paced.then(|| Pacing::new(time_scale.unwrap_or(1.0))),
            defers: paced && delivery != Some(DeliveryMode::InTurn),
            settings: [("default_transaction_isolation", parameters.isolation.name()), ("DateStyle", "ISO")],
            has_ledger: parameters.ledger,
            ledger: None,
        })
    }

    /// The words by which `terminal` chooses what comes after transaction `after`, or its kind.
    fn choosing(&self, terminal: &Terminal, after: u64) -> Words {
        /// Transactions and choices have words of their own, apart from those of every table.
        const CHOICES: u64 = 1 << 33;
        Words::new(self.seed, CHOICES + terminal.number, after)
    }
}

/// Transactions have words of their own, apart from those of every table.
const TRANSACTIONS: u64 = 1 << 32;

impl Workload for OrderEntry {
    type Client = Terminal;

    const NAME: &'static str = NAME;

    fn data(&self) -> Option<&dyn DataSet> {
        Some(self)
    }

    /// The constants of NURand, and which benchmark this is.
    fn facts(&self) -> BTreeMap<String, Value> {
        let pacing = match &self.pacing {
            Some(pacing) => json!({"keying_and_think": true, "time_scale": pacing.scale()}),
            None => json!({"keying_and_think": false}),
        };
        let facts = [
            ("nurand", json!(self.data.constants())),
            ("pacing", pacing),
            ("delivery", json!(if self.defers { "deferred" } else { "in turn" })),
            ("isolation", json!(self.settings[0].1)),
            ("statements", json!(if self.by_functions { "functions" } else { "client" })),
        ];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn is_paced(&self) -> bool {
        self.pacing.is_some()
    }

    fn compare_ledgers(
        &self,
        client: &mut Administrator,
        summaries: &[PathBuf],
    ) -> Result<Option<LedgerComparison>, String> {
        let beside = |summary: &PathBuf| summary.with_file_name(LEDGER_FILE);
        let ledgers: Vec<PathBuf> = summaries.iter().map(beside).filter(|ledger| ledger.exists()).collect();
        if ledgers.is_empty() {
            return Ok(None);
        }
        let compared = compare(client, &ledgers).map_err(|error| error.to_string())?;
        Ok(Some(LedgerComparison { checks: compared.checks(), document: json!(compared) }))
    }

    fn kinds(&self) -> Vec<String> {
        Kind::ALL.map(|kind| kind.name().to_owned()).to_vec()
    }

    fn statements(&self) -> Vec<Statement> {
        statements::all()
    }

    fn queries(&self) -> Vec<Query> {
        let query = |(place, statement): (usize, Statement)| {
            let query = Query::new(&statement.sql).as_text();
            if statements::is_used(place, self.by_functions) { query } else { query.prepared_at_first_use() }
        };
        statements::all().into_iter().enumerate().map(query).collect()
    }

    fn session_settings(&self) -> &[(&'static str, &'static str)] {
        &self.settings
    }

    fn record_in(&mut self, folder: &Path) -> io::Result<()> {
        self.ledger = self.has_ledger.then(|| Ledger::create(folder)).transpose()?;
        Ok(())
    }

    fn client(&self, number: u32) -> Terminal {
        Terminal::new(number, self.data.warehouses())
    }

    /// The user thinks of what was done and keys in what comes.
    fn pause(&self, terminal: &mut Terminal, after: u64) -> Pause {
        let Some(pacing) = &self.pacing else { return Pause::default() };
        let words = self.choosing(terminal, after);
        let Some(last) = terminal.plan.as_ref().map(Plan::kind) else {
            let (first, ns) = pacing.met(&mut terminal.deck, &self.mix, &words);
            terminal.drawn = Some(first);
            return Pause { ns, since_planned: false };
        };
        let next = terminal.deck.next(&self.mix, &words);
        terminal.drawn = Some(next);
        let ns = pacing.thinking_ns(last, &words) + pacing.keying_ns(next);
        Pause { ns, since_planned: self.defers && last == Kind::Delivery }
    }

    fn begin(&self, terminal: &mut Terminal, index: u64) -> Begun {
        let kind = match terminal.drawn.take() {
            Some(kind) => kind,
            None => {
                let words = self.choosing(terminal, index);
                terminal.deck.next(&self.mix, &words)
            }
        };
        let words = Words::new(self.seed, TRANSACTIONS, index);
        terminal.index = index;
        terminal.plan = Some(Plan::draw(&self.draw, kind, &words, terminal.home));
        terminal.replies.forget();
        Begun { kind: kind as u8, skipped: false }
    }

    fn again(&self, terminal: &mut Terminal) {
        terminal.replies.forget();
    }

    fn next(&self, terminal: &mut Terminal, connection: &mut Connection) -> Next {
        let Terminal { plan: Some(plan), replies, .. } = terminal else { return Next::Complete };
        if replies.step == 0
            && let Some(message) = self.ledger.as_ref().and_then(Ledger::refused)
        {
            return Next::Failed(Failure { code: IO_ERROR.to_owned(), message });
        }
        if self.by_functions { functions::next(plan, replies, connection) } else { plan.next(replies, connection) }
    }

    fn row(&self, terminal: &mut Terminal, body: &[u8]) {
        let Terminal { plan: Some(plan), replies, .. } = terminal else { return };
        let (rows, values) = (&self.data.rows, Values::of(body));
        if self.by_functions { functions::row(plan, rows, replies, values) } else { plan.row(rows, replies, values) }
    }

    fn completed(&self, terminal: &mut Terminal, tag: &[u8]) {
        let Terminal { plan: Some(plan), replies, .. } = terminal else { return };
        let count = count_of(tag);
        if self.by_functions { functions::completed(replies, count) } else { plan.completed(replies, count) }
    }

    fn verdict(&self, terminal: &Terminal) -> Option<String> {
        terminal.replies.wrong()
    }

    fn total_names(&self) -> &'static [&'static str] {
        &totals::NAMES
    }

    fn tally(&self, terminal: &Terminal, outcome: Outcome, totals: &mut [i64]) {
        let Terminal { plan: Some(plan), replies, index, .. } = terminal else { return };
        totals::tally(plan, replies, outcome, totals);
        if let (Outcome::Done, Some(ledger)) = (outcome, &self.ledger) {
            ledger.acknowledge(*index, plan, replies);
        }
    }
}
