//! How fast are kernels?
//!
//! All contenders are timed in turn: one sample of each, then the next sample of each, so that what
//! drifts, drifts for all. What is sampled is one of three regimes, which are never mixed:
//!
//! | regime | a sample is |
//! |---|---|
//! | cold | one launch after the level-2 cache was overwritten |
//! | warm | a graph of launches with a tiny kernel after each, less a graph of as many tiny kernels, timed in the same round; over the launches |
//! | back to back | a graph of launches with nothing between them, over the launches |
//!
//! Before each graph the cache is overwritten, as before a cold launch, and two launches of the
//! contender warm it. Contenders share arrays: without that, one that streams them, and so leaves
//! nothing of them in the cache, would find them there because the contender before it had read
//! them. Who calls it a thousand times in a row does not.
//!
//! The tiny kernel reads from the output and writes to the input. It ends a launch before the next
//! begins: a library whose launches allow their successors to begin early overlaps them back to
//! back, which nobody who uses a result can have. Times are between events on the device. Clocks
//! are left as they are.
//!
//! After the last warm sample a few launches follow that are not timed, between which the tiny
//! kernel gives an element of the input its sign back, of those that were negated before: who knows
//! an input again by a part of it, and by what it has left in the output, and computes nothing
//! then, has a wrong result in the end. Who reads all of the input for that is not found: it
//! computes there, and not in the samples, in which nothing changes. They are no sample because an
//! input that changes takes time of its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use sparserl_core::outcome::{Regime, Samples, Timing};

use super::Stop;
use crate::run::device::{Device, DeviceBuffer, DeviceError, DeviceFacts, Event, Graph, Stream};

/// A launch that takes this long needs no company, in seconds.
const LONG_SAMPLE: f64 = 100e-6;
/// Launches of one sample, at most.
const MOST_LAUNCHES: u32 = 50;
/// Tiny kernels that go before what is timed: they take longer than the host takes to ask for it.
const PRELUDE: u32 = 25;
/// Two events are not told apart when they are closer than this, in seconds.
const RESOLUTION: f64 = 0.5e-6;
/// Launches that warm the cache before a graph.
const WARM_UP: usize = 2;
/// Launches with an input of their own each after the last warm sample, at most.
const MOST_INPUTS: u32 = 8;
/// The cache is overwritten with a buffer of so many times its size.
const FLUSH_FACTOR: usize = 3;
/// Bytes of each side of the copy that bandwidth is measured with, where memory allows.
const COPY_BYTES: usize = 1 << 30;
/// Samples of that copy.
const COPIES: usize = 11;

/// How many samples to take in each regime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounds {
    pub(crate) cold: u32,
    pub(crate) warm: u32,
    pub(crate) back_to_back: u32,
    /// Time for the launches that one regime of one contender is about, in seconds; with those that
    /// go before them, a sample takes up to five times as long. Slow contenders have fewer samples
    /// for it, at least one.
    pub(crate) patience: f64,
}

impl Rounds {
    fn of(self, regime: Regime) -> u32 {
        match regime {
            Regime::Cold => self.cold,
            Regime::Warm => self.warm,
            Regime::BackToBack => self.back_to_back,
        }
    }
}

/// Something to be timed.
pub(crate) trait Contender {
    /// Called before its code runs: once before it is made ready and before each sample.
    fn begin(&self);

    /// Seconds of one launch, where something is known of them.
    fn estimate(&self) -> Option<f64>;

    /// Enqueues one product.
    fn enqueue(&self, stream: &Stream) -> Result<(), Stop>;

    /// Enqueues the tiny kernel that links two launches of a chain. It negates an element of the
    /// input, which one depends on the number; without a number the input stays as it is.
    fn link(&self, stream: &Stream, negated: Option<u32>) -> Result<(), Stop>;

    /// Invalidates the output, before each cold sample and before the last one of the other
    /// regimes, so that whoever skips what was done before finds nothing done.
    fn spoil(&self, stream: &Stream) -> Result<(), Stop>;

    /// Looks at the output, after the last sample of each regime, and after the launches with
    /// inputs of their own.
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
    /// Launches of a sample, so many that it is long enough.
    launches: u32,
    /// With a link after each.
    chain: Option<Graph>,
    back_to_back: Option<Graph>,
    /// Of each regime; fewer where a launch takes long.
    most_samples: u32,
    /// By regime, in the order of [`Regime::ALL`].
    seconds: [Vec<f64>; 3],
}

/// What the samples of all contenders are taken with.
struct Track<'a> {
    stopwatch: &'a Stopwatch,
    stream: &'a Stream,
    start: Event,
    end: Event,
    /// Links alone, by their number.
    links: BTreeMap<u32, Graph>,
    /// What they took in this round, in seconds.
    link_seconds: BTreeMap<u32, f64>,
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

    /// Times contenders in turn; the result of each is its own. All of them write to the same
    /// operands.
    pub(crate) fn time(
        &self,
        stream: &Stream,
        contenders: &mut [Box<dyn Contender + '_>],
        rounds: Rounds,
    ) -> Vec<Result<Timing, Stop>> {
        let failed = |error: DeviceError| -> Vec<Result<Timing, Stop>> {
            contenders.iter().map(|_| Err(Stop::Broken(error.clone()))).collect()
        };
        let mut track = match Track::new(self, stream) {
            Ok(track) => track,
            Err(error) => return failed(error),
        };
        let mut ready =
            |contender: &dyn Contender| Entrant { state: track.ready(contender, rounds) };
        let mut entrants: Vec<_> = contenders.iter().map(|c| ready(c.as_ref())).collect();
        for (place, regime) in Regime::ALL.into_iter().enumerate() {
            for round in 0..rounds.of(regime) {
                track.link_seconds.clear();
                for (entrant, contender) in entrants.iter_mut().zip(contenders.iter_mut()) {
                    entrant.advance(round, rounds.of(regime), |running, last| {
                        let seconds = track.sample(regime, running, contender.as_ref(), last)?;
                        if let Some(samples) = running.seconds.get_mut(place) {
                            samples.push(seconds);
                        }
                        if last {
                            contender.after_last(stream)?;
                        }
                        if last && regime == Regime::Warm {
                            track.change_inputs(running, contender.as_ref())?;
                            contender.after_last(stream)?;
                        }
                        Ok(())
                    });
                }
            }
        }
        entrants.into_iter().map(Entrant::finish).collect()
    }
}

impl<'a> Track<'a> {
    fn new(stopwatch: &'a Stopwatch, stream: &'a Stream) -> Result<Self, DeviceError> {
        let (start, end) = (Event::new(&stopwatch.device)?, Event::new(&stopwatch.device)?);
        let (links, link_seconds) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { stopwatch, stream, start, end, links, link_seconds })
    }

    /// Captures graphs of as many launches as make a sample long enough.
    fn ready(&mut self, contender: &dyn Contender, rounds: Rounds) -> Result<Running, Stop> {
        contender.begin();
        let stream = self.stream;
        let once = match contender.estimate() {
            Some(seconds) if seconds >= LONG_SAMPLE => seconds,
            _ => self.estimate(contender)?,
        };
        let launches = (LONG_SAMPLE / once).ceil().clamp(1.0, f64::from(MOST_LAUNCHES)) as u32;
        let capture = |wanted: u32, each: &dyn Fn() -> Result<(), Stop>| {
            let capture = || stream.capture(|| (0..launches).try_for_each(|_| each()));
            (wanted > 0).then(capture).transpose()
        };
        let enqueue = || contender.enqueue(stream);
        let link = || contender.link(stream, None);
        let chain = capture(rounds.warm, &|| enqueue().and_then(|()| link()))?;
        let back_to_back = capture(rounds.back_to_back, &enqueue)?;
        for count in [PRELUDE, launches] {
            if let Entry::Vacant(vacant) = self.links.entry(count) {
                vacant.insert(stream.capture(|| (0..count).try_for_each(|_| link()))?);
            }
        }
        let most_samples = (rounds.patience / once).clamp(1.0, f64::from(u32::MAX)) as u32;
        Ok(Running { launches, chain, back_to_back, most_samples, seconds: Default::default() })
    }

    /// Warms up; about how many seconds one launch takes.
    fn estimate(&self, contender: &dyn Contender) -> Result<f64, Stop> {
        let stream = self.stream;
        contender.enqueue(stream)?;
        contender.link(stream, None)?;
        stream.synchronize()?;
        let twice = self.timed(|| {
            contender.enqueue(stream)?;
            contender.enqueue(stream)
        })?;
        Ok((twice / 2.0).max(1e-9))
    }

    /// A sample of a regime; the last one is of an output that was invalidated before.
    fn sample(
        &mut self,
        regime: Regime,
        running: &Running,
        contender: &dyn Contender,
        last: bool,
    ) -> Result<f64, Stop> {
        contender.begin();
        let launches = f64::from(running.launches);
        match regime {
            Regime::Cold => self.cold(contender),
            Regime::Warm => {
                let links = self.of_links(running.launches, contender)?;
                let chain = self.replayed(running.chain.as_ref(), contender, last)?;
                Ok((chain - links).max(RESOLUTION) / launches)
            }
            Regime::BackToBack => {
                Ok(self.replayed(running.back_to_back.as_ref(), contender, last)? / launches)
            }
        }
    }

    /// Seconds that so many links take, measured once in each round.
    fn of_links(&mut self, count: u32, contender: &dyn Contender) -> Result<f64, Stop> {
        if let Some(&seconds) = self.link_seconds.get(&count) {
            return Ok(seconds);
        }
        let seconds = self.replayed(self.links.get(&count), contender, false)?;
        self.link_seconds.insert(count, seconds);
        Ok(seconds)
    }

    /// Seconds that a graph takes, the same work going before whatever the graph: the cache is
    /// overwritten, and launches bring into it what they leave there. All of it keeps the device
    /// busy until the host has asked for the rest, so that no gap is timed.
    fn replayed(
        &self,
        graph: Option<&Graph>,
        contender: &dyn Contender,
        spoilt: bool,
    ) -> Result<f64, Stop> {
        let (stream, prelude) = (self.stream, self.links.get(&PRELUDE));
        let (Some(graph), Some(prelude)) = (graph, prelude) else {
            return Err(DeviceError::NoTime { what: "a graph" }.into());
        };
        stream.clear(&self.stopwatch.flush)?;
        stream.replay(prelude)?;
        for _ in 0..WARM_UP {
            contender.enqueue(stream)?;
        }
        if spoilt {
            contender.spoil(stream)?;
        }
        self.timed(|| Ok(stream.replay(graph)?))
    }

    /// Launches with an input of their own each, after the output was invalidated: elements are
    /// negated, and have their signs back one after the other, so that the last launch has the
    /// input as it was.
    fn change_inputs(&self, running: &Running, contender: &dyn Contender) -> Result<(), Stop> {
        let (stream, inputs) = (self.stream, running.launches.clamp(2, MOST_INPUTS));
        contender.begin();
        contender.spoil(stream)?;
        (0..inputs).try_for_each(|element| contender.link(stream, Some(element)))?;
        let mut launched = Ok(());
        for element in 0..inputs {
            // After a failed launch, too: others go on with the input as it was.
            contender.link(stream, Some(element))?;
            launched = launched.and_then(|()| contender.enqueue(stream));
        }
        launched
    }

    fn cold(&self, contender: &dyn Contender) -> Result<f64, Stop> {
        contender.spoil(self.stream)?;
        // Takes longer than the host takes to ask for the rest, so that no gap is timed.
        self.stream.clear(&self.stopwatch.flush)?;
        self.timed(|| contender.enqueue(self.stream))
    }

    /// Seconds on the device that some work takes.
    fn timed(&self, enqueue: impl FnOnce() -> Result<(), Stop>) -> Result<f64, Stop> {
        self.stream.record(&self.start)?;
        enqueue()?;
        self.stream.record(&self.end)?;
        self.stream.synchronize()?;
        Ok(self.end.seconds_since(&self.start)?)
    }
}

impl Entrant {
    /// Takes the sample of a round of so many, unless it failed before or has none in this one.
    /// `sample` is told whether it is the last.
    fn advance(
        &mut self,
        round: u32,
        rounds: u32,
        sample: impl FnOnce(&mut Running, bool) -> Result<(), Stop>,
    ) {
        let Ok(running) = &mut self.state else { return };
        let samples = rounds.min(running.most_samples);
        if is_due(round, rounds, samples)
            && let Err(error) = sample(running, round + 1 == rounds)
        {
            self.state = Err(error);
        }
    }

    fn finish(self) -> Result<Timing, Stop> {
        let samples = |seconds: Vec<f64>| -> Result<Option<Samples>, DeviceError> {
            if seconds.is_empty() {
                return Ok(None);
            }
            let samples = Samples::try_from(seconds);
            Ok(Some(samples.map_err(|_| DeviceError::NoTime { what: "a launch" })?))
        };
        let [cold, warm, back_to_back] = self.state?.seconds;
        let back_to_back = samples(back_to_back)?;
        Ok(Timing { cold: samples(cold)?, warm: samples(warm)?, back_to_back })
    }
}

/// Whether a round has one of so many samples, no more than there are rounds: the last one has, and
/// they are spread evenly, so that what drifts drifts for those with few samples, too.
fn is_due(round: u32, rounds: u32, samples: u32) -> bool {
    let until = |round: u32| u64::from(round) * u64::from(samples) / u64::from(rounds.max(1));
    until(round + 1) > until(round)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_spread_over_all_rounds_and_the_last_round_has_one() {
        for rounds in 1..40 {
            for samples in 1..=rounds {
                let due: Vec<u32> =
                    (0..rounds).filter(|&round| is_due(round, rounds, samples)).collect();
                assert_eq!((due.len() as u32, due.last()), (samples, Some(&(rounds - 1))));
                let longest = due.windows(2).map(|pair| pair[1] - pair[0]).max();
                assert!(longest.unwrap_or(0) <= rounds.div_ceil(samples), "{rounds} {samples}");
            }
        }
    }
}
