//! Names and values as PARAMS, GET_VALUES and GET_VALUES_RESULT hold them: two lengths, the name, the value.

/// A length of one byte or, where its highest bit is set, of four.
fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        *bytes = rest;
        return Some(usize::from(*first));
    }
    let (four, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some((u32::from_be_bytes(*four) & 0x7fff_ffff) as usize)
}

fn take_pair<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut rest = *bytes;
    let (name, value) = (take_length(&mut rest)?, take_length(&mut rest)?);
    let (name, rest) = rest.split_at_checked(name)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *bytes = rest;
    Some((name, value))
}

/// All pairs, up to where the bytes are none.
pub(super) fn pairs(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || take_pair(&mut bytes))
}

/// Whether the bytes are pairs to their end.
pub(super) fn are_pairs(mut bytes: &[u8]) -> bool {
    while take_pair(&mut bytes).is_some() {}
    bytes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_byte_or_four() {
        let long = "v".repeat(300);
        let bytes = [b"\x04\x80\x00\x01\x2cNAME".as_slice(), long.as_bytes(), b"\x01\x00A"].concat();
        let expected = [(b"NAME".as_slice(), long.as_bytes()), (b"A", b"")];
        assert_eq!(pairs(&bytes).collect::<Vec<_>>(), expected);
        assert!(are_pairs(&bytes) && are_pairs(b""));
        for cut in 1..bytes.len() {
            // The first pair alone is 309 bytes.
            assert_eq!(are_pairs(&bytes[..cut]), cut == 309, "cut after {cut}");
        }
    }
}
