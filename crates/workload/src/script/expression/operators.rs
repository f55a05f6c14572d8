//! Infix operators: how tightly they bind, and what they do.

use super::functions::Function;
use super::lexer::Token;

/// How tightly an operator binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Loosest,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Sign,
}

/// What an infix operator makes of its operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Infix {
    Or,
    And,
    Call(Function),
    /// With its operands exchanged.
    Reversed(Function),
}

/// How tightly an infix operator binds, and what it does.
pub(super) fn infix(token: &Token) -> Option<(Level, Infix)> {
    let call = |level, function| Some((level, Infix::Call(function)));
    match token {
        Token::Word(word) if word.eq_ignore_ascii_case("or") => Some((Level::Loosest, Infix::Or)),
        Token::Word(word) if word.eq_ignore_ascii_case("and") => Some((Level::And, Infix::And)),
        Token::Symbol(symbol) => match *symbol {
            "<" => call(Level::Comparison, Function::Less),
            "<=" => call(Level::Comparison, Function::LessOrEqual),
            ">" => Some((Level::Comparison, Infix::Reversed(Function::Less))),
            ">=" => Some((Level::Comparison, Infix::Reversed(Function::LessOrEqual))),
            "=" => call(Level::Comparison, Function::Equal),
            "<>" => call(Level::Comparison, Function::NotEqual),
            "|" => call(Level::Bits, Function::BitOr),
            "#" => call(Level::Bits, Function::BitXor),
            "&" => call(Level::Bits, Function::BitAnd),
            "<<" => call(Level::Bits, Function::ShiftLeft),
            ">>" => call(Level::Bits, Function::ShiftRight),
            "+" => call(Level::Sum, Function::Add),
            "-" => call(Level::Sum, Function::Subtract),
            "*" => call(Level::Product, Function::Multiply),
            "/" => call(Level::Product, Function::Divide),
            "%" => call(Level::Product, Function::Remainder),
            _ => None,
        },
        _ => None,
    }
}

/// The level above `level`.
pub(super) fn tighter(level: Level) -> Level {
    match level {
        Level::Loosest => Level::And,
        Level::And => Level::Not,
        Level::Not => Level::Is,
        Level::Is => Level::Comparison,
        Level::Comparison => Level::Bits,
        Level::Bits => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product | Level::Sign => Level::Sign,
    }
}
