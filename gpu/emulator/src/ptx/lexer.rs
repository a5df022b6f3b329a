//! Cuts PTX text into tokens.

use super::PtxError;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A name, register, opcode or directive, with its dots: `ld.global.u32`, `%tid.x`, `.reg`,
    /// `$L1`.
    Word(&'t str),
    /// An integer.
    Integer(u64),
    /// The bits of a binary32 literal.
    Single(u32),
    /// The bits of a binary64 literal.
    Double(u64),
    /// What stands between quotes.
    Text(&'t str),
    /// Any other character.
    Mark(u8),
    /// Nothing comes after.
    End,
}

/// A token and its line, from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed<'t> {
    pub(super) token: Token<'t>,
    pub(super) line: u32,
}

/// The tokens of a text; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Placed<'_>>, PtxError> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blanks()?;
        let line = lexer.line;
        let token = lexer.token()?;
        tokens.push(Placed { token, line });
        if token == Token::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Lexer<'t> {
    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), PtxError> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b'\n', _) => {
                    self.line = self.line.saturating_add(1);
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                // NVRTC's text ends with a zero byte where it was kept as a C string.
                (0, _) if self.at < self.text.len() => self.at += 1,
                (b'/', b'/') => {
                    let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                (b'/', b'*') => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let end = rest.find("*/").ok_or_else(|| self.error("comment has no end"))? + 2;
                    let comment = rest.get(..end).unwrap_or_default();
                    self.line += comment.bytes().filter(|&b| b == b'\n').count() as u32;
                    self.at += end;
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token<'t>, PtxError> {
        let first = self.byte(0);
        if self.at >= self.text.len() {
            return Ok(Token::End);
        }
        match first {
            b'0'..=b'9' => self.number(),
            b'"' => {
                let rest = self.text.get(self.at + 1..).unwrap_or_default();
                let end = rest.find(['"', '\n']).filter(|&end| rest.as_bytes()[end] == b'"');
                let end = end.ok_or_else(|| self.error("string has no end"))?;
                self.at += end + 2;
                Ok(Token::Text(rest.get(..end).unwrap_or_default()))
            }
            b'%' | b'$' | b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z' => {
                let start = self.at;
                self.at += 1;
                loop {
                    if is_word(self.byte(0)) || self.byte(0) == b'.' {
                        self.at += 1;
                    } else if self.byte(0) == b':' && self.byte(1) == b':' && is_word(self.byte(2))
                    {
                        self.at += 3;
                    } else {
                        return Ok(Token::Word(self.text.get(start..self.at).unwrap_or_default()));
                    }
                }
            }
            b'!'..=b'~' => {
                self.at += 1;
                Ok(Token::Mark(first))
            }
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let character = rest.chars().next().unwrap_or_default();
                Err(self.error(format!("unexpected character {character:?}")))
            }
        }
    }

    /// `12`, `0x1F`, `017`, `0b11`, each also with `U`; `0f3F800000`, `0d3FF0000000000000`,
    /// `1.5e-3`.
    fn number(&mut self) -> Result<Token<'t>, PtxError> {
        let start = self.at;
        let is_decimal = !matches!(self.byte(1), b'x' | b'X' | b'f' | b'F' | b'd' | b'D');
        loop {
            let is_exponent = is_decimal && matches!(self.byte(0), b'e' | b'E');
            let has_sign = is_exponent && matches!(self.byte(1), b'+' | b'-');
            match self.byte(0) {
                _ if has_sign && self.byte(2).is_ascii_digit() => self.at += 2,
                b'.' if self.byte(1).is_ascii_digit() => self.at += 1,
                byte if is_word(byte) => self.at += 1,
                _ => break,
            }
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        parse_number(word).ok_or_else(|| self.error(format!("`{word}` is no number")))
    }

    /// The byte so far ahead; 0 past the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&self, reason: impl Into<String>) -> PtxError {
        PtxError::new(self.line, reason)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn parse_number<'t>(word: &str) -> Option<Token<'t>> {
    let prefixed = |prefixes: [&str; 2]| prefixes.iter().find_map(|p| word.strip_prefix(p));
    if let Some(bits) = prefixed(["0f", "0F"]) {
        let is_whole = bits.len() == 8 && bits.bytes().all(|b| b.is_ascii_hexdigit());
        return is_whole.then(|| u32::from_str_radix(bits, 16).ok().map(Token::Single))?;
    }
    if let Some(bits) = prefixed(["0d", "0D"]) {
        let is_whole = bits.len() == 16 && bits.bytes().all(|b| b.is_ascii_hexdigit());
        return is_whole.then(|| u64::from_str_radix(bits, 16).ok().map(Token::Double))?;
    }
    let (digits, radix) = if let Some(digits) = prefixed(["0x", "0X"]) {
        (digits, 16)
    } else if let Some(digits) = prefixed(["0b", "0B"]) {
        (digits, 2)
    } else if word.len() > 1 && word.starts_with('0') && !word.contains(['.', 'e', 'E']) {
        (&word[1..], 8)
    } else {
        (word, 10)
    };
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    if digits.is_empty() && radix == 8 {
        return Some(Token::Integer(0));
    }
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        return Some(Token::Integer(value));
    }
    if radix != 10 || !word.contains(['.', 'e', 'E']) {
        return None;
    }
    word.parse::<f64>().ok().map(|value| Token::Double(value.to_bits()))
}
