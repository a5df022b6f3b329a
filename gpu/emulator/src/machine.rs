//! The machine that runs a kernel: blocks on the host's threads, warps in turns, lanes in groups.
//!
//! # Scheduling
//!
//! Since Volta every thread has its own program counter. A warp runs the *group* of its ready lanes
//! that share the least program counter; a group goes on until it diverges, waits, or reaches the
//! instruction of other ready lanes and joins them. The compiler lays out code so that the least
//! counter is the furthest behind, which makes lanes converge where they do on a GPU; where it does
//! not, only speed is lost. A group that runs for long while others are ready gives way, so that a
//! lane which spins until another lane acts does not spin for ever: lanes make progress
//! independently, as the programming guide promises. With a seed, warps and groups take turns at
//! random.
//!
//! Warp-wide operations wait for the lanes that they name. Lanes that have ended do not count;
//! reading from them is a finding. When nothing in a block can go on, what each waits for is a
//! finding.
//!
//! # Rounds
//!
//! Blocks run in parallel in rounds. In a round each resident block runs until it ends or until all
//! its warps wait, be it for a strong access of device memory: an atomic, a volatile or a relaxed
//! one. Between rounds those are executed one by one, block by block. A kernel without data races
//! thus gives the same results and findings however many threads the host has, and blocks may still
//! wait for each other.
//!
//! A warp that polls sleeps until what it polls changes, and nothing that it does in vain counts
//! against its budget. When all resident blocks only wait, more blocks begin, as many as a device
//! has room for; when there is no more room, all try again, which is counted dearly.
//!
//! Blocks of a cluster begin together and are done together, as each may look into the shared
//! memory of the others; such accesses take place between rounds as well.
//!
//! # Memory
//!
//! Weak accesses that nothing orders are a race, whatever the interleaving: happens-before is
//! tracked after the chapter "Memory Consistency Model" of the PTX ISA. Strong accesses do not race
//! with each other, but need not be seen at once either: with a seed, strong reads give the value
//! before the last one wherever the model allows that, and relaxed accesses now and then overtake
//! an atomic without a result. A kernel that relies on more gets wrong results, and remarks say
//! which reads were in no order with a write, and which accesses overtook.

mod access;
mod activations;
mod arrivals;
mod atomic;
mod barrier;
mod block;
mod bulk_loads;
mod bulk_stores;
mod bulk_use;
mod calls;
mod clock;
mod cluster;
mod collective;
mod copies;
mod core;
mod execution;
mod findings;
mod global;
mod grid;
mod groups;
mod lanes;
mod late;
mod load;
mod looks;
mod matrix;
mod mbarrier;
mod membership;
mod order;
mod past;
mod phases;
mod polls;
mod proxies;
mod races;
mod recorder;
mod request;
mod rounds;
mod sent;
mod shared;
mod stamp;
mod store;
mod touch;
mod traffic;
mod undefined;
mod warp;
mod ways;

use std::sync::{Mutex, PoisonError};

pub use self::grid::room;

use self::grid::Grid;
use crate::code::Kernel;
use crate::launch::{Launch, LaunchError, Options, Report, Sample};
use crate::memory::Memory;
use crate::trace::Trace;

/// Runs a kernel. The module's variables are made for the first launch over a memory, and keep what
/// they hold from launch to launch of kernels of that module. The report is the same for the same
/// seed, however many threads the host has, unless the kernel has data races or is given up.
///
/// # Errors
/// When the launch does not fit the kernel. Whatever the kernel does is in the report.
pub fn run(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
) -> Result<Report, LaunchError> {
    memory.load(kernel);
    Ok(Grid::new(kernel, launch, memory, options, None)?.run())
}

/// Runs a kernel as [`run`] does, on one thread of the host, and records what it executes.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
) -> Result<(Report, Trace), LaunchError> {
    memory.load(kernel);
    let mut grid = Grid::new(kernel, launch, memory, options, None)?;
    grid.trace = Some(Mutex::default());
    // Events of blocks that run at once would come in any order.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let one =
        one.map_err(|error| LaunchError(format!("no thread to trace a launch on: {error}")))?;
    let report = one.install(|| grid.run());
    let trace = grid.trace.take().map(Mutex::into_inner);
    Ok((report, trace.map(|t| t.unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()))
}

/// Runs some blocks of a kernel as [`run`] does. A launch that is given up has a finding
/// [`GivenUp`] or [`OverBudget`]; without them, all blocks that [`counters`] counts have ended.
///
/// # Errors
/// As [`run`]; besides, when the kernel has clusters of blocks or the sample a block that the grid
/// has not.
///
/// [`GivenUp`]: crate::finding::FindingKind::GivenUp
/// [`OverBudget`]: crate::finding::FindingKind::OverBudget
/// [`counters`]: Report::counters
pub fn run_sample(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    sample: &Sample,
) -> Result<Report, LaunchError> {
    memory.load(kernel);
    Ok(Grid::new(kernel, launch, memory, options, Some(sample))?.run())
}
