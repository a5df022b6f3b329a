//! What the device finds out about a launch, all in one buffer, so that the host waits for it once
//! before a launch and once after it.

use crate::run::device::{Argument, Device, DeviceBuffer, DeviceError, Stream};

/// Words of a verdict, as the device code declares it.
const VERDICT_WORDS: usize = 5;

/// Room on the device for a verdict, and for digests of regions from before and after a launch,
/// each at the place of its region.
///
/// ```text
/// verdict | digests from before the launch | digests from after
/// ```
#[derive(Debug)]
pub(crate) struct Notes {
    buffer: DeviceBuffer,
    places: usize,
}

/// When a digest is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// How a result compares with the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Elements off by more than their bound, or NaN.
    pub(crate) violations: u64,
    /// Elements that no finite bound could be given for.
    pub(crate) unbounded: u64,
    /// The largest |error| / bound.
    pub(crate) worst_ratio: f64,
    /// The first element in violation; arbitrary when there is none.
    pub(crate) first_violation: u64,
}

/// What is read of notes.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    words: Vec<u64>,
    places: usize,
}

impl Notes {
    /// Room for the digests of so many regions.
    pub(super) fn new(device: &Device, places: usize) -> Result<Self, DeviceError> {
        let bytes = (VERDICT_WORDS + 2 * places) * size_of::<u64>();
        Ok(Self { buffer: DeviceBuffer::new(device, bytes)?, places })
    }

    /// Digests of as many regions have room.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// Asks for the verdict to be forgotten.
    pub(crate) fn clear_verdict(&self, stream: &Stream) -> Result<(), DeviceError> {
        stream.clear_start(&self.buffer, VERDICT_WORDS * size_of::<u64>())
    }

    /// Where the verdict is.
    pub(super) fn verdict(&self) -> Argument<'static> {
        Argument::U64(self.buffer.address())
    }

    /// Where the digests from then are.
    pub(super) fn digests(&self, when: When) -> Argument<'static> {
        let words = VERDICT_WORDS + start(when, self.places);
        Argument::U64(self.buffer.address() + (words * size_of::<u64>()) as u64)
    }

    /// Everything that was asked for. Waits for the stream.
    pub(crate) fn read(&self) -> Result<Noted, DeviceError> {
        let words = bytemuck::pod_collect_to_vec(&self.buffer.download()?);
        Ok(Noted { words, places: self.places })
    }
}

/// The first word of digests, counted behind the verdict.
fn start(when: When, places: usize) -> usize {
    match when {
        When::Before => 0,
        When::After => places,
    }
}

impl Noted {
    /// A verdict alone.
    #[cfg(test)]
    pub(super) fn of(words: Vec<u64>) -> Self {
        Self { words, places: 0 }
    }

    /// How many regions differ to the device, and the digests from before and after.
    #[cfg(test)]
    pub(crate) fn of_digests(changed: u64, [before, after]: [&[u64]; 2]) -> Self {
        let verdict = [changed, 0, 0, 0, 0];
        Self { words: [&verdict, before, after].concat(), places: before.len() }
    }

    /// The digest of the region at a place.
    pub(crate) fn digest(&self, when: When, place: usize) -> u64 {
        self.word(VERDICT_WORDS + start(when, self.places) + place)
    }

    /// Whether one of the regions that were compared has another digest than before. Then there is
    /// no verdict.
    pub(crate) fn is_changed(&self) -> bool {
        self.word(0) > 0
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            violations: self.word(1),
            unbounded: self.word(2),
            worst_ratio: f64::from_bits(self.word(3)),
            first_violation: !self.word(4),
        }
    }

    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or_default()
    }
}
