//! An SQL command of a script, ready to be sent with the values of its variables.
//!
//! pgbench looks for `:name` in the whole text, in quotes and comments too. In simple mode a variable's text takes the
//! place; what is not defined stays as it is written. In extended and prepared mode each occurrence becomes a parameter
//! of its own, sent as text: NULL is then the word NULL, and what is not defined is NULL.

use super::names::{Names, continues, starts};
use super::source::Problem;
use super::sql::Sql;
use plimsoll_target::postgres::{Mode, Query};

/// As many as pgbench allows in extended and prepared mode.
const PARAMETERS_MAX: usize = 255;
const VARIABLES_MAX: usize = u16::MAX as usize;

/// What a statement does to a transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Opens,
    Closes,
    Discards,
    None,
}

/// An SQL command.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// Script and line, for people.
    pub(super) name: String,
    pub(super) query: Query,
    /// The variables in the text, in order.
    pub(super) variables: Vec<usize>,
    /// What the names of columns are prefixed with to give variables, if they do.
    pub(super) gset: Option<String>,
    effects: Vec<Effect>,
}

impl Command {
    /// # Errors
    /// If the command cannot work in `mode`.
    pub(super) fn new(sql: &Sql, name: String, mode: Mode, names: &mut Names) -> Result<Self, Problem> {
        let found = variables_in(&sql.text);
        let problem = |message: String| Err(Problem { at: sql.at, message });
        if mode != Mode::Simple {
            if !sql.joints.is_empty() {
                return problem("several statements joined by \\; can be sent only in mode simple".to_owned());
            }
            let is_quoted = |place: &usize| sql.quoted.iter().any(|range| range.contains(place));
            if let Some((_, name)) = found.iter().find(|(place, _)| is_quoted(place)) {
                return problem(format!(
                    ":{name} stands in quotes or a comment, where a variable can be put only in mode simple"
                ));
            }
        }
        let most = if mode == Mode::Simple { VARIABLES_MAX } else { PARAMETERS_MAX };
        if found.len() > most {
            return problem(format!("{} variables in a statement; allowed: {most}", found.len()));
        }
        let mut parts = Vec::with_capacity(found.len() + 1);
        let mut from = 0;
        for (place, name) in &found {
            parts.push(sql.text[from..*place].to_owned());
            from = place + 1 + name.len();
        }
        parts.push(sql.text[from..].to_owned());
        let order = (1..).take(found.len()).collect();
        Ok(Self {
            name,
            query: Query::of_parts(parts, order).as_text(),
            variables: found.into_iter().map(|(_, name)| names.place(name)).collect(),
            gset: None,
            effects: effects(sql),
        })
    }

    /// How many statements it holds, those that open or close a block not counted; 255 stands for as many or more.
    pub(super) fn statements(&self) -> u32 {
        let count = self.effects.iter().filter(|effect| **effect == Effect::None).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// True if it has several results, of which only the last counts.
    pub(super) fn is_joined(&self) -> bool {
        self.effects.len() > 1
    }

    /// Whether the server may have changed something for good once it has read the command, with a block open or not;
    /// and whether a block is open afterwards. When in doubt, yes and no.
    pub(super) fn outcome(&self, in_block: bool) -> (bool, bool) {
        let step = |(commits, in_block): (bool, bool), effect: &Effect| match effect {
            Effect::Opens => (commits, true),
            Effect::Closes => (true, false),
            Effect::Discards => (commits, false),
            Effect::None => (commits || !in_block, in_block),
        };
        self.effects.iter().fold((false, in_block), step)
    }
}

/// The variables in `text`: where each colon stands, and the name.
fn variables_in(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(colon) = text[place..].find(':').map(|distance| place + distance) {
        if bytes.get(colon + 1).is_some_and(|&byte| starts(byte)) {
            let length = bytes[colon + 1..].iter().take_while(|&&byte| continues(byte)).count();
            place = colon + 1 + length;
            found.push((colon, &text[colon + 1..place]));
        } else {
            // Several colons in a row, as those of a cast, are never a variable's.
            place = colon + bytes[colon..].iter().take_while(|&&byte| byte == b':').count();
        }
    }
    found
}

fn effects(sql: &Sql) -> Vec<Effect> {
    let starts = std::iter::once(0).chain(sql.joints.iter().copied());
    let ends = sql.joints.iter().copied().chain([sql.text.len()]);
    starts.zip(ends).filter_map(|(start, end)| effect(sql, start, end)).collect()
}

/// What the statement in `start..end` of the text does. `None` if there is none.
fn effect(sql: &Sql, start: usize, end: usize) -> Option<Effect> {
    let bytes = &sql.text.as_bytes()[..end];
    let mut place = start;
    while place < end {
        if let Some(range) = sql.quoted.iter().find(|range| range.contains(&place)) {
            place = range.end;
        } else if bytes[place].is_ascii_whitespace() || bytes[place] == b';' {
            place += 1;
        } else {
            break;
        }
    }
    let word: String =
        bytes[place.min(end)..].iter().take_while(|&&byte| continues(byte)).map(|&byte| byte as char).collect();
    match word.to_ascii_lowercase().as_str() {
        "" if place >= end => None,
        "begin" | "start" => Some(Effect::Opens),
        "commit" | "end" | "prepare" => Some(Effect::Closes),
        "rollback" | "abort" => Some(Effect::Discards),
        _ => Some(Effect::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::source::Cursor;
    use crate::script::sql::scan;

    fn command(text: &str, mode: Mode) -> Result<Command, String> {
        let (sql, _) = scan(&mut Cursor::new(text)).unwrap();
        Command::new(&sql, String::new(), mode, &mut Names::default()).map_err(|problem| problem.message)
    }

    #[test]
    fn each_occurrence_is_a_parameter() {
        let command = command("SELECT :a::int, :b, :a, x[1:2], :é, :::c, ': d:';", Mode::Extended).unwrap();
        assert_eq!(command.query.sql(), "SELECT $1::int, $2, $3, x[1:2], $4, :::c, ': d:';");
        assert_eq!(command.variables, [0, 1, 0, 2]);
    }

    #[test]
    fn what_only_simple_mode_can_do_is_refused_elsewhere() {
        for text in ["SELECT ':a';", "SELECT 1 /* :a */;", "SELECT 1 \\; SELECT 2;"] {
            assert!(command(text, Mode::Simple).is_ok(), "{text}");
            assert!(command(text, Mode::Prepared).unwrap_err().contains("mode simple"), "{text}");
        }
    }

    #[test]
    fn blocks_are_followed() {
        let outcome = |text: &str, in_block| command(text, Mode::Simple).unwrap().outcome(in_block);
        assert_eq!(outcome("/* a */ BEGIN;", false), (false, true));
        assert_eq!(outcome("UPDATE t SET x = 1;", true), (false, true));
        assert_eq!(outcome("UPDATE t SET x = 1;", false), (true, false));
        assert_eq!(outcome("END;", true), (true, false));
        assert_eq!(outcome("ROLLBACK;", true), (false, false));
        assert_eq!(outcome("BEGIN \\; SELECT 1 \\; COMMIT;", false), (true, false));
        assert_eq!(command("BEGIN \\; SELECT 1 \\; SELECT 2 \\; COMMIT \\; ;", Mode::Simple).unwrap().statements(), 2);
    }
}
