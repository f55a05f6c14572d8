//! The load file of the user's: dbench's format of either generation, line by line.
//!
//! The fact that constrains it: what is not known is refused, because a line that was left out would be another load
//! under the same name. A line is `OPERATION argument...` and, in generation 4.0, the status it ends with; paths stand
//! in quotes; `#` begins a comment.

use super::arguments::{Arguments, Word, split};
use super::builder::{Asked, Builder};
use super::operation::Operation;
use super::script::{Generation, How, Script};
use std::io::BufRead;

/// Lines of newer versions of the format that steer the file itself.
const CONTROLS: [&str; 8] = ["LOOP", "ENDLOOP", "REPEAT", "SLEEP", "SETSP", "WAITSP", "WRITEPATTERN", "RANDOMSTRING"];

/// Why a load file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}: {text}")]
pub(super) struct LineError {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) why: String,
    /// The line itself, or its beginning.
    pub(super) text: String,
}

/// The script of the load file that `lines` gives, of which one line is held at a time.
///
/// # Errors
/// The first line that cannot be read or performed.
pub(super) fn parse(mut lines: impl BufRead, generation: Generation) -> Result<Script, LineError> {
    let mut builder = Builder::new(generation);
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let read = lines.read_line(&mut text).map_err(|error| error.to_string());
        match read.and_then(|bytes| add_line(&mut builder, &text, generation).map(|()| bytes > 0)) {
            Ok(true) => {}
            Ok(false) if builder.is_empty() => {
                return Err(LineError { line: 1, why: "there is no line to perform".to_owned(), text: String::new() });
            }
            Ok(false) => break,
            Err(why) => return Err(LineError { line, why, text: text.trim_end().chars().take(200).collect() }),
        }
    }
    Ok(builder.build())
}

fn add_line(builder: &mut Builder, line: &str, generation: Generation) -> Result<(), String> {
    let mut words = Vec::new();
    split(line, &mut words)?;
    words.split_first().map_or(Ok(()), |(first, arguments)| add(builder, first, arguments, generation))
}

fn add(builder: &mut Builder, first: &Word<'_>, words: &[Word<'_>], generation: Generation) -> Result<(), String> {
    let name = match first {
        Word::Plain(name) | Word::Quoted(name) => *name,
    };
    let operation = Operation::named(name).ok_or_else(|| unknown(name))?;
    let mut arguments = Arguments::new(words);
    let asked = asked(operation, &mut arguments)?;
    let is_ok = arguments.status(generation)?;
    builder.add(asked, is_ok)
}

fn unknown(name: &str) -> String {
    if name.starts_with("SMB") {
        "names that begin with SMB are of dbench 1: give a load file of generation 2.1 or 4.0".to_owned()
    } else if name.starts_with(|first: char| first.is_ascii_digit()) {
        "lines with a time are not supported: remove the first column".to_owned()
    } else if CONTROLS.contains(&name) {
        format!("{name} is of dbench's later versions, and not supported")
    } else {
        format!("the operation {name:?} is not known")
    }
}

fn asked<'a>(operation: Operation, of: &mut Arguments<'_, 'a>) -> Result<Asked<'a>, String> {
    Ok(match operation {
        Operation::NtCreateX => {
            let (path, options, disposition) = (of.path()?, of.number("options")?, of.number("disposition")?);
            Asked::Open { path, how: how(options, disposition)?, handle: of.handle()? }
        }
        Operation::Close => Asked::Close { handle: of.handle()? },
        Operation::ReadX => {
            let (handle, offset, size) = (of.handle()?, of.number("offset")?, of.bytes("size")?);
            Asked::Read { handle, offset, size, returned: of.bytes("returned")? }
        }
        Operation::WriteX => {
            let (handle, offset, size) = (of.handle()?, of.number("offset")?, of.bytes("size")?);
            let returned = of.bytes("returned")?;
            if returned != size {
                return Err(format!("it is to write {returned} bytes of {size}"));
            }
            Asked::Write { handle, offset, size }
        }
        Operation::QueryPathInformation => {
            let path = of.path()?;
            of.optional();
            Asked::QueryPath { path }
        }
        Operation::QueryFileInformation => {
            let handle = of.handle()?;
            of.optional();
            Asked::QueryFile { handle }
        }
        Operation::QueryFsInformation => {
            of.optional();
            Asked::QueryFileSystem
        }
        Operation::SetFileInformation => {
            let handle = of.handle()?;
            of.optional();
            Asked::SetFile { handle }
        }
        Operation::FindFirst => {
            let path = of.path()?;
            // The level of information; then how many entries, and how many there were.
            of.optional();
            let entries_max = of.optional().unwrap_or(u64::from(u32::MAX));
            of.optional();
            Asked::Find { path, entries_max: entries_max.min(u64::from(u32::MAX)) as u32 }
        }
        Operation::Unlink => {
            let path = of.path()?;
            of.optional();
            Asked::Unlink { path }
        }
        Operation::Rename => Asked::Rename { from: of.path()?, to: of.path()? },
        Operation::Flush => Asked::Flush { handle: of.handle()? },
        Operation::LockX => Asked::Lock { handle: of.handle()?, offset: of.number("offset")?, size: of.bytes("size")? },
        Operation::UnlockX => {
            Asked::Unlock { handle: of.handle()?, offset: of.number("offset")?, size: of.bytes("size")? }
        }
        Operation::Mkdir => Asked::MakeDirectory { path: of.path()? },
        Operation::Rmdir => Asked::RemoveDirectory { path: of.path()? },
        Operation::Deltree => Asked::RemoveTree { path: of.path()? },
    })
}

/// As the original opens it: dispositions 0, 1 and 3 (supersede, open, open-if) are all a plain open there.
fn how(options: u64, disposition: u64) -> Result<How, String> {
    const DIRECTORY: u64 = 1;
    match disposition {
        0..=5 if options & DIRECTORY != 0 => Ok(How::Directory),
        0 | 1 | 3 => Ok(How::Plain),
        2 => Ok(How::Create),
        4 | 5 => Ok(How::Truncate),
        _ => Err(format!("disposition {disposition} is not known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_serving::script::{Expected, Step};

    /// A line of each kind, after those that it needs.
    const EVERY: &str = r#"
# A comment, and an empty line

Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK   # that all share
NTCreateX "\clients\client1" 0x1 0x2 7 NT_STATUS_OK
NTCreateX "\clients\client1\a b" 0x40 0x2 8 NT_STATUS_OK
NTCreateX "\clients\client1\none" 0x40 0x1 -1 0xC0000034
WriteX 8 100 50 50 NT_STATUS_OK
ReadX 8 90 60 60 0x00000000
QUERY_PATH_INFORMATION "\clients\client1\a b" 1004 NT_STATUS_OK
QUERY_FILE_INFORMATION 8 258 NT_STATUS_OK
QUERY_FS_INFORMATION 1 NT_STATUS_OK
SET_FILE_INFORMATION 8 258 NT_STATUS_OK
FIND_FIRST "\clients\client1\*.*" 260 1366 0 NT_STATUS_NO_SUCH_FILE
Flush 8 NT_STATUS_OK
LockX 8 10 4 NT_STATUS_OK
UnlockX 8 10 4 NT_STATUS_OK
Rename "\clients\client1\a b" "\clients\client1\c" NT_STATUS_OK
Close 8 NT_STATUS_OK
Unlink "\clients\client1\c" 0x16 NT_STATUS_OK
Rmdir "\clients\client1\none" NT_STATUS_OBJECT_NAME_NOT_FOUND
"#;

    fn refused(lines: &str) -> (usize, String) {
        let LineError { line, why, .. } = parse(lines.as_bytes(), Generation::Four).unwrap_err();
        (line, why)
    }

    #[test]
    fn every_kind_of_line_is_known() {
        let script = parse(EVERY.as_bytes(), Generation::Four).unwrap();
        let kinds: std::collections::BTreeSet<u8> = script.steps.iter().map(|step| step.operation().kind()).collect();
        assert_eq!(kinds.len(), Operation::ALL.len(), "{kinds:?}");
        assert_eq!(script.steps.len(), EVERY.lines().filter(|line| line.starts_with(char::is_alphabetic)).count());
        assert_eq!(
            script.names,
            [
                "clients/client1",
                "clients",
                "clients/client1/a b",
                "clients/client1/none",
                "clients/client1/*.*",
                "clients/client1/c"
            ]
        );
        assert_eq!(script.home.as_deref(), Some("clients/client1"));
        assert!(matches!(script.steps[5], Step::Write { offset: 100, size: 50, .. }));
        assert_eq!(script.expected[4], Expected { is_ok: false, is_checked: true });
        assert!(!script.expected[11].is_checked, "of a pattern nothing is found out");
        assert!(matches!(script.steps[11], Step::Find { entries_max: 1366, is_pattern: true, .. }));
        assert!(std::mem::size_of::<Step>() <= 24, "{} bytes a line", std::mem::size_of::<Step>());
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_line() {
        let second = |line: &str| refused(&format!("Mkdir \"\\clients\" NT_STATUS_OK\n{line}\n"));
        let cases = [
            ("Frobnicate 1 NT_STATUS_OK", "the operation \"Frobnicate\" is not known"),
            ("12.5 Close 1 NT_STATUS_OK", "lines with a time"),
            ("SMBcreate 1 0", "of dbench 1"),
            ("LOOP 5", "LOOP is of dbench's later versions"),
            ("Close 5 NT_STATUS_OK", "handle 5 is not open"),
            ("Close five NT_STATUS_OK", "\"five\" is not a handle"),
            ("Close NT_STATUS_OK", "is not a handle"),
            ("Mkdir \"\\clients\"", "the status at its end"),
            ("Mkdir \"\\clients NT_STATUS_OK", "a quote is not closed"),
            ("Mkdir clients NT_STATUS_OK", "a path in quotes is missing"),
            ("Mkdir \"\\clients\" SUCCESS", "the status \"SUCCESS\" is not known"),
            ("Mkdir \"\\clients\" NT_STATUS_OK twice", "it goes on after"),
            ("Mkdir \"\\..\\x\" NT_STATUS_OK", "leads out"),
            ("Unlink \"\\clients\\x\" 0x16 NT_STATUS_OK", "the clients would share it"),
            ("NTCreateX \"\\client1\\x\" 0x40 0x9 1 NT_STATUS_OK", "disposition 9"),
            ("NTCreateX \"\\client1\\x\" forty 0x2 1 NT_STATUS_OK", "options: \"forty\" is not a number"),
        ];
        for (line, why) in cases {
            let (number, said) = second(line);
            assert!(number == 2 && said.contains(why), "{line}: line {number}: {said}");
        }
        let text = parse(&b"Mkdir \"\\c\" NT_STATUS_OK\n\nClose 5 NT_STATUS_OK"[..], Generation::Four)
            .unwrap_err()
            .to_string();
        assert_eq!(text, "line 3: handle 5 is not open: Close 5 NT_STATUS_OK");
        assert_eq!(refused("# nothing\n").1, "there is no line to perform");
    }

    #[test]
    fn of_the_older_generation_only_a_handle_says_that_a_line_fails() {
        let text = "Deltree \"/clients/client1\"\nNTCreateX \"/clients/client1/x\" 0x40 0x1 -1\n\
            NTCreateX \"/clients/client1/x\" 0x40 0x2 3\nQUERY_PATH_INFORMATION \"/clients/client1/y\" 1004\n\
            FIND_FIRST \"/clients/client1/*\" 260 1366 4\nUnlink \"/clients/client1/y\"\nClose 3\n";
        let script = parse(text.as_bytes(), Generation::Two).unwrap();
        let ends: Vec<(bool, bool)> = script.expected.iter().map(|end| (end.is_ok, end.is_checked)).collect();
        let (yes, no) = (true, false);
        assert_eq!(ends, [(yes, no), (no, yes), (yes, yes), (no, no), (yes, no), (no, no), (yes, no)]);
        assert!(parse(text.as_bytes(), Generation::Four).is_err(), "the newer one has a status in each line");
    }
}
