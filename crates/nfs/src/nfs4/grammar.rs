//! Walks over what an operation's arguments or results are made of, a letter for each part:
//!
//! | letter | part |
//! |---|---|
//! | `u`, `U` | a word; two of them |
//! | `s`, `S` | 16 bytes: an identifier of state; of a session or device |
//! | `o` | bytes with their number before them |
//! | `b`, `f` | words with their number before them (a bitmap); attributes |
//! | `[..]`, `(..)` | so many as a number says; one or none |
//! | `{..}` | a list, each with a word before it that says that there is one |
//! | other capitals | a choice, below |
//! | `?` | not known |

use crate::message::{Missing, Read, Xdr};

/// More than any list of a call has; a longer one is nonsense.
const ITEMS_MAX: u32 = 65_536;

pub(super) fn skip(letters: &str, xdr: &mut Xdr<'_>) -> Read<()> {
    let mut rest = letters.as_bytes();
    while let Some((&letter, behind)) = rest.split_first() {
        rest = behind;
        match letter {
            b'[' | b'(' | b'{' => {
                let end = rest.iter().position(|byte| matches!(byte, b']' | b')' | b'}')).ok_or(Missing)?;
                let inside = std::str::from_utf8(&rest[..end]).map_err(|_| Missing)?;
                repeat(letter, inside, xdr)?;
                rest = &rest[end + 1..];
            }
            letter => part(letter, xdr)?,
        }
    }
    Ok(())
}

fn repeat(kind: u8, inside: &str, xdr: &mut Xdr<'_>) -> Read<()> {
    if kind == b'{' {
        let mut count = 0;
        while xdr.bool()? {
            skip(inside, xdr)?;
            count += 1;
            if count > ITEMS_MAX {
                return Err(Missing);
            }
        }
        return Ok(());
    }
    let count = xdr.u32()?;
    if count > if kind == b'(' { 1 } else { ITEMS_MAX } {
        return Err(Missing);
    }
    (0..count).try_for_each(|_| skip(inside, xdr))
}

fn part(letter: u8, xdr: &mut Xdr<'_>) -> Read<()> {
    match letter {
        b'u' => xdr.skip(4),
        b'U' => xdr.skip(8),
        b's' | b'S' => xdr.skip(16),
        b'o' => xdr.skip_opaque().map(|_| ()),
        b'b' => {
            let count = xdr.u32()?;
            if count > ITEMS_MAX { Err(Missing) } else { xdr.skip(4 * count as usize) }
        }
        b'f' => skip("bo", xdr),
        _ => choice(letter, xdr),
    }
}

fn choice(letter: u8, xdr: &mut Xdr<'_>) -> Read<()> {
    let kind = xdr.u32()?;
    let then = match (letter, kind) {
        // What is created: a link has its text, a device its numbers.
        (b'C', 5) => "o",
        (b'C', 3 | 4) => "U",
        (b'C', _) => "",
        // Who locks: for the first time, or again.
        (b'K', 0) => "su",
        (b'K', 1) => "usuUo",
        // A delegation that came with an open.
        (b'D', 0) => "",
        (b'D', 1 | 4) => "suuuuo",
        (b'D', 2 | 5) => "suBuuuo",
        (b'D', 3) => "W",
        // How much may be written without asking.
        (b'B', 1) => "U",
        (b'B', 2) => "uu",
        // Why there is no delegation.
        (b'W', 1 | 2) => "u",
        (b'W', _) => "",
        // Of how a call may be secured: GSS says more.
        (b'N', 6) => "ouu",
        (b'N', _) => "",
        // How callbacks are.
        (b'P', 0) => "",
        (b'P', 1) => "uouub",
        (b'P', 6) => "uoo",
        // How a client's state is protected: as asked, as granted.
        (b'X' | b'Y', 0) => "",
        (b'X' | b'Y', 1) => "bb",
        (b'X', 2) => "bb[o][o]uu",
        (b'Y', 2) => "bbuuuu[o]",
        // A delegation of a folder.
        (b'G', 0) => "Usbbb",
        (b'G', 1) => "u",
        // What layouts are returned.
        (b'L', 1) => "UUso",
        (b'L', _) => "",
        // Another server.
        (b'A', 1 | 2) => "o",
        (b'A', 3) => "oo",
        // Data, or a hole.
        (b'R', 0) => "Uo",
        (b'R', 1) => "UU",
        _ => return Err(Missing),
    };
    skip(then, xdr)
}
