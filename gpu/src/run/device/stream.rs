//! Work in order, without waiting for it: streams, events between their steps, and graphs to
//! replay.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::Check;
use super::{Context, Device, DeviceError};

/// A queue of work for a device.
///
/// It is a blocking stream: what is asked for synchronously, such as a copy to the host, waits for
/// it.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    handle: sys::CUstream,
}

// SAFETY: a stream may be used from every thread; the driver locks it.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// An empty queue.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        let context = Arc::clone(&device.context);
        context.bind()?;
        let handle =
            result::stream::create(result::stream::StreamKind::Default).check("cuStreamCreate")?;
        Ok(Self { context, handle })
    }

    /// Waits until all that was asked for is done.
    ///
    /// # Errors
    /// When something of it has failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context.bind()?;
        // SAFETY: the stream lives until `self` is dropped.
        unsafe { result::stream::synchronize(self.handle) }.check("cuStreamSynchronize")
    }

    /// Whether something that was asked for has failed, as far as is known without waiting. Not to
    /// be asked while work is captured.
    pub(crate) fn is_broken(&self) -> bool {
        if self.context.bind().is_err() {
            return true;
        }
        // SAFETY: the stream lives until `self` is dropped.
        let status = unsafe { sys::cuStreamQuery(self.handle) };
        !matches!(status, sys::CUresult::CUDA_SUCCESS | sys::CUresult::CUDA_ERROR_NOT_READY)
    }

    /// Notes the time when the work asked for so far is done.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn record(&self, event: &Event) -> Result<(), DeviceError> {
        self.context.bind()?;
        // SAFETY: the stream and the event live until they are dropped.
        unsafe { result::event::record(event.handle, self.handle) }.check("cuEventRecord")
    }

    /// Asks for every byte of a buffer to become 0.
    ///
    /// # Errors
    /// When the driver fails.
    pub(crate) fn clear(&self, buffer: &super::DeviceBuffer) -> Result<(), DeviceError> {
        self.clear_start(buffer, buffer.len())
    }

    /// Asks for the first bytes of a buffer to become 0.
    ///
    /// # Errors
    /// When it has fewer, or the driver fails.
    pub(crate) fn clear_start(
        &self,
        buffer: &super::DeviceBuffer,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        if bytes > buffer.len() {
            return Err(DeviceError::WrongLength { buffer: buffer.len(), given: bytes });
        }
        if bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        // SAFETY: the bytes are the buffer's own; it lives until the caller has waited for the
        // stream.
        unsafe { result::memset_d8_async(buffer.address(), 0, bytes, self.handle) }
            .check("cuMemsetD8Async")
    }

    /// Asks for a buffer of whole halves of words to be filled with
    /// [`POISON_WORD`](super::POISON_WORD).
    ///
    /// # Errors
    /// When the driver fails.
    pub(crate) fn poison(&self, buffer: &super::DeviceBuffer) -> Result<(), DeviceError> {
        let words = buffer.len() / size_of::<u32>();
        let bytes = words * size_of::<u32>();
        self.context.bind()?;
        if words > 0 {
            let address = buffer.address();
            // SAFETY: the words are the buffer's own, and aligned; it lives until the caller has
            // waited for the stream.
            unsafe { sys::cuMemsetD32Async(address, super::POISON_WORD, words, self.handle) }
                .result()
                .check("cuMemsetD32Async")?;
        }
        // An odd number of elements in half precision ends in the middle of a word.
        let halves = (buffer.len() - bytes) / size_of::<u16>();
        if halves > 0 {
            let (address, half) = (buffer.address() + bytes as u64, super::POISON_WORD as u16);
            // SAFETY: as above.
            unsafe { sys::cuMemsetD16Async(address, half, halves, self.handle) }
                .result()
                .check("cuMemsetD16Async")?;
        }
        Ok(())
    }

    /// Asks for a copy of a whole buffer into another of the same length.
    ///
    /// # Errors
    /// When the lengths differ or the driver fails.
    pub(crate) fn copy(
        &self,
        from: &super::DeviceBuffer,
        to: &super::DeviceBuffer,
    ) -> Result<(), DeviceError> {
        if from.len() != to.len() {
            return Err(DeviceError::WrongLength { buffer: to.len(), given: from.len() });
        }
        if from.is_empty() {
            return Ok(());
        }
        self.context.bind()?;
        // SAFETY: both ranges are whole buffers, which live until the caller has waited for the
        // stream.
        unsafe { result::memcpy_dtod_async(to.address(), from.address(), from.len(), self.handle) }
            .check("cuMemcpyDtoDAsync")
    }

    /// Collects what `enqueue` asks of this stream into a graph instead of doing it. The graph is
    /// uploaded to the device, so that its first replay takes as long as later ones.
    ///
    /// # Errors
    /// Those of `enqueue`, and when the driver fails or the work cannot be collected.
    pub(crate) fn capture<E: From<DeviceError>>(
        &self,
        enqueue: impl FnOnce() -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.context.bind()?;
        // Relaxed: other threads may go on allocating.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives until `self` is dropped.
        unsafe { result::stream::begin_capture(self.handle, mode) }
            .check("cuStreamBeginCapture")?;
        let enqueued = enqueue();
        // Ended in every case: a stream left capturing takes no other work.
        // SAFETY: capturing began above.
        let graph = unsafe { result::stream::end_capture(self.handle) }.check("cuStreamEndCapture");
        let graph = match (enqueued, graph) {
            (Ok(()), graph) => graph?,
            (Err(error), graph) => {
                if let Ok(graph) = graph {
                    // SAFETY: the graph was just made and is not used after this.
                    let _ = unsafe { result::graph::destroy(graph) };
                }
                return Err(error);
            }
        };
        let mut replay = std::ptr::null_mut();
        // SAFETY: the graph was just made; the pointer is to a live handle.
        let instantiated =
            unsafe { sys::cuGraphInstantiateWithFlags(&raw mut replay, graph, 0) }.result();
        // SAFETY: the graph was made above and is not used after this.
        let destroyed = unsafe { result::graph::destroy(graph) };
        instantiated.check("cuGraphInstantiateWithFlags")?;
        let graph = Graph { context: Arc::clone(&self.context), handle: replay };
        destroyed.check("cuGraphDestroy")?;
        // SAFETY: graph and stream live until they are dropped.
        unsafe { sys::cuGraphUpload(graph.handle, self.handle) }.result().check("cuGraphUpload")?;
        Ok(graph)
    }

    /// Asks for everything in a graph.
    ///
    /// # Errors
    /// When the driver fails.
    pub(crate) fn replay(&self, graph: &Graph) -> Result<(), DeviceError> {
        self.context.bind()?;
        // SAFETY: graph and stream live until they are dropped. Callers keep what the graph uses.
        unsafe { result::graph::launch(graph.handle, self.handle) }.check("cuGraphLaunch")
    }

    pub(crate) fn handle(&self) -> sys::CUstream {
        self.handle
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here. A failure leaves nothing that could be
            // done.
            let _ = unsafe { result::stream::destroy(self.handle) };
        }
    }
}

/// A moment on a device, with the device's clock.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    handle: sys::CUevent,
}

// SAFETY: an event may be used from every thread; the driver locks it.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that keeps time.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        let context = Arc::clone(&device.context);
        context.bind()?;
        // The default keeps time; it is one of the flags that turns it off.
        let handle =
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).check("cuEventCreate")?;
        Ok(Self { context, handle })
    }

    /// Seconds from an earlier event to this one. Both have happened: the stream was waited for.
    ///
    /// # Errors
    /// When one has not happened, or the driver fails.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64, DeviceError> {
        self.context.bind()?;
        // SAFETY: both events live until they are dropped.
        let milliseconds = unsafe { result::event::elapsed(earlier.handle, self.handle) }
            .check("cuEventElapsedTime")?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here. A failure leaves nothing that could be
            // done.
            let _ = unsafe { result::event::destroy(self.handle) };
        }
    }
}

/// Work that can be asked for again and again with one call. Holds none of the buffers that it
/// uses.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    handle: sys::CUgraphExec,
}

// SAFETY: the handle may be used from every thread, one at a time, which a stream's lock sees to.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made in `capture`, destroyed only here. A failure leaves nothing that could
            // be done.
            let _ = unsafe { result::graph::exec_destroy(self.handle) };
        }
    }
}
