//! Text as it is read: within its limit, and no longer than its own beginning lets it be.

use std::io::{self, Read};
use std::vec::Vec;

use super::{Fault, Format, MatrixFileErrorKind};
use crate::matrix::harwell_boeing::{self, HarwellBoeingError};
use crate::matrix::market::{self, MarketError, MarketErrorKind};
use crate::matrix::smtx::{self, SmtxError};

/// Text is read in pieces of this size, so that a bomb is met before it is held.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes by which a text is known.
const BEGINNING: usize = 64 << 10;
/// Bytes that a line with an entry may have: no blanks and digits that anybody needs are more.
const LONGEST_ENTRY: u64 = 512;
/// Bytes that blank lines and comments among and behind the entries may have.
const ASIDES: u64 = 1 << 20;

/// What the beginning of a text claims; `None` as long as it does not say. The number is the limit
/// of the text.
pub(super) type Beginning<'t> = dyn Fn(&[u8], u64) -> Result<Option<Claim>, Fault> + 't;

/// What a text claims of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    entries: u64,
    /// Bytes that a text of so many entries has at the very most.
    most: u64,
}

impl Claim {
    /// Of a text that may be as long as its limit.
    pub(super) const NONE: Self = Self { entries: 0, most: u64::MAX };

    /// What the beginning of a text in a format claims, where so many bytes may be held.
    pub(super) fn of(
        text: &[u8],
        format: Format,
        limit: u64,
        held: u64,
    ) -> Result<Option<Self>, Fault> {
        match format {
            Format::Market => Self::of_market(text, limit, held),
            Format::Smtx => smtx::check_sizes(text)
                .map(|()| Some(Self::NONE))
                .map_err(|SmtxError { line, kind }| (Some(line), MatrixFileErrorKind::Smtx(kind))),
            Format::HarwellBoeing => harwell_boeing::check_header(text)
                .map(|()| Some(Self::NONE))
                .map_err(|HarwellBoeingError { line, kind }| {
                    (Some(line), MatrixFileErrorKind::HarwellBoeing(kind))
                }),
            // It has a list of what it holds at its end.
            Format::Npz => Ok(Some(Self::NONE)),
        }
    }

    fn of_market(text: &[u8], limit: u64, held: u64) -> Result<Option<Self>, Fault> {
        // A size line that is cut off would be another one. No banner is as long as a beginning.
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(text.len(), |end| end + 1);
        let length = usize::try_from(limit).unwrap_or(usize::MAX).max(whole);
        match market::beginning(&text[..whole], length) {
            Ok((header, body)) => {
                if header.least_bytes() > held {
                    return Err((None, MatrixFileErrorKind::Memory));
                }
                let entries = header.entries as u64;
                let lines = LONGEST_ENTRY.saturating_mul(entries);
                let most = lines.saturating_add(body as u64).saturating_add(ASIDES);
                Ok(Some(Self { entries, most }))
            }
            // Comments go on.
            Err(MarketError { kind: MarketErrorKind::NoSize, .. }) => Ok(None),
            Err(MarketError { kind: MarketErrorKind::TooShort { .. }, .. }) => {
                Err((None, MatrixFileErrorKind::TooLong { limit }))
            }
            Err(MarketError { line, kind }) => Err((Some(line), MatrixFileErrorKind::Market(kind))),
        }
    }
}

/// Text as far as it is read.
pub(super) struct Text<'t> {
    pub(super) bytes: Vec<u8>,
    limit: u64,
    beginning: &'t Beginning<'t>,
    /// Bytes from which on the beginning is looked at.
    look_at: usize,
    claim: Option<Claim>,
}

impl<'t> Text<'t> {
    pub(super) fn new(limit: u64, beginning: &'t Beginning<'t>) -> Self {
        Self { bytes: Vec::new(), limit, beginning, look_at: BEGINNING, claim: None }
    }

    /// Adds all that a source has.
    pub(super) fn read(
        &mut self,
        mut source: impl Read,
        failed: impl Fn(&Self, io::Error) -> Fault,
    ) -> Result<(), Fault> {
        loop {
            match source.by_ref().take(PIECE_BYTES).read_to_end(&mut self.bytes) {
                Ok(0) => return Ok(()),
                Ok(_) => self.check()?,
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return Err((None, MatrixFileErrorKind::Memory));
                }
                Err(error) => return Err(failed(self, error)),
            }
        }
    }

    fn check(&mut self) -> Result<(), Fault> {
        let length = self.bytes.len() as u64;
        if length > self.limit {
            return Err((None, MatrixFileErrorKind::TooLong { limit: self.limit }));
        }
        if self.claim.is_none() && self.bytes.len() >= self.look_at {
            // One that goes on is looked at again only when there is much more of it.
            self.look_at = self.bytes.len().saturating_mul(2);
            self.claim = (self.beginning)(&self.bytes, self.limit)?;
        }
        match self.claim {
            Some(Claim { entries, most }) if length > most => {
                Err((None, MatrixFileErrorKind::MoreThanClaimed { entries, most }))
            }
            _ => Ok(()),
        }
    }
}
