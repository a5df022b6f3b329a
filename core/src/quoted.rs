//! How messages quote what files hold.

use alloc::string::String;

/// Bytes of a file as an error message quotes them: escaped, and cut to a readable length.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let mut text: String = bytes.iter().take(MOST).copied().map(quoted_byte).collect();
    if bytes.len() > MOST {
        text.push('…');
    }
    text
}

/// Every byte that could disturb a terminal or a one-line message becomes `?`.
fn quoted_byte(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_harmless() {
        assert_eq!(quoted(b"12 \x1b[31mred\n"), "12 ?[31mred?");
        assert_eq!(quoted(&[b'x'; 1000]), alloc::format!("{}…", "x".repeat(40)));
    }
}
