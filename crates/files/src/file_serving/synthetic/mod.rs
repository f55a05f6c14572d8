//! A script of our own with the profile of dbench 4.0's load file: synthetic, and none of its lines.
//!
//! The fact that constrains it: the load file may not be shipped, its statistics may be told. So a pass has the same
//! number of lines of each operation, the same bytes within a per cent, the same share of lines that fail, handles that
//! live as long on average, and as many directories and files. Names, order and places are drawn from the seed.

mod deck;
mod desk;
mod draw;
mod walk;

use super::script::Script;

/// The script of `seed`.
///
/// # Errors
/// Never, unless there is a fault here: the line that cannot be performed.
pub(super) fn script(seed: u64) -> Result<Script, String> {
    walk::walk(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_serving::profile::profile;
    use crate::file_serving::script::Step;

    /// Lines of one pass of dbench 4.0's load file, counted in Debian's package.
    const LINES: [(&str, u64); 16] = [
        ("ReadX", 124_199),
        ("NTCreateX", 79_230),
        ("QUERY_PATH_INFORMATION", 71_814),
        ("Close", 58_200),
        ("WriteX", 39_502),
        ("FIND_FIRST", 27_765),
        ("Unlink", 16_000),
        ("QUERY_FS_INFORMATION", 13_168),
        ("QUERY_FILE_INFORMATION", 12_585),
        ("SET_FILE_INFORMATION", 6_454),
        ("Flush", 5_553),
        ("Rename", 3_355),
        ("LockX", 258),
        ("UnlockX", 258),
        ("Deltree", 2),
        ("Mkdir", 1),
    ];

    fn within(found: u64, aim: u64, share: f64) -> bool {
        found.abs_diff(aim) as f64 <= share * aim as f64
    }

    #[test]
    fn a_pass_has_the_profile_of_the_original() {
        let script = script(1).unwrap();
        let facts = profile(&script);
        for (operation, lines) in LINES {
            assert_eq!(facts["lines_by_operation"][operation], lines, "{operation}");
        }
        assert_eq!(facts["lines"], 458_344);
        let number = |name: &str| facts[name].as_f64().unwrap() as u64;
        // Those of FIND_FIRST are not compared with anything.
        assert_eq!(number("error_lines"), 45_286 + 129);
        assert!(within(number("bytes_written_per_pass"), 1_015_974_170, 0.01), "{facts:?}");
        assert!(within(number("bytes_read_per_pass"), 1_472_088_767, 0.01), "{facts:?}");
        assert!(within(number("handle_life_lines_mean"), 37, 0.25), "{facts:?}");
        assert!((9..=11).contains(&number("directories_of_files")), "{facts:?}");
        assert!(within(number("paths"), 261, 0.1), "{facts:?}");
        assert!(number("handles_open_max") <= 23, "{facts:?}");
    }

    #[test]
    fn sizes_are_those_of_the_original() {
        let script = script(2).unwrap();
        let reads =
            |of: u32| script.steps.iter().filter(|step| matches!(step, Step::Read { size, .. } if *size == of)).count();
        let writes = |of: u32| {
            script.steps.iter().filter(|step| matches!(step, Step::Write { size, .. } if *size == of)).count()
        };
        let few = |found: usize, aim: usize| assert!((aim..aim + 20).contains(&found), "{found} of {aim}");
        for (size, aim) in [(4_096, 83_172), (61_440, 16_641), (8_192, 4_644), (2_048, 4_644), (16_384, 1_937)] {
            few(reads(size), aim);
        }
        for (size, aim) in [(65_536, 12_658), (4_096, 9_942), (1, 7_424), (2_048, 1_677), (8_192, 1_164)] {
            few(writes(size), aim);
        }
    }

    #[test]
    fn it_is_a_function_of_the_seed() {
        let prints = [1, 1, 2].map(|seed| script(seed).unwrap().fingerprint());
        assert!(prints[0] == prints[1] && prints[0] != prints[2], "{prints:?}");
    }
}
