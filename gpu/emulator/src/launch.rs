//! What a launch is, and what comes of one.

use std::time::Instant;

use crate::counters::Counters;
use crate::finding::Finding;
use crate::memory::BufferId;

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks, as x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block, as x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Arguments, in the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
}

/// What is passed for a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(BufferId),
    /// A value, as its bytes.
    Value(Vec<u8>),
}

/// How it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The order in which blocks, warps and diverged lanes take turns. 0 is the plain one: warps
    /// one after the other, lanes together.
    pub seed: u64,
    /// Instructions that a warp may execute. When one has executed more, the launch is given up.
    pub budget: u64,
    /// When the launch is given up, however far it is; without one, never.
    pub until: Option<Instant>,
    /// Whether the launch is given up soon after anything is found, wrapped addresses aside: for
    /// who only asks whether there is anything.
    pub until_fault: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, budget: 10_000_000, until: None, until_fault: false }
    }
}

/// What came of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What it does wrong, in the order of the PTX text.
    pub findings: Vec<Finding>,
    /// What is wrong only if the result is: see [`FindingKind::is_remark`].
    ///
    /// [`FindingKind::is_remark`]: crate::finding::FindingKind::is_remark
    pub remarks: Vec<Finding>,
    /// What it costs.
    pub counters: Counters,
}

/// Some blocks of a launch whose other blocks have yet to begin: a device may as well run these
/// first. What is found of them is thus true of the whole, except that they may wait for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which, as x, y, z, in the order in which they begin.
    pub blocks: Vec<[u32; 3]>,
    /// Instructions of warps after which no more blocks begin, as they do not where much of vast
    /// buffers is touched. Those that have begun are given up after as many again.
    pub instructions: u64,
}

/// A launch that a driver would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(pub(crate) String);
