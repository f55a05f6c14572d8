//! What a script amounts to: operations, bytes, errors, how long handles live, what lies where.

use super::operation::Operation;
use super::script::{HANDLES_MAX, Script, Step};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Figures of one pass, for `facts`.
pub(super) fn profile(script: &Script) -> BTreeMap<String, Value> {
    let mut by_operation: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut errors, mut read, mut written) = (0_u64, 0_u64, 0_u64);
    let mut opened: [Option<usize>; HANDLES_MAX] = [None; HANDLES_MAX];
    let (mut open, mut open_max, mut lives) = (0_u32, 0, Vec::new());
    for (line, (step, expected)) in script.steps.iter().zip(&script.expected).enumerate() {
        *by_operation.entry(step.operation().name()).or_default() += 1;
        errors += u64::from(!expected.is_ok);
        match *step {
            Step::Read { size, .. } => read += u64::from(size),
            Step::Write { size, .. } => written += u64::from(size),
            Step::Open { slot, .. } if expected.is_ok => {
                opened[usize::from(slot)] = Some(line);
                open += 1;
                open_max = open_max.max(open);
            }
            Step::Close { slot } => {
                lives.extend(opened[usize::from(slot)].take().map(|from| (line - from) as u64));
                open -= 1;
            }
            _ => {}
        }
    }
    lives.sort_unstable();
    let rank = |share: f64| lives.get((lives.len() as f64 * share) as usize).copied();
    let mean = (!lives.is_empty()).then(|| lives.iter().sum::<u64>() as f64 / lives.len() as f64);
    let of_files: BTreeSet<&str> = script.steps.iter().filter_map(|step| directory_of(script, step)).collect();
    let lines = script.steps.len();
    let named = Operation::ALL.iter().filter_map(|operation| by_operation.get_key_value(operation.name()));
    let counts: BTreeMap<&&str, &u64> = named.collect();
    let facts = [
        ("lines", json!(lines)),
        ("lines_by_operation", json!(counts)),
        ("error_lines", json!(errors)),
        ("bytes_read_per_pass", json!(read)),
        ("bytes_written_per_pass", json!(written)),
        ("handles_open_max", json!(open_max)),
        ("handle_life_lines_mean", json!(mean)),
        ("handle_life_lines_p50", json!(rank(0.5))),
        ("handle_life_lines_p90", json!(rank(0.9))),
        ("paths", json!(script.names.len())),
        ("directories_of_files", json!(of_files.len())),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The directory of the file that a line opens or makes.
fn directory_of<'s>(script: &'s Script, step: &Step) -> Option<&'s str> {
    match *step {
        Step::Open { name, how, .. } if how != super::script::How::Directory => {
            script.names[name as usize].rsplit_once('/').map(|(directory, _)| directory)
        }
        _ => None,
    }
}
