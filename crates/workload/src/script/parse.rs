//! Reads a script: SQL commands and meta commands in, steps out, whose only jumps lead forwards.

use super::expression::{self, Expression};
use super::names::{Names, is_valid};
use super::sleep::Sleep;
use super::source::{Cursor, Problem, line};
use super::sql::{End, scan};
use super::statement::Command;
use plimsoll_target::postgres::Mode;

/// One step of a script.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) line: u32,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Sends a command, by its place.
    Send(usize),
    /// Sets a variable.
    Set(usize, Expression),
    Sleep(Sleep),
    /// Goes on at a step unless the expression is true.
    Unless(Expression, usize),
    /// Goes on at a step.
    Jump(usize),
    /// What follows is queued without being sent.
    StartPipeline,
    /// Sends what is queued, and awaits all of its answers.
    EndPipeline,
}

/// What scripts share while they are read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) mode: Mode,
    /// The name of the script being read.
    pub(super) script: String,
    pub(super) names: Names,
    pub(super) commands: Vec<Command>,
}

const ALLOWED: &str = "\\set, \\sleep, \\if, \\elif, \\else, \\endif, \\gset, \\startpipeline, \\endpipeline";

/// Meta commands that pgbench or psql has and that are refused.
const REFUSED: [&str; 4] = ["aset", "setshell", "shell", "syncpipeline"];

/// What is wrong with pipelines, as pgbench says it.
pub(super) const OPEN_ALREADY: &str = "\\startpipeline: already in pipeline mode";
pub(super) const NOT_OPEN: &str = "\\endpipeline: not in pipeline mode";
pub(super) const NOT_WITHIN: &str = "\\gset is not allowed in pipeline mode";
pub(super) const LEFT_OPEN: &str = "end of script reached with pipeline open";

/// An \if that is not yet closed.
#[derive(Debug)]
struct Condition {
    /// Where it stands in the text.
    at: usize,
    /// The step that leads over the branch being read, until it is known where to.
    pending: Option<usize>,
    /// The steps that lead behind \endif.
    exits: Vec<usize>,
    in_else: bool,
}

struct Parser<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
    reading: &'a mut Reading,
    steps: Vec<Step>,
    conditions: Vec<Condition>,
    /// True if nothing but an SQL command was read last, so that \gset may follow.
    after_sql: bool,
    problems: Vec<Problem>,
}

/// The steps of a script.
///
/// # Errors
/// All that is wrong with it, each with its line.
pub(super) fn parse(text: &str, reading: &mut Reading) -> Result<Vec<Step>, Vec<(u32, String)>> {
    let (steps, conditions, problems) = (Vec::new(), Vec::new(), Vec::new());
    let mut parser = Parser { text, cursor: Cursor::new(text), reading, steps, conditions, after_sql: false, problems };
    parser.read();
    let open = parser.conditions.drain(..).map(|open| problem(open.at, "\\if without \\endif"));
    parser.problems.extend(open);
    if parser.problems.is_empty() {
        return match wrong_pipeline(&parser.steps, &parser.reading.commands) {
            Some((line, message)) => Err(vec![(line, message.to_owned())]),
            None => Ok(parser.steps),
        };
    }
    Err(parser.problems.into_iter().map(|problem| (line(text, problem.at), problem.message)).collect())
}

/// The first pipeline that is certainly wrong: where conditions decide, it is known when the script runs.
fn wrong_pipeline(steps: &[Step], commands: &[Command]) -> Option<(u32, &'static str)> {
    let mut began = None;
    for step in steps {
        let wrong = match &step.action {
            Action::Unless(..) | Action::Jump(_) => return None,
            Action::StartPipeline => began.replace(step.line).map(|_| OPEN_ALREADY),
            Action::EndPipeline if began.take().is_none() => Some(NOT_OPEN),
            Action::Send(place) if began.is_some() && commands[*place].gset.is_some() => Some(NOT_WITHIN),
            _ => None,
        };
        if let Some(message) = wrong {
            return Some((step.line, message));
        }
    }
    began.map(|line| (line, LEFT_OPEN))
}

fn problem(at: usize, message: impl Into<String>) -> Problem {
    Problem { at, message: message.into() }
}

impl Parser<'_> {
    fn read(&mut self) {
        loop {
            let (sql, end) = match scan(&mut self.cursor) {
                Ok(scanned) => scanned,
                Err(problem) => return self.problems.push(problem),
            };
            if !sql.text.is_empty() {
                let line = line(self.text, sql.at);
                let name = format!("{}:{line}", self.reading.script);
                match Command::new(&sql, name, self.reading.mode, &mut self.reading.names) {
                    Ok(command) => {
                        self.reading.commands.push(command);
                        self.steps.push(Step { line, action: Action::Send(self.reading.commands.len() - 1) });
                    }
                    Err(problem) => self.problems.push(problem),
                }
                self.after_sql = true;
            }
            match end {
                End::Semicolon => {}
                End::File => return,
                End::Backslash => {
                    if let Err(problem) = self.meta() {
                        self.problems.push(problem);
                    }
                }
            }
        }
    }

    fn push(&mut self, at: usize, action: Action) {
        self.steps.push(Step { line: line(self.text, at), action });
    }

    /// Reads a meta command, behind its backslash, and the end of its line.
    fn meta(&mut self) -> Result<(), Problem> {
        let Some((at, name)) = self.cursor.word() else {
            // A backslash alone is nothing to pgbench either.
            self.cursor.skip_command();
            return Ok(());
        };
        let after_sql = std::mem::take(&mut self.after_sql);
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "set" => self.set(at),
            "if" => self.open_condition(at),
            "elif" => self.next_condition(at),
            "else" | "endif" | "sleep" | "gset" | "startpipeline" | "endpipeline" => {
                let words = self.words();
                match name.as_str() {
                    "sleep" => {
                        let sleep = Sleep::parse(&words, at, &mut self.reading.names)?;
                        self.push(at, Action::Sleep(sleep));
                        Ok(())
                    }
                    "gset" => self.gset(at, &words, after_sql),
                    _ if !words.is_empty() => Err(problem(words[0].0, format!("\\{name} takes no argument"))),
                    "else" => self.otherwise(at),
                    "endif" => self.close_condition(at),
                    _ => self.pipeline(at, name == "startpipeline"),
                }
            }
            _ => {
                self.cursor.skip_command();
                let what = if REFUSED.contains(&name.as_str()) { "is not supported" } else { "is not a command" };
                Err(problem(at, format!("\\{name} {what}; allowed: {ALLOWED}")))
            }
        }
    }

    /// The rest of a meta command's words, and its end.
    fn words(&mut self) -> Vec<(usize, String)> {
        let mut words = Vec::new();
        while let Some((at, word)) = self.cursor.word() {
            words.push((at, word.to_owned()));
        }
        self.cursor.skip_command();
        words
    }

    fn expression(&mut self) -> Result<Expression, Problem> {
        expression::parse(&mut self.cursor, &mut self.reading.names)
    }

    fn set(&mut self, at: usize) -> Result<(), Problem> {
        let name = self.cursor.word();
        let expression = self.expression();
        let Some((place, name)) = name else { return Err(problem(at, "\\set lacks a variable")) };
        if !is_valid(name) {
            return Err(problem(
                place,
                format!("{name} is not a variable's name: letters, digits and _, no digit first"),
            ));
        }
        let place = self.reading.names.place(name);
        self.push(at, Action::Set(place, expression?));
        Ok(())
    }

    fn gset(&mut self, at: usize, words: &[(usize, String)], after_sql: bool) -> Result<(), Problem> {
        if let Some((place, _)) = words.get(1) {
            return Err(problem(*place, "\\gset takes one argument, the prefix"));
        }
        let prefix = words.first().map_or("", |(_, prefix)| prefix);
        if !prefix.is_empty() && !is_valid(prefix) {
            return Err(problem(at, format!("{prefix} cannot begin a variable's name")));
        }
        if !after_sql {
            return Err(problem(at, "\\gset must follow an SQL command"));
        }
        if let Some(command) = self.reading.commands.last_mut() {
            command.gset = Some(prefix.to_owned());
            command.query = command.query.clone().described();
        }
        Ok(())
    }

    fn pipeline(&mut self, at: usize, starts: bool) -> Result<(), Problem> {
        if self.reading.mode == Mode::Simple {
            let name = if starts { "startpipeline" } else { "endpipeline" };
            let what = "cannot use pipeline mode with the simple query protocol";
            let remedy = "workload.mode = \"prepared\" or \"extended\", pgbench's -M";
            return Err(problem(at, format!("\\{name}: {what}; allowed: {remedy}")));
        }
        self.push(at, if starts { Action::StartPipeline } else { Action::EndPipeline });
        Ok(())
    }

    fn open_condition(&mut self, at: usize) -> Result<(), Problem> {
        self.conditions.push(Condition { at, pending: None, exits: Vec::new(), in_else: false });
        self.branch(at)
    }

    /// The condition of a branch, and the step that leads over it.
    fn branch(&mut self, at: usize) -> Result<(), Problem> {
        let expression = self.expression()?;
        if let Some(condition) = self.conditions.last_mut() {
            condition.pending = Some(self.steps.len());
        }
        self.push(at, Action::Unless(expression, 0));
        Ok(())
    }

    /// Ends the branch being read: a jump behind \endif, and the way over the branch leads here.
    fn end_branch(&mut self, at: usize, name: &str) -> Result<(), Problem> {
        let Some(condition) = self.conditions.last_mut() else {
            return Err(problem(at, format!("\\{name} without \\if")));
        };
        if condition.in_else {
            return Err(problem(at, format!("\\{name} after \\else")));
        }
        condition.exits.push(self.steps.len());
        let pending = condition.pending.take();
        self.push(at, Action::Jump(0));
        self.lead(pending);
        Ok(())
    }

    fn next_condition(&mut self, at: usize) -> Result<(), Problem> {
        if let Err(problem) = self.end_branch(at, "elif") {
            self.cursor.skip_command();
            return Err(problem);
        }
        self.branch(at)
    }

    fn otherwise(&mut self, at: usize) -> Result<(), Problem> {
        self.end_branch(at, "else")?;
        if let Some(condition) = self.conditions.last_mut() {
            condition.in_else = true;
        }
        Ok(())
    }

    fn close_condition(&mut self, at: usize) -> Result<(), Problem> {
        let Some(condition) = self.conditions.pop() else { return Err(problem(at, "\\endif without \\if")) };
        self.lead(condition.pending);
        self.lead(condition.exits);
        Ok(())
    }

    /// Makes these steps lead to the next one.
    fn lead(&mut self, places: impl IntoIterator<Item = usize>) {
        let next = self.steps.len();
        for place in places {
            if let Action::Unless(_, target) | Action::Jump(target) = &mut self.steps[place].action {
                *target = next;
            }
        }
    }
}
