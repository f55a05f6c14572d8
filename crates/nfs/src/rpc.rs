//! The heads of calls and replies of ONC RPC (RFC 5531).

use crate::message::{Read, Xdr};

pub(crate) const NFS: u32 = 100_003;
pub(crate) const NFS_ACL: u32 = 100_227;
pub(crate) const MOUNT: u32 = 100_005;
pub(crate) const NLM: u32 = 100_021;
pub(crate) const NSM: u32 = 100_024;
pub(crate) const PORTMAP: u32 = 100_000;
/// Calls of an NFS 4 server to its client: numbers that the client chooses, from here on.
pub(crate) const TRANSIENT: u32 = 0x4000_0000;
const TRANSIENT_END: u32 = 0x6000_0000;

/// Bytes that are needed to tell whether a message may begin there.
pub(crate) const SIGN_BYTES: usize = 24;
const RPC_VERSION: u32 = 2;
const GSS: u32 = 6;
/// The longest credentials and verifiers that RPC allows.
const AUTH_BYTES_MAX: u32 = 400;

/// A call's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHead {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
    pub(crate) secured: Secured,
}

/// How arguments and results are wrapped (RPCSEC_GSS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secured {
    Plain,
    /// With a length and a number before them.
    Signed,
    /// Nothing can be read.
    Encrypted,
}

/// Which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Call(u32),
    Reply(u32),
}

fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.get(..4 * N)?.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().ok()?);
    }
    Some(words)
}

/// Whether a message could begin so.
pub(crate) fn may_begin(bytes: &[u8]) -> bool {
    words::<6>(bytes).is_some_and(|[_, kind, third, ..]| match kind {
        0 => third == RPC_VERSION,
        1 => third <= 1,
        _ => false,
    })
}

/// Whether anything else would hardly look like it.
pub(crate) fn surely_begins(bytes: &[u8]) -> bool {
    words::<6>(bytes).is_some_and(|[_, kind, third, fourth, fifth, sixth]| match kind {
        0 => third == RPC_VERSION && is_known(fourth) && fifth <= 4 && sixth < 64,
        // An accepted reply: its verifier is none, or that of GSS; without one the call was performed or refused.
        1 if third == 0 => match (fourth, fifth) {
            (0, 0) => sixth <= 5,
            (GSS, 1..=AUTH_BYTES_MAX) => true,
            _ => false,
        },
        _ => false,
    })
}

/// Programs that are told by name.
pub(crate) fn is_known(program: u32) -> bool {
    matches!(program, NFS | NFS_ACL | MOUNT | NLM | NSM | PORTMAP) || is_callback(program)
}

pub(crate) fn is_callback(program: u32) -> bool {
    (TRANSIENT..TRANSIENT_END).contains(&program)
}

/// Which kind of message it is, and its number.
pub(crate) fn head(xdr: &mut Xdr<'_>) -> Read<Option<Head>> {
    let xid = xdr.u32()?;
    Ok(match xdr.u32()? {
        0 => Some(Head::Call(xid)),
        1 => Some(Head::Reply(xid)),
        _ => None,
    })
}

/// The rest of a call's head; what follows are the arguments. None if it is no RPC of this version.
pub(crate) fn call(xdr: &mut Xdr<'_>) -> Read<Option<CallHead>> {
    if xdr.u32()? != RPC_VERSION {
        return Ok(None);
    }
    let (program, version, procedure) = (xdr.u32()?, xdr.u32()?, xdr.u32()?);
    let flavor = xdr.u32()?;
    let secured = if flavor == GSS {
        let mut inside = *xdr;
        inside.skip(4)?;
        let (_, gss_procedure, _, service) = (inside.u32()?, inside.u32()?, inside.u32()?, inside.u32()?);
        match (gss_procedure, service) {
            (0, 2) => Secured::Signed,
            (0, 3) => Secured::Encrypted,
            _ => Secured::Plain,
        }
    } else {
        Secured::Plain
    };
    xdr.skip_opaque()?;
    xdr.u32()?;
    xdr.skip_opaque()?;
    unwrap(xdr, secured)?;
    Ok(Some(CallHead { program, version, procedure, secured }))
}

fn unwrap(xdr: &mut Xdr<'_>, secured: Secured) -> Read<()> {
    if secured == Secured::Signed { xdr.skip(8) } else { Ok(()) }
}

/// RPC's verdict of a call: 0, and what follows are its results; or what it says instead.
pub(crate) fn verdict(xdr: &mut Xdr<'_>, secured: Secured) -> Read<u8> {
    if xdr.u32()? != 0 {
        return Ok(crate::call::RPC_DENIED);
    }
    xdr.u32()?;
    xdr.skip_opaque()?;
    let verdict = xdr.u32()?;
    if verdict == 0 {
        unwrap(xdr, secured)?;
    }
    Ok(u8::try_from(verdict).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: [u32; 6]) -> Vec<u8> {
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    #[test]
    fn what_begins_a_message_is_told_from_what_does_not() {
        for sure in [[7, 0, 2, NFS, 3, 6], [7, 0, 2, TRANSIENT, 1, 1], [7, 1, 0, 0, 0, 0], [7, 1, 0, GSS, 28, 99]] {
            assert!(surely_begins(&bytes(sure)) && may_begin(&bytes(sure)), "{sure:?}");
        }
        for not_sure in [[7, 0, 2, 1234, 3, 6], [7, 1, 1, 1, 2, 0], [7, 1, 0, 3, 0, 0]] {
            assert!(!surely_begins(&bytes(not_sure)) && may_begin(&bytes(not_sure)), "{not_sure:?}");
        }
        for wrong in [[7, 2, 2, NFS, 3, 6], [7, 0, 3, NFS, 3, 6], [7, 1, 2, 0, 0, 0]] {
            assert!(!may_begin(&bytes(wrong)), "{wrong:?}");
        }
        assert!(!may_begin(&[0; 23]));
    }
}
