//! Statements as they go over the wire, in each of PostgreSQL's ways; encoded once, before the measured path.
//!
//! - prepared: Parse once a connection; then Bind, Execute each time.
//! - extended: Parse (unnamed), Bind, Execute each time.
//! - simple: Query with the values in the text; statements of one round trip are joined by semicolons.
//!
//! Where statements are described, a Describe of the portal stands between Bind and Execute, as libpq sends it. What does not
//! change from one execution to the next is kept as bytes: a head up to the values, and a tail after them.

use super::Error;
use super::values::{Form, sized};
use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

/// How statements are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Prepared once, then executed by name.
    #[default]
    Prepared,
    /// Parsed each time, with parameters apart from the text.
    Extended,
    /// Text with the values in it; answers are text too.
    Simple,
}

/// The messages of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// How statements are run.
    pub mode: Mode,
    /// Describe each portal, as libpq does; without effect in simple mode, where the server always describes.
    pub describe: bool,
}

/// A statement that connections will run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The text around the parameters, one part more than there are in `order`.
    parts: Vec<String>,
    /// Which parameter (from 1) follows each part but the last.
    order: Vec<u16>,
    form: Form,
    described: bool,
    at_first_use: bool,
}

impl Query {
    /// A statement with `$1`... for its parameters, outside quotes. Values and answers are binary.
    pub fn new(sql: &str) -> Self {
        let (mut parts, mut order) = (vec![String::new()], Vec::new());
        let mut quote = None;
        let mut rest = sql;
        while let Some(next) = rest.chars().next() {
            let digits = rest[next.len_utf8()..].bytes().take_while(u8::is_ascii_digit).count();
            let number = if next == '$' && quote.is_none() { rest[1..1 + digits].parse().ok() } else { None };
            let taken = next.len_utf8() + if number.is_some() { digits } else { 0 };
            if let Some(number) = number {
                order.push(number);
                parts.push(String::new());
            } else if let Some(part) = parts.last_mut() {
                part.push_str(&rest[..taken]);
            }
            quote = match quote {
                None if matches!(next, '\'' | '"') => Some(next),
                Some(open) if open == next => None,
                same => same,
            };
            rest = &rest[taken..];
        }
        Self { parts, order, form: Form::Binary, described: false, at_first_use: false }
    }

    /// A statement of text `parts`, between which the parameters of `order` (from 1) stand: one part more than parameters.
    /// Values and answers are binary.
    ///
    /// # Panics
    /// When the number of parts is not one more.
    pub fn of_parts(parts: Vec<String>, order: Vec<u16>) -> Self {
        assert_eq!(parts.len(), order.len() + 1, "one part more than parameters");
        Self { parts, order, form: Form::Binary, described: false, at_first_use: false }
    }

    /// The same with values and answers as text.
    #[must_use]
    pub fn as_text(self) -> Self {
        Self { form: Form::Text, ..self }
    }

    /// The same, described each time whatever the [`Protocol`] says, for who must know the answer's columns.
    #[must_use]
    pub fn described(self) -> Self {
        Self { described: true, ..self }
    }

    /// The same, prepared when it is first run and not when a connection is opened, because it may not be possible then.
    #[must_use]
    pub fn prepared_at_first_use(self) -> Self {
        Self { at_first_use: true, ..self }
    }

    /// The text with `$1`... for the parameters.
    pub fn sql(&self) -> String {
        let mut sql = self.parts[0].clone();
        for (number, part) in self.order.iter().zip(&self.parts[1..]) {
            sql.push_str(&format!("${number}{part}"));
        }
        sql
    }

    fn parameters(&self) -> u16 {
        self.order.iter().copied().max().unwrap_or(0)
    }
}

/// One encoded statement.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) form: Form,
    /// The Parse that is sent once, in prepared mode.
    pub(super) parse: Box<[u8]>,
    pub(super) at_first_use: bool,
    /// Everything up to the values.
    pub(super) head: Box<[u8]>,
    /// Where in the head Bind's length stands.
    pub(super) length_at: usize,
    /// Everything after the values.
    pub(super) tail: Box<[u8]>,
    /// How many bytes of the tail are Bind's.
    pub(super) bind_tail: usize,
    /// In simple mode: the text around the values, and which value (from 0) follows each part but the last.
    pub(super) parts: Vec<Box<[u8]>>,
    pub(super) order: Vec<usize>,
}

/// The statements of a workload, encoded; shared by its connections.
#[derive(Debug)]
pub struct Statements {
    pub(super) mode: Mode,
    pub(super) each: Vec<Encoded>,
}

impl Statements {
    /// Encodes `queries`.
    ///
    /// # Errors
    /// When a text holds a zero byte.
    pub fn new(queries: &[Query], protocol: Protocol) -> Result<Self, Error> {
        let zero = |query: &&Query| query.parts.iter().any(|part| part.contains('\0'));
        if let Some(query) = queries.iter().find(zero) {
            return Err(Error::Protocol(format!("a statement with a zero byte: {}", query.sql().escape_debug())));
        }
        let each = queries.iter().enumerate().map(|(place, query)| encoded(place, query, protocol)).collect();
        Ok(Self { mode: protocol.mode, each })
    }

    /// How they are run.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

fn encoded(place: usize, query: &Query, protocol: Protocol) -> Encoded {
    let name = if protocol.mode == Mode::Prepared { format!("s{place}") } else { String::new() };
    let mut parse = BytesMut::new();
    message(&mut parse, b'P', |out| {
        [name.as_bytes(), b"\0", query.sql().as_bytes(), b"\0"].iter().for_each(|part| out.put_slice(part));
        // The server finds the types of the parameters.
        out.put_u16(0);
    });
    let mut head = if protocol.mode == Mode::Extended { parse.clone() } else { BytesMut::new() };
    let length_at = head.len() + 1;
    let format = u16::from(query.form == Form::Binary);
    // A Bind: length to be filled in, unnamed portal, statement, one format for all parameters (none: text), their number.
    head.put_slice(b"B\0\0\0\0\0");
    head.put_slice(name.as_bytes());
    head.put_u8(0);
    let formats: &[u16] = if query.form == Form::Binary && query.parameters() > 0 { &[1, 1] } else { &[0] };
    formats.iter().for_each(|&word| head.put_u16(word));
    head.put_u16(query.parameters());
    let mut tail = BytesMut::new();
    [1, format].iter().for_each(|&word| tail.put_u16(word));
    let bind_tail = tail.len();
    if protocol.describe || query.described {
        message(&mut tail, b'D', |out| out.put_slice(b"P\0"));
    }
    // Of the unnamed portal, all rows.
    message(&mut tail, b'E', |out| out.put_slice(&[0; 5]));
    Encoded {
        form: query.form,
        parse: Box::from(&parse[..]),
        at_first_use: query.at_first_use,
        head: Box::from(&head[..]),
        length_at,
        tail: Box::from(&tail[..]),
        bind_tail,
        parts: query.parts.iter().map(|part| Box::from(part.as_bytes())).collect(),
        order: query.order.iter().map(|&number| usize::from(number.max(1)) - 1).collect(),
    }
}

/// Writes a message with its length filled in afterwards.
fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    sized(out, true, body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_outside_quotes() {
        let query = Query::new("SELECT '$1', \"$2\", $2 + $1, 'it''s $3' FROM t WHERE é = $10");
        assert_eq!(query.order, [2, 1, 10]);
        assert_eq!(query.parts[0], "SELECT '$1', \"$2\", ");
        assert_eq!(
            (query.sql().as_str(), query.parameters()),
            ("SELECT '$1', \"$2\", $2 + $1, 'it''s $3' FROM t WHERE é = $10", 10)
        );
        assert_eq!(Query::of_parts(query.parts.clone(), query.order.clone()), query);
        assert_eq!(Query::new("COST $ and $x").sql(), "COST $ and $x");
    }

    #[test]
    fn zero_bytes_are_refused() {
        assert!(Statements::new(&[Query::new("SELECT 1\0")], Protocol::default()).is_err());
    }
}
