//! Scripts as a [`Workload`].

use super::expression::Scope;
use super::parse::{Action, LEFT_OPEN, NOT_OPEN, NOT_WITHIN, OPEN_ALREADY, Step};
use super::{ScriptClient, Scripts};
use crate::workload::{Expect, Next, RoundTrip, Statement, Workload};
use plimsoll_session::{Begun, Failure};
use plimsoll_target::postgres::{Connection, Mode, Query};
use std::borrow::Cow;

/// SQLSTATE of what pgbench calls an error of a meta command.
const SCRIPT_FAILED: &str = "XXSCR";

impl Scripts {
    fn failed(&self, client: &ScriptClient, line: u32, message: &str) -> Next {
        let script = &self.scripts[client.script].name;
        let message = format!("script {script}, line {line}: {message}");
        Next::Failed(Failure { code: SCRIPT_FAILED.to_owned(), message })
    }

    /// Queues a command with the values of its variables.
    fn send(&self, client: &mut ScriptClient, place: usize, connection: &mut Connection) -> RoundTrip {
        let command = &self.commands[place];
        let ScriptClient { variables, room, .. } = client;
        connection.queue_statement(place, |parameters| {
            for &variable in &command.variables {
                room.clear();
                if variables.write(variable, room) {
                    parameters.verbatim(room);
                } else if self.mode == Mode::Simple {
                    room.push(b':');
                    room.extend_from_slice(self.names.name(variable).as_bytes());
                    parameters.verbatim(room);
                } else {
                    parameters.null();
                }
            }
        });
        let (commits, in_block) = command.outcome(client.in_block);
        client.in_block = in_block;
        client.awaited = command.gset.as_ref().map(|_| place);
        client.columns.await_answer();
        let expect = match &command.gset {
            None => Expect::Nothing,
            // What the last of several statements gave is known to the conversation alone.
            Some(_) if command.is_joined() => Expect::OneRow,
            // Another number of rows is an error of the script, as in pgbench, and no wrong answer of the server's.
            Some(_) => Expect::AnyRows,
        };
        RoundTrip { statements: command.statements(), expect, commits }
    }

    /// Takes a step. `None` if the next one is to follow at once.
    fn take(
        &self,
        client: &mut ScriptClient,
        step: &Step,
        connection: &mut Connection,
    ) -> Result<Option<Next>, String> {
        let ScriptClient { variables, draws, .. } = client;
        let mut scope = Scope { variables, names: &self.names, draws };
        match &step.action {
            Action::Send(place) => {
                if client.pipeline.is_some() && self.commands[*place].gset.is_some() {
                    return Err(NOT_WITHIN.to_owned());
                }
                let trip = self.send(client, *place, connection);
                let Some(open) = &mut client.pipeline else { return Ok(Some(Next::RoundTrip(trip))) };
                open.statements = open.statements.saturating_add(trip.statements);
                open.commits |= trip.commits;
            }
            Action::StartPipeline => {
                let empty = RoundTrip { statements: 0, expect: Expect::Nothing, commits: false };
                if client.pipeline.replace(empty).is_some() {
                    return Err(OPEN_ALREADY.to_owned());
                }
            }
            Action::EndPipeline => {
                let whole = client.pipeline.take().ok_or(NOT_OPEN)?;
                return Ok(Some(Next::RoundTrip(whole)));
            }
            Action::Set(place, expression) => {
                let value = expression.value(&mut scope)?;
                client.variables.set(*place, value);
            }
            Action::Sleep(sleep) => {
                let ns = sleep.ns(&client.variables, &self.names, &mut client.room)?;
                return Ok((ns > 0).then_some(Next::Rest { ns }));
            }
            Action::Unless(condition, target) => {
                if !condition.value(&mut scope)?.truth() {
                    client.step = *target;
                }
            }
            Action::Jump(target) => client.step = *target,
        }
        Ok(None)
    }

    /// Sets the variables of the command that was answered.
    fn take_columns(&self, client: &mut ScriptClient) -> Result<(), String> {
        let Some(place) = client.awaited.take() else { return Ok(()) };
        let prefix = self.commands[place].gset.as_deref().unwrap_or_default();
        client.columns.set(prefix, &mut client.variables, &self.names)
    }
}

impl Workload for Scripts {
    type Client = ScriptClient;

    const NAME: &'static str = super::NAME;

    fn kinds(&self) -> Vec<String> {
        self.scripts.iter().map(|script| script.name.clone()).collect()
    }

    fn statements(&self) -> Vec<Statement> {
        let statement = |command: &super::Command| Statement {
            name: Cow::Owned(command.name.clone()),
            sql: Cow::Owned(command.query.sql()),
        };
        self.commands.iter().map(statement).collect()
    }

    fn queries(&self) -> Vec<Query> {
        self.commands.iter().map(|command| command.query.clone()).collect()
    }

    fn client(&self, number: u32) -> ScriptClient {
        ScriptClient::new(self, number)
    }

    /// The index decides nothing: pgbench's draws are a stream of the client.
    fn begin(&self, client: &mut ScriptClient, _index: u64) -> Begun {
        client.begin(self);
        Begun { kind: client.script as u8, skipped: false }
    }

    fn again(&self, client: &mut ScriptClient) {
        client.again();
    }

    fn next(&self, client: &mut ScriptClient, connection: &mut Connection) -> Next {
        let steps = &self.scripts[client.script].steps;
        if let Err(message) = self.take_columns(client) {
            let line = steps.get(client.step.wrapping_sub(1)).map_or(0, |step| step.line);
            return self.failed(client, line, &message);
        }
        while let Some(step) = steps.get(client.step) {
            client.step += 1;
            match self.take(client, step, connection) {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(message) => {
                    // What an open pipeline has queued must not go out with what comes next.
                    connection.drop_queued();
                    return self.failed(client, step.line, &message);
                }
            }
        }
        if client.pipeline.is_some() {
            connection.drop_queued();
            return self.failed(client, steps.last().map_or(0, |step| step.line), LEFT_OPEN);
        }
        Next::Complete
    }

    fn described(&self, client: &mut ScriptClient, body: &[u8]) {
        if client.awaited.is_some() {
            client.columns.described(body);
        }
    }

    fn row(&self, client: &mut ScriptClient, body: &[u8]) {
        client.columns.row(body);
    }
}
