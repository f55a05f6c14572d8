//! The words of an expression. It ends with its line; a backslash before the line's end carries it on.

use super::super::names::{continues, starts};
use super::super::source::{Cursor, Problem};
use super::super::value::{Value, parse_double};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Constant(Value),
    /// 9223372036854775808, which is an integer only behind a minus.
    TooLargeByOne,
    Variable(String),
    /// A function's name or a keyword.
    Word(String),
    /// An operator, a bracket or a comma.
    Symbol(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 20] =
    ["<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "#", "~", "(", ")"];
const COMMA: &str = ",";

/// The next token and where it starts.
pub(super) fn token(cursor: &mut Cursor<'_>) -> Result<(usize, Token), Problem> {
    cursor.skip_blanks();
    let at = cursor.at();
    let rest = cursor.rest();
    let token = match rest.as_bytes() {
        [] | [b'\n', ..] => {
            cursor.skip(usize::from(!rest.is_empty()));
            return Ok((at, Token::End));
        }
        [b':', byte, ..] if continues(*byte) => {
            cursor.skip(1);
            Token::Variable(cursor.take_while(continues).to_owned())
        }
        [byte, ..] if starts(*byte) => Token::Word(cursor.take_while(continues).to_owned()),
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => number(cursor).map_err(|message| Problem { at, message })?,
        _ => {
            let symbol = SYMBOLS.into_iter().chain([COMMA]).find(|symbol| rest.starts_with(symbol));
            let Some(symbol) = symbol else {
                let character = rest.chars().next().unwrap_or_default();
                return Err(Problem { at, message: format!("unexpected character {character:?} in an expression") });
            };
            cursor.skip(symbol.len());
            // Two spellings of one operator.
            Token::Symbol(if symbol == "!=" { "<>" } else { symbol })
        }
    };
    Ok((at, token))
}

fn number(cursor: &mut Cursor<'_>) -> Result<Token, String> {
    let text = cursor.rest();
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let mut length = whole;
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    if let [b'e' | b'E', rest @ ..] = &text.as_bytes()[length..] {
        let sign = usize::from(matches!(rest, [b'+' | b'-', ..]));
        let exponent = digits(length + 1 + sign);
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let text = &text[..length];
    cursor.skip(length);
    if length > whole {
        return parse_double(text)
            .map(|value| Token::Constant(Value::Double(value)))
            .ok_or(format!("{text}: a double constant overflows"));
    }
    match text.parse() {
        Ok(value) => Ok(Token::Constant(Value::Integer(value))),
        Err(_) if text == "9223372036854775808" => Ok(Token::TooLargeByOne),
        Err(_) => Err(format!("{text}: an integer constant overflows")),
    }
}
