//! Where an SQL command of a script ends, by psql's rules: at a semicolon outside quotes, comments, brackets and the
//! bodies of functions, at a backslash, or with the file. `\;` and `\:` stand for the bare characters, so that several
//! statements can be sent as one.

use super::names::{continues, starts};
use super::source::{Cursor, Problem};
use std::ops::Range;

/// An SQL command as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sql {
    /// Without what psql takes out; leading spaces and line comments are gone.
    pub(super) text: String,
    /// Where the command begins in the file.
    pub(super) at: usize,
    /// The parts of the text that are quoted or comments.
    pub(super) quoted: Vec<Range<usize>>,
    /// Where in the text its statements end that others follow.
    pub(super) joints: Vec<usize>,
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Semicolon,
    /// A meta command follows; the backslash is taken.
    Backslash,
    File,
}

/// Reads up to the end of the next command. Its text is empty if there was none.
pub(super) fn scan(cursor: &mut Cursor<'_>) -> Result<(Sql, End), Problem> {
    let mut scanner = Scanner { cursor, sql: Sql::default(), brackets: 0, body: FunctionBody::default() };
    let end = scanner.scan()?;
    Ok((scanner.sql, end))
}

struct Scanner<'a, 'b> {
    cursor: &'a mut Cursor<'b>,
    sql: Sql,
    brackets: usize,
    body: FunctionBody,
}

impl Scanner<'_, '_> {
    fn scan(&mut self) -> Result<End, Problem> {
        loop {
            let rest = self.cursor.rest();
            match rest.as_bytes() {
                [] => return Ok(End::File),
                [b'\\', escaped @ (b';' | b':'), ..] => {
                    self.cursor.skip(1);
                    self.take(1);
                    if *escaped == b';' {
                        self.sql.joints.push(self.sql.text.len());
                        self.body = FunctionBody::default();
                    }
                }
                [b'\\', ..] => {
                    self.cursor.skip(1);
                    return Ok(End::Backslash);
                }
                [b';', ..] => {
                    if self.sql.text.is_empty() {
                        self.cursor.skip(1);
                    } else {
                        self.take(1);
                    }
                    if self.brackets == 0 && !self.body.is_open() {
                        return Ok(End::Semicolon);
                    }
                }
                [b'-', b'-', ..] => self.take_line_comment(rest.find('\n').unwrap_or(rest.len())),
                [b'/', b'*', ..] => self.take_quoted(block_comment(rest), "comment")?,
                [b'\'', ..] => self.take_quoted(closing(rest, '\'', false), "quoted string")?,
                [b'"', ..] => self.take_quoted(closing(rest, '"', false), "quoted name")?,
                [b'$', ..] => match dollar_tag(rest) {
                    Some(tag) => {
                        let end = rest[tag.len()..].find(tag).map(|place| 2 * tag.len() + place);
                        self.take_quoted(end, "dollar-quoted string")?;
                    }
                    None => self.take(1),
                },
                [byte, ..] if starts(*byte) => self.take_word()?,
                [byte, ..] => {
                    match byte {
                        b'(' => self.brackets += 1,
                        b')' => self.brackets = self.brackets.saturating_sub(1),
                        _ => {}
                    }
                    self.take(1);
                }
            }
        }
    }

    /// Takes `bytes` into the text; spaces only once it has begun.
    fn take(&mut self, bytes: usize) {
        let taken = &self.cursor.rest()[..bytes];
        if self.sql.text.is_empty() {
            self.sql.at = self.cursor.at();
        }
        if !self.sql.text.is_empty() || !taken.bytes().all(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
            self.sql.text.push_str(taken);
        }
        self.cursor.skip(bytes);
    }

    fn take_line_comment(&mut self, bytes: usize) {
        if self.sql.text.is_empty() {
            self.cursor.skip(bytes);
        } else {
            let start = self.sql.text.len();
            self.take(bytes);
            self.sql.quoted.push(start..self.sql.text.len());
        }
    }

    /// Takes what is quoted, up to `end` if it has one.
    fn take_quoted(&mut self, end: Option<usize>, what: &str) -> Result<(), Problem> {
        let Some(end) = end else {
            return Err(Problem { at: self.cursor.at(), message: format!("a {what} without an end") });
        };
        let start = self.sql.text.len();
        self.take(end);
        self.sql.quoted.push(start..self.sql.text.len());
        Ok(())
    }

    /// Takes a word, and the string that belongs to it if the word is E.
    fn take_word(&mut self) -> Result<(), Problem> {
        let rest = self.cursor.rest();
        let length = rest.bytes().take_while(|&byte| continues(byte) || byte == b'$').count();
        let word = &rest[..length];
        self.take(length);
        if word.eq_ignore_ascii_case("e") && rest[length..].starts_with('\'') {
            return self.take_quoted(closing(&rest[length..], '\'', true), "quoted string");
        }
        self.body.word(word, self.brackets == 0);
        Ok(())
    }
}

/// How long the quoted text at the start of `text` is; a doubled quote does not end it, nor does one after a backslash
/// if those escape.
fn closing(text: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((place, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(place + 1);
        }
    }
    None
}

/// How long the comment at the start of `text` is, with the comments within it.
fn block_comment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut place) = (0, 0);
    while place + 1 < bytes.len() {
        let step = match &bytes[place..place + 2] {
            b"/*" => 1,
            b"*/" => -1,
            _ => 0,
        };
        depth += step;
        place += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            return Some(place);
        }
    }
    None
}

/// The tag of the dollar quote at the start of `text`, with its dollars.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let name = &text.as_bytes()[1..end - 1];
    let is_name = name.first().is_none_or(|&byte| starts(byte)) && name.iter().all(|&byte| continues(byte));
    is_name.then(|| &text[..end])
}

/// The words by which `CREATE [OR REPLACE] FUNCTION` or `PROCEDURE` is known, and how many BEGINs (and CASEs within
/// them) of its body are open.
#[derive(Clone, Debug, Default)]
struct FunctionBody {
    first_words: Vec<String>,
    depth: usize,
}

impl FunctionBody {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn word(&mut self, word: &str, outside_brackets: bool) {
        let word = word.to_ascii_lowercase();
        if outside_brackets && self.creates_routine() {
            match word.as_str() {
                "begin" => self.depth += 1,
                "case" if self.depth > 0 => self.depth += 1,
                "end" => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.first_words.len() < 4 {
            self.first_words.push(word);
        }
    }

    fn creates_routine(&self) -> bool {
        let words: Vec<&str> = self.first_words.iter().map(String::as_str).collect();
        matches!(
            words[..],
            ["create", "function" | "procedure", ..] | ["create", "or", "replace", "function" | "procedure"]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<(String, End)> {
        let mut cursor = Cursor::new(text);
        let mut found = Vec::new();
        loop {
            let (sql, end) = scan(&mut cursor).unwrap();
            found.push((sql.text, end));
            if end == End::File {
                return found;
            }
        }
    }

    fn whole(text: &str) {
        let file = format!("{text}\nSELECT 2;");
        let found = commands(&file);
        assert_eq!(found[0], (text.to_owned(), End::Semicolon), "{text}");
        assert_eq!(found[1].0, "SELECT 2;", "{text}");
    }

    #[test]
    fn semicolons_within_something_end_nothing() {
        whole("SELECT 'a;b''c;', \"d;\"\"e\", E'f\\';g', N'h\\' ;");
        whole("SELECT $$;$$, $a$ $$ ; $b$ $a$, x$y$z;");
        whole("SELECT 1 -- ; it's\n + 2;");
        whole("SELECT /* ; /* ' */ ; */ 1;");
        whole("CREATE RULE r AS ON INSERT TO t DO (DELETE FROM u; DELETE FROM v);");
        whole(
            "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;",
        );
        whole("BEGIN;");
    }

    #[test]
    fn backslashes_end_a_command_or_escape() {
        let found = commands("SELECT 1 AS a \\gset\n");
        assert_eq!(found[0], ("SELECT 1 AS a ".to_owned(), End::Backslash));
        let mut cursor = Cursor::new("  SELECT 1 \\; SELECT 2\\:x;");
        let (sql, _) = scan(&mut cursor).unwrap();
        assert_eq!((sql.text.as_str(), &sql.joints[..], sql.at), ("SELECT 1 ; SELECT 2:x;", &[10][..], 2));
    }

    #[test]
    fn what_is_before_a_command_is_not_sent() {
        let found = commands("-- a; comment\n\n;;  SELECT 1;\n--end");
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["", "", "SELECT 1;", ""]);
    }

    #[test]
    fn open_ends_are_refused() {
        for text in ["SELECT 'a", "SELECT \"a", "SELECT $a$ $$", "/* /* */", "SELECT E'a\\'"] {
            assert!(scan(&mut Cursor::new(text)).is_err(), "{text}");
        }
    }
}
