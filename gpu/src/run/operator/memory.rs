//! Device memory that is filled without waiting for the caller's streams.

use cudarc::driver::{result, sys};

use super::Entered;
use crate::run::device::driver::Check as _;
use crate::run::device::{Device, DeviceError, allocate};

/// Device memory without guard zones. Freed when dropped.
#[derive(Debug)]
pub struct DeviceMemory {
    device: Device,
    address: u64,
    length: usize,
}

impl DeviceMemory {
    /// Takes `length` bytes, which hold anything; at least one, so that there is an address.
    ///
    /// # Errors
    /// When memory does not suffice, or when the driver fails.
    pub fn new(device: &Device, length: usize) -> Result<Self, DeviceError> {
        let _entered = device.enter()?;
        let address = allocate(length.max(1))?;
        Ok(Self { device: device.clone(), address, length })
    }

    /// Takes as many bytes as `bytes` has and copies them there.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Self, DeviceError> {
        let memory = Self::new(device, bytes.len())?;
        memory.upload(bytes)?;
        Ok(memory)
    }

    /// Copies bytes over its beginning.
    ///
    /// # Errors
    /// When they are more than it holds, or when the driver fails.
    pub fn upload(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        fill(&self.device, std::iter::once((self, Filling::Bytes(bytes))))
    }

    /// The address that kernels are given.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes of the memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: allocated in `new`, freed only here.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// What memory begins with.
#[derive(Clone, Copy)]
pub(super) enum Filling<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(usize),
}

impl Filling<'_> {
    fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Zeros(length) => length,
        }
    }
}

/// Fills the beginnings of several memories, waiting once for all of them.
///
/// # Errors
/// When one is to be filled with more than it holds, or when the driver fails.
pub(super) fn fill<'a>(
    device: &Device,
    memories: impl Iterator<Item = (&'a DeviceMemory, Filling<'a>)>,
) -> Result<(), DeviceError> {
    let stream = OwnStream::new(device)?;
    let mut asked = memories.filter(|(_, filling)| filling.len() > 0);
    let asked = asked.try_for_each(|(memory, filling)| {
        if filling.len() > memory.length {
            let (buffer, given) = (memory.length, filling.len());
            return Err(DeviceError::WrongLength { buffer, given });
        }
        match filling {
            // SAFETY: so many bytes from the address are the memory's own, and the stream is waited
            // for before the bytes, which outlive this call, can go away.
            Filling::Bytes(bytes) => unsafe {
                result::memcpy_htod_async(memory.address, bytes, stream.handle)
                    .check("cuMemcpyHtoDAsync")
            },
            // SAFETY: so many bytes from the address are the memory's own.
            Filling::Zeros(length) => unsafe {
                result::memset_d8_async(memory.address, 0, length, stream.handle)
                    .check("cuMemsetD8Async")
            },
        }
    });
    // Also where one was refused: those before it are under way.
    let waited = stream.wait();
    asked.and(waited)
}

/// Copies from the caller's device memory.
///
/// # Errors
/// When the driver fails.
///
/// # Safety
/// `bytes.len()` bytes from `address` are device memory, and nothing writes them.
pub unsafe fn read(device: &Device, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let stream = OwnStream::new(device)?;
    // SAFETY: by the contract, and the stream is waited for before `bytes` can go away.
    unsafe { result::memcpy_dtoh_async(bytes, address, stream.handle) }
        .check("cuMemcpyDtoHAsync")?;
    stream.wait()
}

/// A stream that waits for no other.
struct OwnStream {
    handle: sys::CUstream,
    _entered: Entered,
}

impl OwnStream {
    fn new(device: &Device) -> Result<Self, DeviceError> {
        let entered = device.enter()?;
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking)
            .check("cuStreamCreate")?;
        Ok(Self { handle, _entered: entered })
    }

    fn wait(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream was created in `new` and is destroyed only in `drop`.
        unsafe { result::stream::synchronize(self.handle) }.check("cuStreamSynchronize")
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: as in `wait`; nothing uses it any more.
        let _ = unsafe { result::stream::destroy(self.handle) };
    }
}
