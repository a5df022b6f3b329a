use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CsrView;

/// Which matrix something was found out about, as plans, results and recordings name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixIdentity {
    /// What its user calls it, such as its file without the folder; says nothing about its content.
    #[serde(rename = "file")]
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries.
    pub nnz: usize,
    /// The hash of the matrix as it was read, in double precision, before it is rounded to a task's
    /// precision.
    #[serde(rename = "blake3")]
    pub fingerprint: Fingerprint,
}

impl MatrixIdentity {
    /// Names a matrix as it was read, whose hash is `fingerprint`.
    #[must_use]
    pub fn new(name: String, fingerprint: Fingerprint, as_read: CsrView<'_, f64>) -> Self {
        let (rows, cols, nnz) = (as_read.rows(), as_read.cols(), as_read.nnz());
        Self { name, rows, cols, nnz, fingerprint }
    }
}

/// The BLAKE3 hash of a matrix: 32 bytes, written as 64 hexadecimal digits. Whoever hashes says of
/// what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint([u8; 32]);

impl From<[u8; 32]> for Fingerprint {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    /// Reads the form that `Display` writes, in capitals too.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let byte = |pair: &[u8; 2]| Some((16 * digit(pair[0])? + digit(pair[1])?) as u8);
        let (pairs, []) = text.as_bytes().as_chunks() else { return Err(refused(text)) };
        let bytes: Option<alloc::vec::Vec<u8>> = pairs.iter().map(byte).collect();
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(Self).ok_or_else(|| refused(text))
    }
}

fn refused(text: &str) -> ParseFingerprintError {
    ParseFingerprintError { text: text.to_owned() }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = ParseFingerprintError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The text is no hash of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no fingerprint of a matrix: expected 64 hexadecimal digits", text.escape_debug())]
pub struct ParseFingerprintError {
    text: String,
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn fingerprints_are_written_and_read_as_64_digits() {
        let fingerprint = Fingerprint::from(core::array::from_fn(|i| 8 * i as u8 + 3));
        let text = fingerprint.to_string();
        assert!(text.starts_with("030b131b") && text.ends_with("ebf3fb"), "{text}");
        assert_eq!(text.parse(), Ok(fingerprint));
        assert_eq!(text.to_uppercase().parse(), Ok(fingerprint));
        for wrong in ["", "12", &text[1..], &format!("{text}00"), &text.replace('f', "g")] {
            let error = wrong.parse::<Fingerprint>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("64"), "{error}");
        }
    }
}
