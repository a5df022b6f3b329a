//! Device memory: named buffers, each with its rights.
//!
//! Host threads that run different blocks share it. Its words are relaxed atomics, so that a
//! kernel's data race is not one of the emulator; what a race reads is then up to the host.

pub(crate) mod pages;
mod vast;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::code::{Kernel, Variable};
use crate::finding::PlacedAddress;
use vast::{Vast, Word};

/// Where the first buffer's window begins.
const BUFFERS: u64 = 0x1000_0000_0000;
/// Bits of the addresses of a buffer's window. The buffer begins in its middle, so that addresses
/// on both sides of it are told to be near it.
const WINDOW_BITS: u32 = 37;
/// Bytes that a buffer may have; what is larger ends there.
pub const MOST_BYTES: usize = 1 << (WINDOW_BITS - 1);

/// The buffers that kernels work on.
#[derive(Debug, Default)]
pub struct Memory {
    buffers: Vec<Buffer>,
    variables: Variables,
}

/// The variables of a loaded module, which keep what they hold from launch to launch.
#[derive(Debug, Default)]
pub struct Variables {
    /// By address.
    buffers: Vec<Buffer>,
}

impl Variables {
    /// A copy of the variables, with what they hold now.
    #[must_use]
    pub fn copied(&self) -> Self {
        let copied = |buffer: &Buffer| {
            let bytes = buffer.all_bytes();
            Buffer::variable(&buffer.name, buffer.address, &bytes, buffer.is_writable)
        };
        Self { buffers: self.buffers.iter().map(copied).collect() }
    }

    /// Names, addresses and bytes of the variables.
    #[must_use]
    pub fn bytes(&self) -> Vec<(String, u64, Vec<u8>)> {
        let of = |buffer: &Buffer| (buffer.name.clone(), buffer.address, buffer.all_bytes());
        self.buffers.iter().map(of).collect()
    }
}

/// A buffer of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(crate) usize);

/// Bytes in device memory.
#[derive(Debug)]
pub(crate) struct Buffer {
    name: String,
    address: u64,
    bytes: usize,
    is_writable: bool,
    /// Whether kernels before the launch may still be reading or writing it.
    is_in_use: bool,
    words: Vec<AtomicU32>,
    /// A bit for each byte that was written; without them all are.
    defined: Option<Vec<AtomicU32>>,
    /// In place of both.
    vast: Option<Vast>,
}

impl Memory {
    /// A memory without buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer that kernels may only read.
    pub fn read_only(&mut self, name: &str, bytes: &[u8]) -> BufferId {
        self.add(name, (false, false), words(bytes), bytes.len(), None)
    }

    /// Adds a buffer that kernels may only read, and that kernels before the launch in the stream
    /// may still be writing: one that waits for those has to do so before it reads it.
    pub fn input(&mut self, name: &str, bytes: &[u8]) -> BufferId {
        self.add(name, (false, true), words(bytes), bytes.len(), None)
    }

    /// Adds a buffer that kernels may read and write.
    pub fn writable(&mut self, name: &str, bytes: &[u8]) -> BufferId {
        self.add(name, (true, true), words(bytes), bytes.len(), None)
    }

    /// Adds a buffer of `bytes` that kernels have to write before they read it.
    pub fn uninitialised(&mut self, name: &str, bytes: usize) -> BufferId {
        let words = (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(u32::MAX)).collect();
        let defined = (0..bytes.div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
        self.add(name, (true, true), words, bytes, Some(defined))
    }

    /// Adds a buffer of `bytes` that kernels have to write before they read it, of which only what
    /// they touch takes memory.
    pub fn uninitialised_pages(&mut self, name: &str, bytes: usize) -> BufferId {
        let vast = Vast::unwritten(bytes.min(MOST_BYTES));
        self.add_vast(name, true, bytes, vast)
    }

    /// An [`input`](Self::input) that takes no memory: `word` says what a word of it is, by the
    /// word's number.
    pub fn computed(
        &mut self,
        name: &str,
        bytes: usize,
        word: impl Fn(usize) -> u32 + Send + Sync + 'static,
    ) -> BufferId {
        self.add_vast(name, false, bytes, Vast::Computed(Word(Box::new(word))))
    }

    fn add_vast(&mut self, name: &str, is_writable: bool, bytes: usize, vast: Vast) -> BufferId {
        let id = self.add(name, (is_writable, true), Vec::new(), bytes, Some(Vec::new()));
        if let Some(buffer) = self.buffers.get_mut(id.0) {
            buffer.vast = Some(vast);
        }
        id
    }

    fn add(
        &mut self,
        name: &str,
        (is_writable, is_in_use): (bool, bool),
        words: Vec<AtomicU32>,
        bytes: usize,
        defined: Option<Vec<AtomicU32>>,
    ) -> BufferId {
        let index = self.buffers.len();
        let address = BUFFERS + ((index as u64) << WINDOW_BITS) + (1 << (WINDOW_BITS - 1));
        let (name, bytes, vast) = (name.to_owned(), bytes.min(MOST_BYTES), None);
        let buffer = Buffer { name, address, bytes, is_writable, is_in_use, words, defined, vast };
        self.buffers.push(buffer);
        BufferId(index)
    }

    /// Lets a buffer begin so many bytes further on, for launches that come after that: it is
    /// aligned to no more than they are.
    pub fn displace(&mut self, buffer: BufferId, bytes: u64) {
        if let Some(buffer) = self.buffers.get_mut(buffer.0) {
            buffer.address += bytes;
        }
    }

    /// What a buffer holds. What was never written is 0xFF, which makes floats NaN.
    #[must_use]
    pub fn bytes(&self, buffer: BufferId) -> Vec<u8> {
        self.buffers.get(buffer.0).map(Buffer::all_bytes).unwrap_or_default()
    }

    /// An element of 1, 2, 4 or 8 bytes of a buffer at a multiple of its size, if all of it was
    /// written or was there from the first.
    #[must_use]
    pub fn element(&self, buffer: BufferId, offset: usize, bytes: u32) -> Option<u64> {
        let buffer = self.buffers.get(buffer.0)?;
        let is_there =
            offset.checked_add(bytes as usize)? <= buffer.bytes && buffer.is_defined(offset, bytes);
        is_there.then(|| buffer.read(offset, bytes))
    }

    /// The bytes of a buffer of [`uninitialised_pages`](Self::uninitialised_pages) outside of which
    /// nothing was written, in order.
    #[must_use]
    pub fn touched(&self, buffer: BufferId) -> Vec<Range<usize>> {
        let Some(buffer) = self.buffers.get(buffer.0) else { return Vec::new() };
        let ranges = buffer.vast.as_ref().map(Vast::touched).unwrap_or_default();
        ranges.into_iter().map(|range| range.start..range.end.min(buffer.bytes)).collect()
    }

    /// Takes the variables of the module that was launched last, for a launch over other buffers.
    #[must_use]
    pub fn take_variables(&mut self) -> Variables {
        std::mem::take(&mut self.variables)
    }

    /// Puts the variables that a launch of the same module has left.
    pub fn put_variables(&mut self, variables: Variables) {
        self.variables = variables;
    }

    /// Loads the module of a kernel, unless it is loaded.
    pub(crate) fn load(&mut self, kernel: &Kernel) {
        let is_of = |buffer: &Buffer, variable: &Variable| {
            (&buffer.name, buffer.address, buffer.bytes)
                == (&variable.name, variable.address, variable.initial.len())
        };
        let loaded = &self.variables.buffers;
        let is_loaded = loaded.len() == kernel.variables.len()
            && loaded.iter().zip(&kernel.variables).all(|(buffer, v)| is_of(buffer, v));
        if !is_loaded {
            let of = |v: &Variable| Buffer::variable(&v.name, v.address, &v.initial, !v.constant);
            self.variables.buffers = kernel.variables.iter().map(of).collect();
        }
    }

    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The module's variables, by address.
    pub(crate) fn variables(&self) -> &[Buffer] {
        &self.variables.buffers
    }

    /// The address of a buffer in kernels, for arguments that hold it among other things; 0 for one
    /// of another memory.
    #[must_use]
    pub fn address(&self, buffer: BufferId) -> u64 {
        self.buffers.get(buffer.0).map_or(0, Buffer::address)
    }

    /// Bytes of a buffer; 0 of one of another memory.
    #[must_use]
    pub fn len(&self, buffer: BufferId) -> usize {
        self.buffers.get(buffer.0).map_or(0, Buffer::len)
    }

    /// The buffer in whose window an address lies.
    pub(crate) fn near(address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(BUFFERS)? >> WINDOW_BITS).ok()
    }
}

fn words(bytes: &[u8]) -> Vec<AtomicU32> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        AtomicU32::new(u32::from_le_bytes(word))
    };
    bytes.chunks(4).map(word).collect()
}

impl Buffer {
    /// A variable of a module.
    pub(crate) fn variable(name: &str, address: u64, initial: &[u8], is_writable: bool) -> Self {
        let (name, bytes) = (name.to_owned(), initial.len());
        Self {
            name,
            address,
            bytes,
            is_writable,
            is_in_use: true,
            words: words(initial),
            defined: None,
            vast: None,
        }
    }

    /// What it holds.
    fn all_bytes(&self) -> Vec<u8> {
        let words = (0..self.bytes.div_ceil(4)).map(|index| self.word(index));
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        bytes.truncate(self.bytes);
        bytes
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Whether only what is touched takes memory.
    pub(crate) fn is_vast(&self) -> bool {
        self.vast.is_some()
    }

    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    /// Where an access of so many bytes lies in the buffer, if it lies within.
    #[inline]
    pub(crate) fn offset(&self, address: u64, bytes: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.address);
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes as u64).then_some(offset as usize)
    }

    /// A word; 0 past the end.
    #[inline]
    fn word(&self, index: usize) -> u32 {
        match self.words.get(index) {
            Some(word) => word.load(Relaxed),
            None => self.vast.as_ref().map_or(0, |vast| vast.word(index)),
        }
    }

    /// Its place, for one who writes.
    #[inline]
    fn place_of_word(&self, index: usize) -> Option<&AtomicU32> {
        self.words.get(index).or_else(|| self.vast.as_ref()?.place(index))
    }

    /// An element of 1, 2, 4 or 8 bytes at a multiple of its size; 0 past the end.
    #[inline]
    pub(crate) fn read(&self, offset: usize, bytes: u32) -> u64 {
        let word = |index: usize| self.word(index);
        match bytes {
            4 => word(offset / 4).into(),
            8 => u64::from(word(offset / 4)) | u64::from(word(offset / 4 + 1)) << 32,
            2 => (word(offset / 4) >> (offset % 4 * 8) & 0xFFFF).into(),
            _ => (word(offset / 4) >> (offset % 4 * 8) & 0xFF).into(),
        }
    }

    /// The counterpart of [`read`](Self::read).
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: u32, value: u64) {
        let store = |index: usize, value: u32| {
            if let Some(word) = self.place_of_word(index) {
                word.store(value, Relaxed);
            }
        };
        match bytes {
            4 => store(offset / 4, value as u32),
            8 => {
                store(offset / 4, value as u32);
                store(offset / 4 + 1, (value >> 32) as u32);
            }
            _ => {
                let shift = offset % 4 * 8;
                let mask = (if bytes == 2 { 0xFFFF } else { 0xFF_u32 }) << shift;
                let value = (value as u32) << shift & mask;
                if let Some(word) = self.place_of_word(offset / 4) {
                    // Neighbours within the word may be written at the same time.
                    word.fetch_and(!mask, Relaxed);
                    word.fetch_or(value, Relaxed);
                }
            }
        }
        self.define(offset, bytes);
    }

    /// Whether all bytes of an element were written. Elements do not cross words of 32 bytes.
    #[inline]
    pub(crate) fn is_defined(&self, offset: usize, bytes: u32) -> bool {
        let Some(defined) = &self.defined else { return true };
        let mask = byte_mask(offset, bytes);
        let bits = match defined.get(offset / 32) {
            Some(bits) => bits.load(Relaxed),
            None => self.vast.as_ref().map_or(u32::MAX, |vast| vast.defined(offset)),
        };
        bits & mask == mask
    }

    fn define(&self, offset: usize, bytes: u32) {
        let Some(defined) = &self.defined else { return };
        let mask = byte_mask(offset, bytes);
        match (defined.get(offset / 32), &self.vast) {
            (Some(bits), _) => _ = bits.fetch_or(mask, Relaxed),
            (None, Some(vast)) => vast.define(offset, mask),
            (None, None) => {}
        }
    }

    /// Puts an address near this buffer in words.
    pub(crate) fn place(&self, address: u64) -> PlacedAddress {
        let offset = address.wrapping_sub(self.address).cast_signed();
        let sign = if offset < 0 { '-' } else { '+' };
        let (name, offset, bytes) = (&self.name, offset.unsigned_abs(), self.bytes);
        PlacedAddress { address, place: format!("{name} {sign} {offset} of {bytes} bytes") }
    }
}

fn byte_mask(offset: usize, bytes: u32) -> u32 {
    ((1_u32 << bytes) - 1) << (offset % 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_size_are_kept() {
        let mut memory = Memory::new();
        let id = memory.uninitialised("y", 19);
        let buffer = &memory.buffers()[id.0];
        for (offset, bytes, value) in
            [(0, 8, 0x1122_3344_5566_7788), (8, 4, 0xDEAD_BEEF), (14, 2, 0xABCD), (18, 1, 0x7F)]
        {
            assert!(!buffer.is_defined(offset, bytes));
            buffer.write(offset, bytes, value);
            assert!(buffer.is_defined(offset, bytes));
            assert_eq!(buffer.read(offset, bytes), value);
        }
        assert!(!buffer.is_defined(12, 2) && !buffer.is_defined(12, 4));
        let expected = [
            0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xEF, 0xBE, 0xAD, 0xDE, 0xFF, 0xFF,
            0xCD, 0xAB, 0xFF, 0xFF, 0x7F,
        ];
        assert_eq!(memory.bytes(id), expected);
    }

    #[test]
    fn what_is_vast_takes_memory_where_it_is_written() {
        let mut memory = Memory::new();
        let bytes = MOST_BYTES - 20;
        let id = memory.uninitialised_pages("C", bytes);
        let other = memory.computed("B", bytes, |index| index as u32 ^ 1);
        let [c, b] = [id, other].map(|id| &memory.buffers()[id.0]);
        let far = bytes - 28;
        assert_eq!((c.read(far, 4), c.is_defined(far, 4)), (u32::MAX.into(), false));
        assert_eq!(memory.touched(id), []);
        c.write(far, 8, 0x1122_3344_5566_7788);
        c.write(40, 2, 7);
        assert_eq!((c.read(far, 8), c.is_defined(far, 8)), (0x1122_3344_5566_7788, true));
        assert_eq!(memory.element(id, 40, 2), Some(7));
        assert_eq!(memory.element(id, 40, 4), None);
        let touched = memory.touched(id);
        assert_eq!(touched[0], 0..512);
        assert!(touched[1].contains(&far) && touched[1].end == bytes && touched.len() == 2);
        assert_eq!(b.read(1 << 33, 8), (1 << 31 ^ 1) | 1 << 63);
        assert!(b.is_defined(1 << 33, 8) && !b.is_writable());
        b.write(0, 4, 9);
        assert_eq!(b.read(0, 4), 1, "nothing is there to be written");
    }

    #[test]
    fn addresses_on_both_sides_are_near_a_buffer() {
        let mut memory = Memory::new();
        let ids = [memory.read_only("a", &[1; 8]), memory.writable("b", &[2; 16])];
        for id in ids {
            let buffer = &memory.buffers()[id.0];
            for address in [buffer.address() - 4, buffer.address(), buffer.address() + 1000] {
                assert_eq!(Memory::near(address), Some(id.0));
            }
            assert_eq!(buffer.offset(buffer.address() + 4, 4), Some(4));
            assert_eq!(buffer.offset(buffer.address() - 4, 4), None);
            assert_eq!(buffer.offset(buffer.address() + buffer.len() as u64 - 3, 4), None);
        }
        memory.displace(ids[1], 16);
        let b = &memory.buffers()[1];
        assert_eq!((b.address() % 256, Memory::near(b.address())), (16, Some(1)));
        assert_eq!(
            (b.offset(b.address() + 12, 4), b.offset(b.address() - 16, 4)),
            (Some(12), None)
        );
        assert_eq!(b.place(b.address() - 4).place, "b - 4 of 16 bytes");
    }
}
