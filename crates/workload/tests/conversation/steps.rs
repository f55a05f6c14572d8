//! A workload whose transactions all take the same steps.

use bytes::BytesMut;
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, Failure};
use plimsoll_target::postgres::{Connection, Form, Query, put_row_in};
use plimsoll_workload::{Expect, Next, RoundTrip, Statement, Workload};

/// One step of a transaction.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A read of thing 7.
    Read,
    /// A statement with a number and a text.
    Write,
    Commit,
    Rest,
    Fail,
}

/// Transactions that all take the same steps.
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    pub(crate) at_first_use: bool,
}

pub(crate) fn read_and_commit() -> Steps {
    Steps { steps: vec![Step::Read, Step::Commit], at_first_use: false }
}

impl Workload for Steps {
    const NAME: &'static str = "steps";
    type Client = usize;

    fn kinds(&self) -> Vec<String> {
        vec!["only".to_owned()]
    }

    fn statements(&self) -> Vec<Statement> {
        vec![
            Statement::fixed("read", "read"),
            Statement::fixed("commit", "commit"),
            Statement::fixed("write", "write $2, $1;"),
        ]
    }

    fn queries(&self) -> Vec<Query> {
        let queries = self.statements().into_iter().map(|statement| Query::new(&statement.sql));
        queries.map(|query| if self.at_first_use { query.prepared_at_first_use() } else { query }).collect()
    }

    fn client(&self, _: u32) -> usize {
        0
    }

    fn begin(&self, client: &mut usize, _: u64) -> Begun {
        *client = 0;
        Begun { kind: 0, skipped: false }
    }

    fn again(&self, client: &mut usize) {
        *client = 0;
    }

    fn next(&self, client: &mut usize, connection: &mut Connection) -> Next {
        *client += 1;
        match self.steps.get(*client - 1) {
            None => Next::Complete,
            Some(Step::Rest) => Next::Rest { ns: 1_000 },
            Some(Step::Fail) => {
                Next::Failed(Failure { code: "XXSCR".to_owned(), message: "division by zero".to_owned() })
            }
            Some(Step::Read) => {
                connection.queue_statement(0, |_| {});
                let expect = Expect::Row { table: 0, key: 7 };
                Next::RoundTrip(RoundTrip { statements: 1, expect, commits: false })
            }
            Some(Step::Write) => {
                connection.queue_statement(2, |values| {
                    values.bigint(-5);
                    values.text(b"it's");
                });
                Next::RoundTrip(RoundTrip { statements: 1, expect: Expect::Nothing, commits: false })
            }
            Some(Step::Commit) => {
                connection.queue_statement(1, |_| {});
                Next::RoundTrip(RoundTrip { statements: 0, expect: Expect::Tag(b"COMMIT"), commits: true })
            }
        }
    }

    fn expected_row(&self, _: u8, key: i64, form: Form, out: &mut BytesMut) {
        put_row_in(form, out, 1, |row| row.bigint(key));
    }

    fn columns(&self, _: u8) -> (&'static str, Vec<&'static str>) {
        ("things", vec!["number"])
    }

    fn total_names(&self) -> &'static [&'static str] {
        &["done", "lost"]
    }

    fn tally(&self, _: &usize, outcome: Outcome, totals: &mut [i64]) {
        totals[0] += i64::from(outcome == Outcome::Done);
        totals[1] += i64::from(outcome == Outcome::Lost);
    }
}
