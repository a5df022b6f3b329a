//! Device memory between two guard zones.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::Check;
use super::{Context, Device, DeviceError};

/// Length of each guard zone in bytes. A multiple of 256, so that the buffer is aligned as
/// `cuMemAlloc` aligns.
pub const GUARD_BYTES: usize = 4096;

/// A word that, repeated, reads as a quiet NaN in f16, bf16, f32 and f64, and that no arithmetic
/// gives.
pub const POISON_WORD: u32 = 0x7ff8_7ff8;

/// `length` bytes of [`POISON_WORD`], for outputs that a kernel has to write all of.
#[must_use]
pub fn poison(length: usize) -> Vec<u8> {
    POISON_WORD.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// Device memory of a fixed length, with a guard zone on both sides. Freed when dropped.
#[derive(Debug)]
pub struct DeviceBuffer {
    context: Arc<Context>,
    /// Where the first guard zone begins.
    base: sys::CUdeviceptr,
    length: usize,
}

/// What to fill a buffer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// One byte, repeated.
    Byte(u8),
    /// [`POISON_WORD`], repeated.
    Poison,
}

/// Takes memory of the current context's device, which holds anything.
pub(in crate::run) fn allocate(bytes: usize) -> Result<sys::CUdeviceptr, DeviceError> {
    // SAFETY: callers write what they read, or let kernels write it.
    match unsafe { result::malloc_sync(bytes) } {
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            Err(DeviceError::OutOfMemory { bytes })
        }
        other => other.check("cuMemAlloc"),
    }
}

impl DeviceBuffer {
    /// Takes `length` bytes, which hold anything, and writes the guard zones.
    ///
    /// # Errors
    /// When memory does not suffice, or when the driver fails.
    pub fn new(device: &Device, length: usize) -> Result<Self, DeviceError> {
        let context = Arc::clone(&device.context);
        context.bind()?;
        let bytes = length.saturating_add(2 * GUARD_BYTES);
        let base = allocate(bytes)?;
        let buffer = Self { context, base, length };
        let pattern = guard_pattern();
        buffer.write(0, &pattern)?;
        buffer.write(GUARD_BYTES + length, &pattern)?;
        Ok(buffer)
    }

    /// Takes as many bytes as `bytes` has and copies them there.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Self, DeviceError> {
        let mut buffer = Self::new(device, bytes.len())?;
        buffer.upload(bytes)?;
        Ok(buffer)
    }

    /// Length in bytes, guard zones not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address that kernels are given.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.base + GUARD_BYTES as u64
    }

    /// Copies `bytes` over the whole buffer.
    ///
    /// # Errors
    /// When their number is not the buffer's length, or when the driver fails.
    pub fn upload(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.overwrite(bytes)
    }

    /// [`upload`](Self::upload) for memory that this crate's own kernels write to.
    pub(crate) fn overwrite(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.len() != self.length {
            return Err(DeviceError::WrongLength { buffer: self.length, given: bytes.len() });
        }
        self.context.bind()?;
        self.write(GUARD_BYTES, bytes)
    }

    /// Copies the whole buffer to the host.
    ///
    /// # Errors
    /// When the driver fails, as it always does after a kernel's fault.
    pub fn download(&self) -> Result<Vec<u8>, DeviceError> {
        self.context.bind()?;
        self.read(GUARD_BYTES, self.length)
    }

    /// Fills the whole buffer.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn fill(&mut self, fill: Fill) -> Result<(), DeviceError> {
        if self.is_empty() {
            return Ok(());
        }
        self.context.bind()?;
        let address = self.address();
        match fill {
            Fill::Byte(byte) => {
                // SAFETY: `length` bytes from `address` are this buffer's own.
                unsafe { result::memset_d8_sync(address, byte, self.length) }
                    .check("cuMemsetD8")?;
            }
            Fill::Poison => {
                let words = self.length / size_of::<u32>();
                if words > 0 {
                    // SAFETY: `words` words from `address` are this buffer's own, and it is aligned
                    // to 256 bytes.
                    unsafe { sys::cuMemsetD32_v2(address, POISON_WORD, words) }
                        .result()
                        .check("cuMemsetD32")?;
                }
                let rest = self.length % size_of::<u32>();
                self.write(GUARD_BYTES + self.length - rest, &poison(rest))?;
            }
        }
        // On device memory a memset may return before it is done.
        result::ctx::synchronize().check("cuCtxSynchronize")
    }

    /// A hash of the contents, to see whether a kernel changed its input.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn checksum(&self) -> Result<[u8; 32], DeviceError> {
        Ok(*blake3::hash(&self.download()?).as_bytes())
    }

    /// Whether the guard zones are as they were written.
    ///
    /// # Errors
    /// When the driver fails, as it always does after a kernel's fault.
    pub fn guard(&self) -> Result<Guard, DeviceError> {
        self.context.bind()?;
        let before = self.read(0, GUARD_BYTES)?;
        let after = self.read(GUARD_BYTES + self.length, GUARD_BYTES)?;
        Ok(compare_guards(&before, &after))
    }

    /// The allocation, guard zones included, as (address, bytes). The address is a multiple of 256.
    pub(crate) fn whole(&self) -> (u64, u64) {
        (self.base, (self.length + 2 * GUARD_BYTES) as u64)
    }

    /// The guard zones, as (address, bytes).
    pub(crate) fn guards(&self) -> [(u64, u64); 2] {
        let after = self.address() + self.length as u64;
        [(self.base, GUARD_BYTES as u64), (after, GUARD_BYTES as u64)]
    }

    pub(super) fn belongs_to(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// Writes at `offset` bytes from `base`. The context is bound.
    fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: callers stay within the `length + 2 * GUARD_BYTES` bytes from `base`, which are
        // this buffer's own. The copy is done, as far as the host's memory goes, when the call
        // returns.
        unsafe { result::memcpy_htod_sync(self.base + offset as u64, bytes) }.check("cuMemcpyHtoD")
    }

    /// Reads at `offset` bytes from `base`. The context is bound.
    fn read(&self, offset: usize, length: usize) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = vec![0; length];
        if length == 0 {
            return Ok(bytes);
        }
        // SAFETY: as in `write`.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, self.base + offset as u64) }
            .check("cuMemcpyDtoH")?;
        Ok(bytes)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: taken in `new`, freed only here. A failure (after a fault, say) leaves
            // nothing that could be done.
            let _ = unsafe { result::free_sync(self.base) };
        }
    }
}

/// What became of the memory around a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing was written there.
    Intact,
    /// Something was.
    Damaged(Damage),
}

/// A write outside a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// On which side of the buffer. When it is both, `After`.
    pub side: Side,
    /// From the buffer's nearest byte to the nearest damaged byte, at least 1. A written byte that
    /// happens to be the one that was there counts as undamaged.
    pub distance: usize,
    /// Damaged bytes on both sides together, counted likewise.
    pub bytes: usize,
}

/// A side of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Lower addresses.
    Before,
    /// Higher addresses.
    After,
}

/// A zone's contents: NaN in f32 and f64, so that reading them spoils a result, a large number as
/// an index, and no two words alike nearby, so that copying them about is noticed, too.
fn guard_pattern() -> Vec<u8> {
    let words = (0..GUARD_BYTES / size_of::<u32>()).map(|index| {
        let scattered = (index as u32 + 1).wrapping_mul(0x9e37_79b1) >> 13;
        0xfff8_0000 | scattered
    });
    words.flat_map(u32::to_le_bytes).collect()
}

fn compare_guards(before: &[u8], after: &[u8]) -> Guard {
    let pattern = guard_pattern();
    let damaged = |zone: &[u8]| -> Vec<usize> {
        let pairs = zone.iter().zip(&pattern).enumerate();
        pairs.filter(|(_, (found, written))| found != written).map(|(index, _)| index).collect()
    };
    let (before, after) = (damaged(before), damaged(after));
    let bytes = before.len() + after.len();
    if let Some(&first) = after.first() {
        return Guard::Damaged(Damage { side: Side::After, distance: first + 1, bytes });
    }
    match before.last() {
        Some(&last) => {
            let distance = GUARD_BYTES - last;
            Guard::Damaged(Damage { side: Side::Before, distance, bytes })
        }
        None => Guard::Intact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_is_nan_in_every_type() {
        let bytes = poison(11);
        assert_eq!(bytes.len(), 11);
        assert!(f32::from_le_bytes(bytes[..4].try_into().unwrap()).is_nan());
        assert!(f64::from_le_bytes(bytes[..8].try_into().unwrap()).is_nan());
        assert!(half_is_nan(POISON_WORD as u16, 5) && half_is_nan(POISON_WORD as u16, 8));
    }

    fn half_is_nan(bits: u16, exponent_bits: u32) -> bool {
        let mantissa_bits = 15 - exponent_bits;
        let exponent = (bits & 0x7fff) >> mantissa_bits;
        exponent == (1 << exponent_bits) - 1 && bits & ((1 << mantissa_bits) - 1) != 0
    }

    #[test]
    fn guard_words_are_nan_and_differ() {
        let pattern = guard_pattern();
        assert_eq!(pattern.len(), GUARD_BYTES);
        let words: Vec<_> = pattern.as_chunks::<4>().0.to_vec();
        assert!(words.iter().all(|word| f32::from_le_bytes(*word).is_nan()));
        assert!(pattern.as_chunks::<8>().0.iter().all(|word| f64::from_le_bytes(*word).is_nan()));
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn damage_is_measured_from_the_buffer() {
        let pattern = guard_pattern();
        assert_eq!(compare_guards(&pattern, &pattern), Guard::Intact);

        let flipped = |at: usize| {
            let mut zone = pattern.clone();
            zone[at] ^= 1;
            zone
        };
        let guard = compare_guards(&pattern, &flipped(0));
        assert_eq!(guard, Guard::Damaged(Damage { side: Side::After, distance: 1, bytes: 1 }));
        let guard = compare_guards(&flipped(GUARD_BYTES - 4), &pattern);
        assert_eq!(guard, Guard::Damaged(Damage { side: Side::Before, distance: 4, bytes: 1 }));
        let guard = compare_guards(&flipped(0), &flipped(7));
        assert_eq!(guard, Guard::Damaged(Damage { side: Side::After, distance: 8, bytes: 2 }));
    }
}
