//! pgbench's expression language: what `\set`, `\if` and `\elif` hold.
//!
//! Binding, loosest first: OR, AND, NOT, IS with ISNULL and NOTNULL, comparisons (which do not chain), bit operations
//! with ~, sums, products, signs. A minus sign is a subtraction from 0 and ~ an exclusive or with -1, as in pgbench.

mod evaluate;
mod functions;
mod lexer;
mod operators;

use super::names::Names;
use super::source::{Cursor, Problem};
use super::value::Value;
pub(super) use evaluate::Scope;
use functions::Function;
use lexer::Token;
use operators::{Infix, Level, infix, tighter};

/// Deeper expressions would exhaust the stack; no honest script comes near.
const TOKENS_MAX: usize = 1000;

/// An expression whose variables are resolved to their places.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Constant(Value),
    Variable(usize),
    Call(Function, Vec<Expression>),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    Case { branches: Vec<(Expression, Expression)>, otherwise: Box<Expression> },
}

/// Reads the expression that fills the rest of the line, and the line's end.
pub(super) fn parse(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<Expression, Problem> {
    let mut tokens = Vec::new();
    loop {
        let (at, token) = lexer::token(cursor).inspect_err(|_| cursor.skip_command())?;
        let is_end = token == Token::End;
        tokens.push((at, token));
        if is_end {
            break;
        }
        if tokens.len() > TOKENS_MAX {
            cursor.skip_command();
            return Err(Problem { at, message: format!("an expression of more than {TOKENS_MAX} words") });
        }
    }
    let mut parser = Parser { tokens, place: 0, names };
    let expression = parser.expression(Level::Loosest)?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    place: usize,
    names: &'a mut Names,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.place].1
    }

    fn at(&self) -> usize {
        self.tokens[self.place].0
    }

    /// The next token; the last one, the end, stays.
    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.place = (self.place + 1).min(self.tokens.len() - 1);
        token
    }

    fn unexpected(&self) -> Problem {
        let message = match self.peek() {
            Token::End => "the expression ends too early".to_owned(),
            Token::Constant(value) => {
                let mut text = Vec::new();
                value.write(&mut text);
                format!("unexpected {} in an expression", String::from_utf8_lossy(&text))
            }
            Token::TooLargeByOne => "9223372036854775808: an integer constant overflows".to_owned(),
            Token::Variable(name) => format!("unexpected :{name} in an expression"),
            Token::Word(word) => format!("unexpected {word} in an expression"),
            Token::Symbol(symbol) => format!("unexpected {symbol} in an expression"),
        };
        Problem { at: self.at(), message }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn taken_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.take();
        }
        found
    }

    fn taken_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        if found {
            self.take();
        }
        found
    }

    fn require_word(&mut self, word: &str) -> Result<(), Problem> {
        if self.taken_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// An expression of operators that bind as tightly as `loosest` or more so.
    fn expression(&mut self, loosest: Level) -> Result<Expression, Problem> {
        let mut left = self.operand()?;
        loop {
            if loosest <= Level::Is
                && let Some((value, is_negated)) = self.test()?
            {
                left = Expression::Call(Function::Is, vec![left, Expression::Constant(value)]);
                left = if is_negated { Expression::Call(Function::Not, vec![left]) } else { left };
                continue;
            }
            let Some((level, operator)) = infix(self.peek()).filter(|(level, _)| *level >= loosest) else {
                return Ok(left);
            };
            self.take();
            let right = self.expression(tighter(level))?;
            left = match operator {
                Infix::Or => Expression::Or(Box::new([left, right])),
                Infix::And => Expression::And(Box::new([left, right])),
                Infix::Call(function) => Expression::Call(function, vec![left, right]),
                Infix::Reversed(function) => Expression::Call(function, vec![right, left]),
            };
            let chained = level == Level::Comparison && infix(self.peek()).is_some_and(|(next, _)| next == level);
            if chained {
                return Err(self.unexpected());
            }
        }
    }

    /// What IS, ISNULL or NOTNULL asks for, if one follows, and whether it asks for the opposite.
    fn test(&mut self) -> Result<Option<(Value, bool)>, Problem> {
        if self.taken_word("isnull") {
            return Ok(Some((Value::Null, false)));
        }
        if self.taken_word("notnull") {
            return Ok(Some((Value::Null, true)));
        }
        if !self.taken_word("is") {
            return Ok(None);
        }
        let is_negated = self.taken_word("not");
        let words = [("null", Value::Null), ("true", Value::Boolean(true)), ("false", Value::Boolean(false))];
        let found = words.into_iter().find(|(word, _)| self.is_word(word));
        let (_, value) = found.ok_or_else(|| self.unexpected())?;
        self.take();
        Ok(Some((value, is_negated)))
    }

    fn operand(&mut self) -> Result<Expression, Problem> {
        let unexpected = self.unexpected();
        let integer = |value| Expression::Constant(Value::Integer(value));
        match self.take() {
            Token::Constant(value) => Ok(Expression::Constant(value)),
            Token::Variable(name) => Ok(Expression::Variable(self.names.place(&name))),
            Token::Word(word) => self.word(&word, unexpected),
            Token::Symbol("(") => {
                let inner = self.expression(Level::Loosest)?;
                if self.taken_symbol(")") { Ok(inner) } else { Err(self.unexpected()) }
            }
            Token::Symbol("+") => self.expression(Level::Sign),
            Token::Symbol("-") if *self.peek() == Token::TooLargeByOne => {
                self.take();
                Ok(integer(i64::MIN))
            }
            Token::Symbol("-") => {
                Ok(Expression::Call(Function::Subtract, vec![integer(0), self.expression(Level::Sign)?]))
            }
            Token::Symbol("~") => {
                let operand = self.expression(tighter(Level::Bits))?;
                Ok(Expression::Call(Function::BitXor, vec![integer(!0), operand]))
            }
            _ => Err(unexpected),
        }
    }

    fn word(&mut self, word: &str, unexpected: Problem) -> Result<Expression, Problem> {
        match word.to_ascii_lowercase().as_str() {
            "null" => Ok(Expression::Constant(Value::Null)),
            "true" => Ok(Expression::Constant(Value::Boolean(true))),
            "false" => Ok(Expression::Constant(Value::Boolean(false))),
            "not" => Ok(Expression::Call(Function::Not, vec![self.expression(Level::Not)?])),
            "case" => self.case(),
            "and" | "or" | "is" | "isnull" | "notnull" | "when" | "then" | "else" | "end" => Err(unexpected),
            name => {
                if !self.taken_symbol("(") {
                    return Err(if *self.peek() == Token::End { unexpected } else { self.unexpected() });
                }
                let arguments = self.arguments()?;
                let default_seed = || Expression::Variable(self.names.place(super::names::DEFAULT_SEED));
                let refused = |message| Problem { at: unexpected.at, message };
                let (function, arguments) = functions::call(name, arguments, default_seed).map_err(refused)?;
                Ok(Expression::Call(function, arguments))
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Problem> {
        let mut arguments = Vec::new();
        if self.taken_symbol(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(Level::Loosest)?);
            if self.taken_symbol(")") {
                return Ok(arguments);
            }
            if !self.taken_symbol(",") {
                return Err(self.unexpected());
            }
        }
    }

    fn case(&mut self) -> Result<Expression, Problem> {
        let mut branches = Vec::new();
        self.require_word("when")?;
        loop {
            let condition = self.expression(Level::Loosest)?;
            self.require_word("then")?;
            branches.push((condition, self.expression(Level::Loosest)?));
            if !self.taken_word("when") {
                break;
            }
        }
        let has_else = self.taken_word("else");
        let otherwise = if has_else { self.expression(Level::Loosest)? } else { Expression::Constant(Value::Null) };
        self.require_word("end")?;
        Ok(Expression::Case { branches, otherwise: Box::new(otherwise) })
    }
}
