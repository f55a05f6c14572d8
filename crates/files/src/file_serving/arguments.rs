//! The words of a line of a load file, taken one after the other.

use super::script::Generation;

/// A word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Plain(&'a str),
    Quoted(&'a str),
}

/// The words of a line, without its comment.
///
/// # Errors
/// When a quote is not closed.
pub(super) fn split<'a>(line: &'a str, words: &mut Vec<Word<'a>>) -> Result<(), String> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let after = if let Some(quoted) = rest.strip_prefix('"') {
            let (word, after) = quoted.split_once('"').ok_or("a quote is not closed")?;
            words.push(Word::Quoted(word));
            after
        } else {
            let end = rest.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            words.push(Word::Plain(word));
            after
        };
        rest = after.trim_ascii_start();
    }
    Ok(())
}

/// What is left of a line's words.
pub(super) struct Arguments<'w, 'a>(&'w [Word<'a>]);

impl<'w, 'a> Arguments<'w, 'a> {
    /// All of `words` are left.
    pub(super) fn new(words: &'w [Word<'a>]) -> Self {
        Self(words)
    }

    pub(super) fn path(&mut self) -> Result<&'a str, String> {
        match self.0.split_first() {
            Some((Word::Quoted(path), rest)) => {
                self.0 = rest;
                Ok(path)
            }
            _ => Err("a path in quotes is missing".to_owned()),
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, String> {
        match self.0.split_first() {
            Some((Word::Plain(word), rest)) => {
                self.0 = rest;
                Ok(word)
            }
            _ => Err(format!("{what} is missing")),
        }
    }

    pub(super) fn handle(&mut self) -> Result<i64, String> {
        let word = self.word("a handle")?;
        word.parse().map_err(|_| format!("{word:?} is not a handle"))
    }

    pub(super) fn number(&mut self, what: &str) -> Result<u64, String> {
        let word = self.word(what)?;
        number(word).ok_or_else(|| format!("{what}: {word:?} is not a number"))
    }

    pub(super) fn bytes(&mut self, what: &str) -> Result<u32, String> {
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| format!("{what}: {number} is too large"))
    }

    /// A number that nothing depends on, if there is one.
    pub(super) fn optional(&mut self) -> Option<u64> {
        let (Word::Plain(word), rest) = self.0.split_first()? else { return None };
        let number = number(word).filter(|_| !is_status(word, rest))?;
        self.0 = rest;
        Some(number)
    }

    /// Whether it is to end well, and that nothing follows.
    pub(super) fn status(&mut self, generation: Generation) -> Result<Option<bool>, String> {
        let (word, rest) = match (self.0.split_first(), generation) {
            (Some((Word::Plain(word), rest)), _) => (*word, rest),
            (None, Generation::Two) => return Ok(None),
            _ => return Err("the status at its end (NT_STATUS_... or 0x...) is missing".to_owned()),
        };
        if !rest.is_empty() {
            return Err(format!("it goes on after {word:?}"));
        }
        let code = word.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match (word.strip_prefix("NT_STATUS_"), code) {
            (Some(name), _) => Ok(Some(name == "OK")),
            (None, Some(code)) => Ok(Some(code == 0)),
            _ => Err(format!("the status {word:?} is not known: NT_STATUS_... or 0x...")),
        }
    }
}

/// Whether a word that could be a number is the line's status: in hexadecimal and the last one.
fn is_status(word: &str, rest: &[Word<'_>]) -> bool {
    rest.is_empty() && word.starts_with("0x") && word.len() == 10
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_blanks_outside_of_quotes() {
        let mut words = Vec::new();
        split("  Rename \"a b\"\t\"c\" 0x0 # and back", &mut words).unwrap();
        assert_eq!(words, [Word::Plain("Rename"), Word::Quoted("a b"), Word::Quoted("c"), Word::Plain("0x0")]);
        words.clear();
        split("# nothing", &mut words).unwrap();
        assert_eq!(words, []);
        assert!(split("Unlink \"a", &mut words).is_err());
    }
}
