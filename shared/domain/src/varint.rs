//! Variable-length integers for packed columns: seven bits per byte, lowest
//! first, the high bit says that more follow.
//!
//! Invariant: every number has exactly one encoding, so equal values give
//! equal bytes and anything else is refused.

/// Appends `number`.
pub(crate) fn write(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

/// Takes one number off the front of `bytes`; `None` when they end too early,
/// do not fit 64 bits or are longer than needed.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if (low << shift) >> shift != low {
            return None;
        }
        number |= low << shift;
        if byte & 0x80 == 0 {
            return (byte != 0 || shift == 0).then_some(number);
        }
    }
    None
}

/// Maps small numbers of either sign to small unsigned ones.
pub(crate) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
pub(crate) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive(numbers: Vec<u64>) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| write(&mut bytes, number));
            let mut rest = bytes.as_slice();
            for number in numbers {
                prop_assert_eq!(read(&mut rest), Some(number));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn what_can_be_read_was_written_that_way(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            if let Some(number) = read(&mut rest) {
                let mut again = Vec::new();
                write(&mut again, number);
                prop_assert_eq!(again.as_slice(), &bytes[..bytes.len() - rest.len()]);
            }
        }

        #[test]
        fn signs_survive(number: i64) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }
    }
}
