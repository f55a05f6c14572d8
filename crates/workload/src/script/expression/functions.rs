//! The functions of expressions by name, those of pgbench 15.

/// What a call does with its arguments, all of which are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// pgbench evaluates no more.
pub(super) const ARGUMENTS_MAX: usize = 16;

/// Name, function, how many arguments it takes at least and at most, and whether the last of these is by default the
/// hash functions' seed.
const FUNCTIONS: [(&str, Function, usize, usize, bool); 21] = [
    ("abs", Function::Abs, 1, 1, false),
    ("debug", Function::Debug, 1, 1, false),
    ("double", Function::Double, 1, 1, false),
    ("exp", Function::Exp, 1, 1, false),
    ("greatest", Function::Greatest, 1, ARGUMENTS_MAX, false),
    ("hash", Function::HashMurmur2, 1, 2, true),
    ("hash_fnv1a", Function::HashFnv1a, 1, 2, true),
    ("hash_murmur2", Function::HashMurmur2, 1, 2, true),
    ("int", Function::Int, 1, 1, false),
    ("least", Function::Least, 1, ARGUMENTS_MAX, false),
    ("ln", Function::Ln, 1, 1, false),
    ("mod", Function::Remainder, 2, 2, false),
    ("permute", Function::Permute, 2, 3, true),
    ("pi", Function::Pi, 0, 0, false),
    ("pow", Function::Power, 2, 2, false),
    ("power", Function::Power, 2, 2, false),
    ("random", Function::Random, 2, 2, false),
    ("random_exponential", Function::RandomExponential, 3, 3, false),
    ("random_gaussian", Function::RandomGaussian, 3, 3, false),
    ("random_zipfian", Function::RandomZipfian, 3, 3, false),
    ("sqrt", Function::Sqrt, 1, 1, false),
];

/// The call of function `name` (in lower case); `default_seed` gives the argument that may be left out.
///
/// # Errors
/// What is wrong with the name or the number of arguments.
pub(super) fn call<E>(
    name: &str,
    mut arguments: Vec<E>,
    default_seed: impl FnOnce() -> E,
) -> Result<(Function, Vec<E>), String> {
    let Some((_, function, least, most, is_seeded)) = FUNCTIONS.into_iter().find(|(known, ..)| *known == name) else {
        let known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
        return Err(format!("unknown function {name}; allowed: {}", known.join(", ")));
    };
    let count = arguments.len();
    if !(least..=most).contains(&count) {
        let allowed = if least == most { least.to_string() } else { format!("{least} to {most}") };
        return Err(format!("{name} has {count} arguments; allowed: {allowed}"));
    }
    if is_seeded && count < most {
        arguments.push(default_seed());
    }
    Ok((function, arguments))
}
