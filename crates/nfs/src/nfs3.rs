//! Arguments and results of NFS 3 (RFC 1813) and of its mount protocol, as far as they are told.

use crate::message::{Read, Xdr};
use crate::names::NFS3;

const HANDLE_BYTES_MAX: usize = 64;
const ATTRIBUTE_BYTES: usize = 84;
const BEFORE_BYTES: usize = 24;

pub(crate) const LOOKUP: u32 = 3;
const READ: u32 = 6;
const WRITE: u32 = 7;
const CREATE: u32 = 8;
const MKNOD: u32 = 11;
pub(crate) const MNT: u32 = 1;

/// What a call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    pub(crate) handle: Option<&'a [u8]>,
    pub(crate) bytes: u32,
    /// The name of what is looked up or made in the folder `handle`.
    pub(crate) name: Option<&'a [u8]>,
}

pub(crate) fn asked<'a>(procedure: u32, xdr: &mut Xdr<'a>) -> Read<Asked<'a>> {
    let mut asked = Asked::default();
    if procedure == 0 || procedure as usize >= NFS3.len() {
        return Ok(asked);
    }
    asked.handle = Some(xdr.opaque(HANDLE_BYTES_MAX)?);
    match procedure {
        READ | WRITE => {
            xdr.skip(8)?;
            asked.bytes = xdr.u32()?;
        }
        LOOKUP | CREATE..=MKNOD => asked.name = Some(xdr.opaque(1024)?),
        _ => {}
    }
    Ok(asked)
}

/// What a reply says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered<'a> {
    pub(crate) status: u32,
    pub(crate) bytes: u32,
    /// The handle of what was looked up or made.
    pub(crate) handle: Option<&'a [u8]>,
}

fn attributes(xdr: &mut Xdr<'_>, bytes: usize) -> Read<()> {
    if xdr.bool()? { xdr.skip(bytes) } else { Ok(()) }
}

pub(crate) fn answered<'a>(procedure: u32, xdr: &mut Xdr<'a>) -> Read<Answered<'a>> {
    let mut answered = Answered::default();
    if procedure == 0 {
        return Ok(answered);
    }
    answered.status = xdr.u32()?;
    if answered.status != 0 {
        return Ok(answered);
    }
    match procedure {
        READ => {
            attributes(xdr, ATTRIBUTE_BYTES)?;
            answered.bytes = xdr.u32()?;
        }
        WRITE => {
            attributes(xdr, BEFORE_BYTES)?;
            attributes(xdr, ATTRIBUTE_BYTES)?;
            answered.bytes = xdr.u32()?;
        }
        LOOKUP => answered.handle = Some(xdr.opaque(HANDLE_BYTES_MAX)?),
        CREATE..=MKNOD if xdr.bool()? => answered.handle = Some(xdr.opaque(HANDLE_BYTES_MAX)?),
        _ => {}
    }
    Ok(answered)
}

/// The folder that MNT asks for.
pub(crate) fn mount_asked<'a>(xdr: &mut Xdr<'a>) -> Read<&'a [u8]> {
    xdr.opaque(1024)
}

/// Status and handle of what was mounted.
pub(crate) fn mount_answered<'a>(xdr: &mut Xdr<'a>) -> Read<Answered<'a>> {
    let status = xdr.u32()?;
    let handle = if status == 0 { Some(xdr.opaque(HANDLE_BYTES_MAX)?) } else { None };
    Ok(Answered { status, bytes: 0, handle })
}
