//! Reading numbers and words from bytes, for the text formats.

pub(super) use crate::quoted::quoted;

/// True for the bytes that separate words within a line. A carriage return is one of them, so that
/// lines may end in CR LF.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The first position from `at` on that is not blank; a line feed is not blank.
#[inline]
pub(super) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| is_blank(byte)) {
        at += 1;
    }
    at
}

/// The position of the line feed that ends the line, or the end of the bytes.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// The word that starts at `at`: up to a blank, a line feed or the end.
pub(super) fn word(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at..];
    let length = rest.iter().position(|&byte| is_blank(byte) || byte == b'\n');
    &rest[..length.unwrap_or(rest.len())]
}

/// The words of one line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty())
}

/// Number of the line, from 1, that holds byte `at`.
pub(super) fn line_number(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// The decimal number at `at` and the position after it; saturates. `None` without a digit.
#[inline]
pub(super) fn unsigned(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let Some(&eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
        return unsigned_by_digit(bytes, at, 0, at);
    };
    let digits = u64::from_le_bytes(eight) ^ 0x3030_3030_3030_3030;
    // The high bit marks each byte that is not 0–9; a carry only disturbs bytes after such a one.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let length = (others.trailing_zeros() / 8) as usize;
    match length {
        0 => None,
        8 => unsigned_by_digit(bytes, at, eight_digits(digits), at + 8),
        _ => Some((eight_digits(digits << (64 - 8 * length)), at + length)),
    }
}

/// The value of eight digits, the most significant in the lowest byte: adds neighbours pairwise.
/// Lemire, "Quickly parsing eight digits", 2022.
fn eight_digits(digits: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    high.wrapping_add(low) >> 32
}

fn unsigned_by_digit(
    bytes: &[u8],
    start: usize,
    mut value: u64,
    mut at: usize,
) -> Option<(u64, usize)> {
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        at += 1;
    }
    (at > start).then_some((value, at))
}

/// The number that is the whole word, or `None`.
pub(super) fn whole_unsigned(word: &[u8]) -> Option<u64> {
    unsigned(word, 0).filter(|&(_, end)| end == word.len()).map(|(value, _)| value)
}

/// The floating-point number at `at` and the position after it, which is the end of a word.
/// Also takes a leading `+` and Fortran's `D` before the exponent. May be infinite or NaN.
#[inline]
pub(super) fn float(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    if let Ok((value, length)) = fast_float2::parse_partial::<f64, _>(&bytes[at..]) {
        let end = at + length;
        if bytes.get(end).is_none_or(|&byte| is_blank(byte) || byte == b'\n') {
            return Some((value, end));
        }
    }
    unusual_float(word(bytes, at)).map(|(value, length)| (value, at + length))
}

#[cold]
fn unusual_float(word: &[u8]) -> Option<(f64, usize)> {
    // No double needs more digits than this to be exact.
    const LONGEST: usize = 1100;
    if word.len() > LONGEST {
        return None;
    }
    let unsigned = word.strip_prefix(b"+").filter(|rest| !rest.starts_with(b"-"));
    let mut text = [0; LONGEST];
    let text = &mut text[..unsigned.unwrap_or(word).len()];
    text.copy_from_slice(unsigned.unwrap_or(word));
    for byte in &mut *text {
        if matches!(byte, b'd' | b'D') {
            *byte = b'e';
        }
    }
    fast_float2::parse::<f64, _>(text).ok().map(|value| (value, word.len()))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unsigned_reads_every_number(value: u64, zeros in 0..12_usize, after in "[^0-9]{0,9}") {
            let digits = format!("{}{value}", "0".repeat(zeros));
            let text = format!("{digits}{after}");
            prop_assert_eq!(unsigned(text.as_bytes(), 0), Some((value, digits.len())));
        }

        #[test]
        fn unsigned_takes_digits_only(first in any::<u8>(), rest: [u8; 12]) {
            prop_assume!(!first.is_ascii_digit());
            let bytes = [&[first][..], &rest].concat();
            prop_assert_eq!(unsigned(&bytes, 0), None);
        }

        #[test]
        fn float_reads_every_number(value in proptest::num::f64::ANY.prop_filter("finite", |v| v.is_finite())) {
            let text = format!("{value:e} ");
            prop_assert_eq!(float(text.as_bytes(), 0), Some((value, text.len() - 1)));
            let fortran = text.replace('e', "D+").replace("D+-", "D-");
            prop_assert_eq!(float(fortran.as_bytes(), 0), Some((value, fortran.len() - 1)));
        }
    }

    #[test]
    fn unsigned_saturates() {
        assert_eq!(unsigned(b"99999999999999999999999", 0), Some((u64::MAX, 23)));
    }

    #[test]
    fn floats_may_have_a_plus_and_nothing_else_may_follow() {
        assert_eq!(float(b"+1.5", 0), Some((1.5, 4)));
        assert_eq!(float(b"1.5x", 0), None);
        assert_eq!(float(b"+-1", 0), None);
        assert_eq!(float(b"", 0), None);
        assert_eq!(float(b"1.0D+03", 0), Some((1000.0, 7)));
    }
}
