//! How fast are kernels?
//!
//! All contenders are timed in turn: one sample of each, then the next sample of each, so that what drifts, drifts for
//! all. A **warm** sample replays a graph of several launches, after one that is not timed, so that the gaps between
//! launches do not count; a **cold** one is a single launch after the level-2 cache was overwritten. Times are between
//! events on the device. Clocks are left as they are.

use sparserl_core::outcome::{Samples, Timing};

use super::Stop;
use crate::run::device::{Device, DeviceBuffer, DeviceError, DeviceFacts, Event, Graph, Stream};

/// A launch that takes this long needs no company, in seconds.
const LONG_SAMPLE: f64 = 100e-6;
/// Launches of one sample, at most.
const MOST_LAUNCHES: f64 = 50.0;
/// Time for the samples of one kind of one contender, in seconds.
const PATIENCE: f64 = 2.0;
/// The cache is overwritten with a buffer of so many times its size.
const FLUSH_FACTOR: usize = 3;
/// Bytes of each side of the copy that bandwidth is measured with, where memory allows.
const COPY_BYTES: usize = 1 << 30;
/// Samples of that copy.
const COPIES: usize = 11;

/// How many samples to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    pub(crate) warm: u32,
    pub(crate) cold: u32,
}

/// Something to be timed.
pub(crate) trait Contender {
    /// Asks for one product.
    fn enqueue(&self, stream: &Stream) -> Result<(), Stop>;

    /// Takes the result away, before each cold sample and before the last warm one.
    fn spoil(&self, stream: &Stream) -> Result<(), Stop>;

    /// Looks at the output, after the last sample of each kind.
    fn after_last(&mut self, stream: &Stream) -> Result<(), Stop>;
}

/// Times contenders.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    device: Device,
    flush: DeviceBuffer,
    copy_bandwidth: f64,
}

/// A contender on its way: its samples so far, or why there are no more.
struct Entrant {
    state: Result<Running, Stop>,
}

struct Running {
    /// Absent when a launch takes long enough alone.
    graph: Option<Graph>,
    launches: f64,
    /// Of each kind; fewer where a launch takes long.
    most_samples: u32,
    warm: Vec<f64>,
    cold: Vec<f64>,
    start: Event,
    end: Event,
}

impl Stopwatch {
    /// Takes memory to flush the cache with, and measures the bandwidth of a copy.
    pub(crate) fn new(
        device: &Device,
        stream: &Stream,
        facts: &DeviceFacts,
    ) -> Result<Self, DeviceError> {
        let l2 = usize::try_from(facts.target.l2_bytes).unwrap_or(0).max(1 << 20);
        let memory = usize::try_from(facts.memory_bytes).unwrap_or(usize::MAX);
        let copy_bandwidth = copy_bandwidth(device, stream, COPY_BYTES.min(memory / 16))?;
        Ok(Self {
            device: device.clone(),
            flush: DeviceBuffer::new(device, FLUSH_FACTOR * l2)?,
            copy_bandwidth,
        })
    }

    /// Bytes a second, read and written, of a device-to-device copy.
    pub(crate) fn copy_bandwidth(&self) -> f64 {
        self.copy_bandwidth
    }

    /// Times contenders in turn; the result of each is its own.
    pub(crate) fn time(
        &self,
        stream: &Stream,
        contenders: &mut [Box<dyn Contender + '_>],
        rounds: Rounds,
    ) -> Vec<Result<Timing, Stop>> {
        let ready = |contender: &dyn Contender| Entrant { state: self.ready(stream, contender) };
        let mut entrants: Vec<_> = contenders.iter().map(|c| ready(c.as_ref())).collect();
        for round in 0..rounds.warm {
            for (entrant, contender) in entrants.iter_mut().zip(contenders.iter_mut()) {
                entrant.advance(round, rounds.warm, |running, last| {
                    running.warm_sample(stream, contender.as_mut(), last)
                });
            }
        }
        for round in 0..rounds.cold {
            for (entrant, contender) in entrants.iter_mut().zip(contenders.iter_mut()) {
                entrant.advance(round, rounds.cold, |running, last| {
                    running.cold_sample(stream, contender.as_mut(), self, last)
                });
            }
        }
        entrants.into_iter().map(Entrant::finish).collect()
    }

    /// Warms up, and makes a graph of as many launches as make a sample long enough.
    fn ready(&self, stream: &Stream, contender: &dyn Contender) -> Result<Running, Stop> {
        let (start, end) = (Event::new(&self.device)?, Event::new(&self.device)?);
        let enqueue = || contender.enqueue(stream);
        enqueue()?;
        stream.synchronize()?;
        stream.record(&start)?;
        enqueue()?;
        enqueue()?;
        stream.record(&end)?;
        stream.synchronize()?;
        let once = (end.seconds_since(&start)? / 2.0).max(1e-9);
        let launches = (LONG_SAMPLE / once).ceil().clamp(1.0, MOST_LAUNCHES);
        let all = || (0..launches as u32).try_for_each(|_| enqueue());
        let graph = if launches > 1.0 { Some(stream.capture(all)?) } else { None };
        let most_samples = (PATIENCE / once).clamp(1.0, f64::from(u32::MAX)) as u32;
        let (warm, cold) = (Vec::new(), Vec::new());
        Ok(Running { graph, launches, most_samples, warm, cold, start, end })
    }
}

impl Entrant {
    /// Takes the sample of a round of so many, unless it failed before or has enough. `sample` is told whether it is
    /// the last.
    fn advance(
        &mut self,
        round: u32,
        rounds: u32,
        sample: impl FnOnce(&mut Running, bool) -> Result<(), Stop>,
    ) {
        let Ok(running) = &mut self.state else { return };
        let rounds = rounds.min(running.most_samples);
        if round < rounds
            && let Err(error) = sample(running, round + 1 == rounds)
        {
            self.state = Err(error);
        }
    }

    fn finish(self) -> Result<Timing, Stop> {
        let running = self.state?;
        let samples = |seconds: Vec<f64>| {
            Samples::try_from(seconds).map_err(|_| DeviceError::NoTime { what: "a launch" })
        };
        let cold = if running.cold.is_empty() { None } else { Some(samples(running.cold)?) };
        Ok(Timing { warm: samples(running.warm)?, cold })
    }
}

impl Running {
    fn warm_sample(
        &mut self,
        stream: &Stream,
        contender: &mut dyn Contender,
        last: bool,
    ) -> Result<(), Stop> {
        // Brings the operands back into the cache, after the other contenders had it.
        contender.enqueue(stream)?;
        if last {
            contender.spoil(stream)?;
        }
        stream.record(&self.start)?;
        match &self.graph {
            Some(graph) => stream.replay(graph)?,
            None => contender.enqueue(stream)?,
        }
        stream.record(&self.end)?;
        stream.synchronize()?;
        self.warm.push(self.end.seconds_since(&self.start)? / self.launches);
        if last { contender.after_last(stream) } else { Ok(()) }
    }

    fn cold_sample(
        &mut self,
        stream: &Stream,
        contender: &mut dyn Contender,
        stopwatch: &Stopwatch,
        last: bool,
    ) -> Result<(), Stop> {
        // Whoever skips what was done before finds nothing done.
        contender.spoil(stream)?;
        // Takes longer than the host takes to ask for the rest, so that no gap is timed.
        stream.clear(&stopwatch.flush)?;
        stream.record(&self.start)?;
        contender.enqueue(stream)?;
        stream.record(&self.end)?;
        stream.synchronize()?;
        self.cold.push(self.end.seconds_since(&self.start)?);
        if last { contender.after_last(stream) } else { Ok(()) }
    }
}

/// Bytes a second, read and written, of a copy from device memory to device memory.
fn copy_bandwidth(device: &Device, stream: &Stream, bytes: usize) -> Result<f64, DeviceError> {
    let (from, to) = (DeviceBuffer::new(device, bytes)?, DeviceBuffer::new(device, bytes)?);
    let (start, end) = (Event::new(device)?, Event::new(device)?);
    stream.poison(&from)?;
    stream.copy(&from, &to)?;
    let mut seconds = Vec::new();
    for _ in 0..COPIES {
        stream.record(&start)?;
        stream.copy(&from, &to)?;
        stream.record(&end)?;
        stream.synchronize()?;
        seconds.push(end.seconds_since(&start)?);
    }
    let samples = Samples::try_from(seconds).map_err(|_| DeviceError::NoTime { what: "a copy" })?;
    Ok(2.0 * bytes as f64 / samples.median())
}
