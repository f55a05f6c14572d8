//! What an expression gives, with pgbench's rules for types, NULL and overflow.

use super::Expression;
use super::functions::{ARGUMENTS_MAX, Function};
use crate::script::hash::{fnv1a, murmur2, permute};
use crate::script::names::Names;
use crate::script::random::Generator;
use crate::script::value::{Value, in_words};
use crate::script::variables::Variables;
use std::f64::consts::PI;

/// What an expression can see, and the stream it draws from.
#[derive(Debug)]
pub(in crate::script) struct Scope<'a> {
    pub(in crate::script) variables: &'a Variables,
    pub(in crate::script) names: &'a Names,
    pub(in crate::script) draws: &'a mut Generator,
}

const GAUSSIAN_PARAMETER_MIN: f64 = 2.0;
const ZIPFIAN_PARAMETER_MIN: f64 = 1.001;
const ZIPFIAN_PARAMETER_MAX: f64 = 1000.0;

impl Expression {
    /// # Errors
    /// What pgbench would end the client for.
    pub(in crate::script) fn value(&self, scope: &mut Scope<'_>) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(place) => scope.variables.value(*place, scope.names),
            Self::And(operands) => either(operands, false, scope),
            Self::Or(operands) => either(operands, true, scope),
            Self::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if condition.value(scope)?.truth() {
                        return result.value(scope);
                    }
                }
                otherwise.value(scope)
            }
            Self::Call(function, arguments) => {
                let mut values = [Value::Null; ARGUMENTS_MAX];
                let mut has_null = false;
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.value(scope)?;
                    has_null |= *value == Value::Null;
                }
                if has_null && !matches!(function, Function::Is | Function::Debug) {
                    return Ok(Value::Null);
                }
                call(*function, &values[..arguments.len()], scope.draws)
            }
        }
    }
}

/// AND, which `false` decides, and OR, which `true` decides. Unlike in SQL, a NULL on the left is the result whatever
/// is on the right, which is not evaluated.
fn either(operands: &[Expression; 2], decides: bool, scope: &mut Scope<'_>) -> Result<Value, String> {
    for operand in operands {
        match operand.value(scope)? {
            Value::Null => return Ok(Value::Null),
            value if value.boolean()? == decides => return Ok(Value::Boolean(decides)),
            _ => {}
        }
    }
    Ok(Value::Boolean(!decides))
}

fn call(function: Function, values: &[Value], draws: &mut Generator) -> Result<Value, String> {
    match (function, values) {
        (Function::Pi, _) => Ok(Value::Double(PI)),
        (Function::Least | Function::Greatest, values) => extreme(function, values),
        (Function::Not, [value]) => Ok(Value::Boolean(!value.boolean()?)),
        (Function::Is, [left, right]) => Ok(Value::Boolean(left == right)),
        (Function::Debug, [value]) => Ok(*value),
        (Function::Int, [value]) => value.integer().map(Value::Integer),
        (Function::Abs, [Value::Integer(value)]) => Ok(Value::Integer(value.wrapping_abs())),
        (_, [value]) => Ok(Value::Double(of_double(function, value.double()?))),
        (Function::Power, [base, exponent]) => Ok(Value::Double(base.double()?.powf(exponent.double()?))),
        (
            Function::BitAnd | Function::BitOr | Function::BitXor | Function::ShiftLeft | Function::ShiftRight,
            [a, b],
        ) => Ok(Value::Integer(bits(function, a.integer()?, b.integer()?))),
        (Function::HashFnv1a, [value, seed]) => Ok(Value::Integer(fnv1a(value.integer()?, seed.integer()?))),
        (Function::HashMurmur2, [value, seed]) => Ok(Value::Integer(murmur2(value.integer()?, seed.integer()?))),
        (Function::Permute, [value, size, seed]) => {
            let (value, size, seed) = (value.integer()?, size.integer()?, seed.integer()?);
            if size <= 0 {
                return Err("permute size parameter must be greater than zero".to_owned());
            }
            Ok(Value::Integer(permute(value, size, seed)))
        }
        (Function::Random, [low, high]) => {
            let (low, high) = range(*low, *high)?;
            Ok(Value::Integer(draws.between(low, high)))
        }
        (_, [low, high, parameter]) => {
            let (low, high) = range(*low, *high)?;
            skewed(function, low, high, parameter.double()?, draws).map(Value::Integer)
        }
        (Function::Remainder, [left, right]) => of_integers(function, left.integer()?, right.integer()?),
        (_, [left @ Value::Double(_), right] | [left, right @ Value::Double(_)]) => {
            Ok(of_doubles(function, left.double()?, right.double()?))
        }
        (_, [left, right]) => of_integers(function, left.integer()?, right.integer()?),
        // The parser has counted the arguments.
        _ => Err("a call with a wrong number of arguments".to_owned()),
    }
}

fn of_double(function: Function, value: f64) -> f64 {
    match function {
        Function::Abs => value.abs(),
        Function::Exp => value.exp(),
        Function::Ln => value.ln(),
        Function::Sqrt => value.sqrt(),
        _ => value,
    }
}

fn of_doubles(function: Function, left: f64, right: f64) -> Value {
    match function {
        Function::Add => Value::Double(left + right),
        Function::Subtract => Value::Double(left - right),
        Function::Multiply => Value::Double(left * right),
        Function::Divide => Value::Double(left / right),
        Function::Equal => Value::Boolean(left == right),
        Function::NotEqual => Value::Boolean(left != right),
        Function::Less => Value::Boolean(left < right),
        _ => Value::Boolean(left <= right),
    }
}

fn of_integers(function: Function, left: i64, right: i64) -> Result<Value, String> {
    let checked = |result: Option<i64>, name: &str| {
        result.map(Value::Integer).ok_or_else(|| format!("bigint {name} out of range"))
    };
    match function {
        Function::Add => checked(left.checked_add(right), "add"),
        Function::Subtract => checked(left.checked_sub(right), "sub"),
        Function::Multiply => checked(left.checked_mul(right), "mul"),
        Function::Divide | Function::Remainder if right == 0 => Err("division by zero".to_owned()),
        Function::Divide => checked(left.checked_div(right), "div"),
        Function::Remainder => Ok(Value::Integer(left.wrapping_rem(right))),
        Function::Equal => Ok(Value::Boolean(left == right)),
        Function::NotEqual => Ok(Value::Boolean(left != right)),
        Function::Less => Ok(Value::Boolean(left < right)),
        _ => Ok(Value::Boolean(left <= right)),
    }
}

/// Shifts count modulo 64, as the processors do for which pgbench is built.
fn bits(function: Function, left: i64, right: i64) -> i64 {
    match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        Function::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }
}

/// The least or greatest; a double if one of them is.
fn extreme(function: Function, values: &[Value]) -> Result<Value, String> {
    let is_least = function == Function::Least;
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let values: Result<Vec<f64>, String> = values.iter().map(|value| value.double()).collect();
        // What cannot be compared replaces what was there, as in pgbench.
        let choose =
            |held: f64, next: f64| if (is_least && held < next) || (!is_least && held > next) { held } else { next };
        return Ok(values?.into_iter().reduce(choose).map_or(Value::Null, Value::Double));
    }
    let values: Result<Vec<i64>, String> = values.iter().map(|value| value.integer()).collect();
    let values = values?.into_iter();
    Ok((if is_least { values.min() } else { values.max() }).map_or(Value::Null, Value::Integer))
}

/// The bounds of a draw.
fn range(low: Value, high: Value) -> Result<(i64, i64), String> {
    let (low, high) = (low.integer()?, high.integer()?);
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    match high.checked_sub(low).and_then(|difference| difference.checked_add(1)) {
        Some(_) => Ok((low, high)),
        None => Err("random range is too large".to_owned()),
    }
}

fn skewed(function: Function, low: i64, high: i64, parameter: f64, draws: &mut Generator) -> Result<i64, String> {
    let refused =
        |name: &str, allowed: String| Err(format!("{name} parameter must be {allowed} (not {})", in_words(parameter)));
    // With what is no number pgbench draws for ever, or nonsense.
    match function {
        Function::RandomGaussian if parameter.is_nan() || parameter < GAUSSIAN_PARAMETER_MIN => {
            refused("gaussian", format!("at least {GAUSSIAN_PARAMETER_MIN:.6}"))
        }
        Function::RandomGaussian => Ok(draws.gaussian(low, high, parameter)),
        Function::RandomZipfian if !(ZIPFIAN_PARAMETER_MIN..=ZIPFIAN_PARAMETER_MAX).contains(&parameter) => {
            refused("zipfian", format!("in range [{ZIPFIAN_PARAMETER_MIN:.3}, {ZIPFIAN_PARAMETER_MAX:.0}]"))
        }
        Function::RandomZipfian => Ok(draws.zipfian(low, high, parameter)),
        _ if parameter.is_nan() || parameter <= 0.0 => refused("exponential", "greater than zero".to_owned()),
        _ => Ok(draws.exponential(low, high, parameter)),
    }
}
