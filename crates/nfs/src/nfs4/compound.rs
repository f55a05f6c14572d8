//! Reads compounds.

use super::grammar;
use super::operations::{self as op, known, weight};
use crate::message::{Missing, Read, Xdr};

const HANDLE_BYTES_MAX: usize = 128;
/// Operations of one compound that are read.
const OPERATIONS_MAX: u32 = 256;
const DENIED: u32 = 10_010;
const CLIENT_IN_USE: u32 = 10_017;
const TOO_SMALL: u32 = 10_005;
const NO_OFFLOAD: u32 = 10_094;

/// What moves the current file handle, with what it says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Put(Vec<u8>),
    Root,
    Save,
    Restore,
    /// To a file of this name in the current folder.
    Name(String),
    /// To a file that is not named.
    Elsewhere,
}

/// What a compound asks for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) minor: u32,
    pub(crate) operations: Vec<u32>,
    pub(crate) main: u32,
    pub(crate) bytes: u32,
    /// The handle that the main operation is about.
    pub(crate) handle: Option<Vec<u8>>,
    /// Steps up to each operation that tells a handle, in order.
    pub(crate) steps: Vec<(u32, Step)>,
    pub(crate) tells_handle: bool,
    pub(crate) is_partial: bool,
}

/// Reads the arguments of a compound.
pub(crate) fn asked(xdr: &mut Xdr<'_>) -> Asked {
    let mut asked = Asked { is_partial: true, ..Asked::default() };
    if read_asked(xdr, &mut asked).is_ok() {
        asked.is_partial = false;
    }
    asked
}

fn read_asked(xdr: &mut Xdr<'_>, asked: &mut Asked) -> Read<()> {
    xdr.skip_opaque()?;
    asked.minor = xdr.u32()?;
    let count = xdr.u32()?;
    if count > OPERATIONS_MAX {
        return Err(Missing);
    }
    let (mut current, mut saved): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    let mut heaviest = None;
    for place in 0..count {
        let operation = xdr.u32()?;
        asked.operations.push(operation);
        if heaviest.is_none_or(|heaviest| weight(operation) > heaviest) {
            heaviest = Some(weight(operation));
            asked.main = operation;
            asked.handle.clone_from(&current);
        }
        let is_main = asked.main == operation;
        let step = argument(operation, xdr, is_main, asked)?;
        match &step {
            Some(Step::Put(handle)) => current = Some(handle.clone()),
            Some(Step::Save) => saved.clone_from(&current),
            Some(Step::Restore) => current.clone_from(&saved),
            Some(_) => current = None,
            None => {}
        }
        asked.steps.extend(step.map(|step| (place, step)));
        asked.tells_handle |= operation == op::GETFH;
    }
    Ok(())
}

/// Reads an operation's arguments; the step that it makes.
fn argument(operation: u32, xdr: &mut Xdr<'_>, is_main: bool, asked: &mut Asked) -> Read<Option<Step>> {
    Ok(match operation {
        op::PUTFH => Some(Step::Put(xdr.opaque(HANDLE_BYTES_MAX)?.to_vec())),
        op::PUTROOTFH | op::PUTPUBFH => Some(Step::Root),
        op::SAVEFH => Some(Step::Save),
        op::RESTOREFH => Some(Step::Restore),
        op::LOOKUPP => Some(Step::Elsewhere),
        op::LOOKUP => Some(Step::Name(xdr.text()?)),
        op::CREATE => {
            grammar::skip("C", xdr)?;
            let name = xdr.text()?;
            grammar::skip("f", xdr)?;
            Some(Step::Name(name))
        }
        op::OPEN => open(xdr)?,
        op::READ | op::READ_PLUS => {
            xdr.skip(24)?;
            add(xdr.u32()?, is_main, asked);
            None
        }
        op::WRITE => {
            xdr.skip(28)?;
            let bytes = xdr.skip_opaque();
            add(bytes?, is_main, asked);
            None
        }
        other => {
            grammar::skip(known(other).arguments, xdr)?;
            None
        }
    })
}

fn add(bytes: u32, is_main: bool, asked: &mut Asked) {
    if is_main {
        asked.bytes = asked.bytes.saturating_add(bytes);
    }
}

/// An OPEN's arguments; none where it is about the current file itself.
fn open(xdr: &mut Xdr<'_>) -> Read<Option<Step>> {
    grammar::skip("uuuUo", xdr)?;
    if xdr.u32()? == 1 {
        let how = match xdr.u32()? {
            0 | 1 => "f",
            2 => "U",
            3 => "Uf",
            _ => return Err(Missing),
        };
        grammar::skip(how, xdr)?;
    }
    Ok(match xdr.u32()? {
        0 | 3 => Some(Step::Name(xdr.text()?)),
        1 => {
            xdr.u32()?;
            None
        }
        2 => {
            xdr.skip(16)?;
            Some(Step::Name(xdr.text()?))
        }
        5 => {
            xdr.skip(16)?;
            None
        }
        4 | 6 => None,
        _ => return Err(Missing),
    })
}

/// What a reply to a compound says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) status: u32,
    pub(crate) bytes: u32,
    /// Place of each operation that told a handle, and the handle.
    pub(crate) handles: Vec<(u32, Vec<u8>)>,
}

/// Reads the results of a compound whose main operation is `main`. Handles are read if `tells_handle`.
pub(crate) fn answered(xdr: &mut Xdr<'_>, main: u32, tells_handle: bool) -> Read<Answered> {
    let mut answered = Answered { status: xdr.u32()?, ..Answered::default() };
    if tells_handle || matches!(main, op::READ | op::READ_PLUS | op::WRITE) {
        // What is told up to the first that cannot be read is told all the same.
        let _ends_early = results(xdr, main, &mut answered);
    }
    Ok(answered)
}

fn results(xdr: &mut Xdr<'_>, main: u32, answered: &mut Answered) -> Read<()> {
    xdr.skip_opaque()?;
    let count = xdr.u32()?;
    for place in 0..count.min(OPERATIONS_MAX) {
        let operation = xdr.u32()?;
        let status = xdr.u32()?;
        match (operation, status) {
            (op::GETFH, 0) => answered.handles.push((place, xdr.opaque(HANDLE_BYTES_MAX)?.to_vec())),
            (op::READ, 0) => {
                xdr.u32()?;
                let mut ahead = *xdr;
                let bytes = ahead.u32()?;
                count_bytes(bytes, operation == main, answered);
                xdr.skip_opaque()?;
            }
            (op::READ_PLUS, 0) => read_plus(xdr, operation == main, answered)?,
            (op::WRITE, 0) => {
                let bytes = xdr.u32()?;
                count_bytes(bytes, operation == main, answered);
                grammar::skip("uU", xdr)?;
            }
            (op::SETATTR, _) => grammar::skip("b", xdr)?,
            (op::LOCK | op::LOCKT, DENIED) => grammar::skip("UUuUo", xdr)?,
            (op::SETCLIENTID, CLIENT_IN_USE) => grammar::skip("oo", xdr)?,
            (op::GETDEVICEINFO, TOO_SMALL) => grammar::skip("u", xdr)?,
            (op::COPY, NO_OFFLOAD) => grammar::skip("uu", xdr)?,
            (_, 0) => grammar::skip(known(operation).results, xdr)?,
            // A compound ends with the first operation that fails.
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Data and holes of a READ_PLUS: both are what was asked for.
fn read_plus(xdr: &mut Xdr<'_>, is_main: bool, answered: &mut Answered) -> Read<()> {
    xdr.u32()?;
    for _ in 0..xdr.u32()?.min(OPERATIONS_MAX) {
        let kind = xdr.u32()?;
        xdr.skip(8)?;
        let bytes = match kind {
            0 => xdr.skip_opaque()?,
            1 => u32::try_from(xdr.u64()?).unwrap_or(u32::MAX),
            _ => return Err(Missing),
        };
        count_bytes(bytes, is_main, answered);
    }
    Ok(())
}

fn count_bytes(bytes: u32, is_main: bool, answered: &mut Answered) {
    if is_main {
        answered.bytes = answered.bytes.saturating_add(bytes);
    }
}

/// Reads the arguments of a server's compound: its operations up to the first that is what it is about.
pub(crate) fn callback_asked(xdr: &mut Xdr<'_>) -> Asked {
    let mut asked = Asked { is_partial: true, ..Asked::default() };
    if read_callback(xdr, &mut asked).is_ok() {
        asked.is_partial = false;
    }
    asked
}

fn read_callback(xdr: &mut Xdr<'_>, asked: &mut Asked) -> Read<()> {
    xdr.skip_opaque()?;
    asked.minor = xdr.u32()?;
    xdr.u32()?;
    let count = xdr.u32()?;
    for place in 0..count.min(2) {
        asked.main = xdr.u32()?;
        asked.operations.push(asked.main);
        if asked.main != op::CB_SEQUENCE {
            // What it is about comes second at the latest, and nothing of it is told.
            return if count == place + 1 { Ok(()) } else { Err(Missing) };
        }
        // Calls that it refers to: of a session, by number and slot.
        grammar::skip("Suuuu", xdr)?;
        for _ in 0..xdr.u32()?.min(OPERATIONS_MAX) {
            grammar::skip("S[uu]", xdr)?;
        }
    }
    Ok(())
}

/// The status of a reply to it.
pub(crate) fn callback_answered(xdr: &mut Xdr<'_>) -> Read<u32> {
    xdr.u32()
}
