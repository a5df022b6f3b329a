//! A launch: what all its blocks share.

use std::collections::BTreeSet;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::bulk_use::BulkUse;
use super::clock::Clock;
use super::global::Global;
use super::lanes::position;
use super::races::Cell;
use super::stamp::MOST_BLOCKS;
use super::warp::LocalWord;
use super::ways::Ways;
use crate::code::{Instruction, Kernel, MULTIPROCESSORS, Op, WARP};
use crate::compute::Registers;
use crate::launch::{Argument, Launch, LaunchError, Options, Sample};
use crate::memory::Memory;
use crate::occupancy::blocks_by_registers;
use crate::trace::Trace;

/// Blocks that take part in a round as long as they get further. The same everywhere, so that the
/// host does not decide what happens.
pub(super) const RESIDENT: usize = 128;
/// And of a sample at most, whose first blocks may have executed enough.
const SAMPLED: usize = 8;
/// What each multiprocessor of the largest devices has room for: threads, blocks and bytes of
/// shared memory.
const MOST_RESIDENT_THREADS: usize = 2048;
const MOST_RESIDENT_BLOCKS: usize = 32;
const RESIDENT_SHARED: usize = 228 << 10;
/// Bytes that they may take.
const MOST_BYTES: usize = 1 << 30;
/// Threads that a block may have.
const MOST_THREADS: u32 = 1024;
/// Blocks that a cluster may have on every device that has clusters.
const MOST_CLUSTER: u32 = 8;
/// Bytes of shared memory that a block may have, on the largest devices.
const MOST_SHARED: u32 = 227 * 1024;

/// What all blocks of a launch share.
#[derive(Debug)]
pub(crate) struct Grid<'l> {
    pub(crate) kernel: &'l Kernel,
    pub(crate) size: [u32; 3],
    pub(crate) block_size: [u32; 3],
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
    pub(crate) threads: usize,
    pub(crate) dynamic_shared: u32,
    pub(crate) parameters: Vec<u8>,
    pub(crate) global: Global<'l>,
    pub(crate) options: &'l Options,
    /// The blocks that are run; without it all are.
    pub(super) sample: Option<&'l Sample>,
    /// Instructions that warps of a sample have executed.
    executed: AtomicU64,
    /// Whether a warp or the launch has used up its budget.
    pub(crate) is_over: AtomicBool,
    /// Bytes of an element, by instruction that accesses memory.
    pub(crate) sizes: Vec<u8>,
    /// Whether any operation has the scope of the block or the cluster.
    pub(crate) has_near: bool,
    /// Whether threads wait at the barrier of a cluster, which may have one block only.
    pub(super) has_cluster_barriers: bool,
    pub(crate) bulk: BulkUse,
    /// What threads have done before fences between what they access and bulk copies.
    pub(super) fenced: Mutex<Clock>,
    /// Whether it waits for the kernels before it, which then have not ended when it begins.
    pub(crate) begins_early: bool,
    /// Instructions at which a warp has polled for long, and how often one has when nothing else
    /// could go on.
    pub(super) looked_at: Mutex<BTreeSet<u32>>,
    pub(super) looked_at_last: AtomicU32,
    /// Whether there are strong reads that are no atomics.
    pub(crate) has_strong_reads: bool,
    pub(crate) ways: Ways,
    /// Registers of warps that have ended, for those that begin: memory from the system costs more
    /// than running some kernels.
    ended: Mutex<Vec<Registers>>,
    /// What is executed, if that is recorded.
    pub(super) trace: Option<Mutex<Trace>>,
}

impl<'l> Grid<'l> {
    /// Checks a launch.
    pub(crate) fn new(
        kernel: &'l Kernel,
        launch: &Launch,
        memory: &'l Memory,
        options: &'l Options,
        sample: Option<&'l Sample>,
    ) -> Result<Self, LaunchError> {
        let refuse = |reason: String| Err(LaunchError(reason));
        let name = &kernel.name;
        let count = |of: [u32; 3]| of.iter().try_fold(1_u64, |n, &size| n.checked_mul(size.into()));
        let blocks = count(launch.grid).unwrap_or(u64::MAX);
        let most = MOST_BLOCKS - 1;
        if let Some(sample) = sample {
            let is_block =
                |block: &[u32; 3]| block.iter().zip(launch.grid).all(|(&at, size)| at < size);
            if kernel.cluster.is_some() {
                return refuse(format!("some blocks of a grid: those of `{name}` form clusters"));
            }
            if let Some(block) = sample.blocks.iter().find(|block| !is_block(block)) {
                return refuse(format!("a block {block:?}: the grid has {:?} blocks", launch.grid));
            }
            if sample.blocks.len() as u64 > most {
                return refuse(format!(
                    "{} blocks of a grid: expected {most} at most",
                    sample.blocks.len()
                ));
            }
        } else if blocks == 0 || blocks > most {
            return refuse(format!("a grid of {:?} blocks: expected 1 to {most}", launch.grid));
        }
        let most = kernel.most_threads.unwrap_or(MOST_THREADS).min(MOST_THREADS);
        let threads = match count(launch.block) {
            Some(threads) if (1..=u64::from(most)).contains(&threads) => threads as usize,
            _ => {
                return refuse(format!(
                    "blocks of {:?} threads: `{name}` takes up to {most}",
                    launch.block
                ));
            }
        };
        if let Some(cluster) = kernel.cluster
            && launch.grid.iter().zip(cluster).any(|(blocks, size)| !blocks.is_multiple_of(size))
        {
            return refuse(format!(
                "a grid of {:?} blocks: it does not divide into the clusters of {cluster:?} blocks of `{name}`",
                launch.grid
            ));
        }
        let cluster = kernel.cluster.unwrap_or([1; 3]);
        if cluster.iter().product::<u32>() > MOST_CLUSTER {
            return refuse(format!(
                "clusters of {cluster:?} blocks: a launch takes up to {MOST_CLUSTER} unless the host allows more"
            ));
        }
        let shared = kernel.shared_bytes.saturating_add(launch.dynamic_shared);
        if shared > MOST_SHARED {
            return refuse(format!("{shared} bytes of shared memory: there are {MOST_SHARED}"));
        }
        let (found, expected) = (launch.arguments.len(), kernel.parameters.len());
        if found != expected {
            return refuse(format!("{found} arguments: `{name}` has {expected} parameters"));
        }
        let mut parameters = vec![0; kernel.parameter_bytes as usize];
        for (index, (argument, parameter)) in
            launch.arguments.iter().zip(&kernel.parameters).enumerate()
        {
            let bytes = match argument {
                Argument::Value(bytes) => bytes.clone(),
                Argument::Buffer(id) => match memory.buffers().get(id.0) {
                    Some(buffer) => buffer.address().to_le_bytes().to_vec(),
                    None => {
                        return refuse(format!("argument {index} is a buffer of another memory"));
                    }
                },
            };
            let place =
                parameters.get_mut(parameter.bytes.start as usize..parameter.bytes.end as usize);
            match place {
                Some(place) if place.len() == bytes.len() => place.copy_from_slice(&bytes),
                _ => {
                    let (found, expected) = (bytes.len(), parameter.bytes.len());
                    return refuse(format!(
                        "argument {index} has {found} bytes: `{name}` expects {expected}"
                    ));
                }
            }
        }
        Ok(Self {
            kernel,
            size: launch.grid,
            block_size: launch.block,
            cluster,
            threads,
            dynamic_shared: launch.dynamic_shared,
            parameters,
            global: Global::new(memory),
            options,
            sample,
            executed: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            sizes: kernel.code.iter().map(|instruction| instruction.op.element_bytes()).collect(),
            has_strong_reads: kernel.has_strong_reads(),
            ways: Ways::of(kernel),
            // Nobody else sees an mbarrier where each block is a cluster of its own.
            has_near: kernel.code.iter().any(|Instruction { op, .. }| {
                op.is_near() && (cluster != [1; 3] || !matches!(op, Op::MBarrier(_)))
            }),
            has_cluster_barriers: kernel.code.iter().any(|at| at.op.is_cluster_barrier()),
            bulk: BulkUse::of(kernel),
            fenced: Mutex::default(),
            begins_early: kernel.code.iter().any(|instruction| instruction.op == Op::WaitForGrids),
            ended: Mutex::default(),
            trace: None,
            looked_at: Mutex::default(),
            looked_at_last: AtomicU32::new(0),
        })
    }

    /// How many blocks are run, which have numbers in this order.
    pub(crate) fn blocks(&self) -> u32 {
        match self.sample {
            Some(sample) => sample.blocks.len() as u32,
            None => self.size.iter().product(),
        }
    }

    /// Where a block lies in the grid, by its number.
    pub(crate) fn block(&self, number: u32) -> [u32; 3] {
        match self.sample {
            Some(sample) => sample.blocks.get(number as usize).copied().unwrap_or_default(),
            None => position(number, self.size),
        }
    }

    /// Counts instructions that a warp has executed. Says why the launch is given up, if it is.
    #[inline]
    pub(crate) fn spend(&self, instructions: u64) -> Option<String> {
        if self.global.is_full() {
            return Some("the launch touches more memory than races are looked for in".to_owned());
        }
        if self.options.until.is_some_and(|until| Instant::now() >= until) {
            return Some("it had no more time".to_owned());
        }
        let sample = self.sample?;
        let before = self.executed.fetch_add(instructions, Relaxed);
        (before > sample.instructions.saturating_mul(2))
            .then(|| format!("the blocks have executed {before} instructions of warps"))
    }

    /// How many blocks may be at once where so many can, after some have ended.
    pub(super) fn most_at_once(&self, at_once: usize, ended: u64) -> usize {
        let Some(sample) = self.sample else { return at_once };
        let is_enough =
            self.executed.load(Relaxed) > sample.instructions || self.global.is_half_full();
        if is_enough { 0 } else { at_once.min(ended.clamp(1, SAMPLED as u64) as usize) }
    }

    pub(crate) fn warps(&self) -> usize {
        self.threads.div_ceil(WARP)
    }

    /// A thread of a block, as x, y, z.
    pub(crate) fn thread(&self, index: usize) -> [u32; 3] {
        position(index as u32, self.block_size)
    }

    /// About how many bytes a block takes.
    fn block_bytes(&self) -> usize {
        let counts = self.kernel.registers;
        // Values, and what is known of them.
        let registers = counts.predicates * 20 + counts.words * 144 + counts.longs * 272;
        let local = self.kernel.local_bytes as usize / 4 * size_of::<LocalWord>();
        let shared = (self.kernel.shared_bytes + self.dynamic_shared) as usize;
        self.warps() * (registers + local) + shared / 4 * (5 + size_of::<Cell>())
    }

    /// Registers for a warp that begins.
    pub(crate) fn registers(&self) -> Registers {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match ended {
            Some(mut registers) => {
                registers.reset();
                registers
            }
            None => Registers::new(self.kernel.registers),
        }
    }

    /// Takes the registers of warps that have ended.
    pub(crate) fn take_registers(&self, of: impl Iterator<Item = Registers>) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).extend(of);
    }

    /// How many blocks are at once at most, where they wait for each other.
    pub(super) fn most_resident(&self) -> usize {
        let fit = MOST_BYTES / self.block_bytes().max(1);
        let room = room(self.kernel, self.threads, self.dynamic_shared);
        fit.clamp(1, room).max(self.cluster_blocks())
    }
}

/// Blocks of so many threads that a device has room for at once, as far as threads, shared memory
/// and registers go, these where they are known.
#[must_use]
pub fn room(kernel: &Kernel, threads: usize, dynamic_shared: u32) -> usize {
    let warps = threads.div_ceil(WARP).max(1);
    let of_threads = MOST_RESIDENT_THREADS / (warps * WARP);
    let registers = kernel
        .machine_registers
        .map_or(usize::MAX, |of_a_thread| blocks_by_registers(of_a_thread, warps as u32) as usize);
    // The system takes 1 KB of each block's shared memory.
    let shared = kernel.shared_bytes.saturating_add(dynamic_shared) as usize + (1 << 10);
    let each = of_threads.min(RESIDENT_SHARED / shared).min(registers);
    each.clamp(1, MOST_RESIDENT_BLOCKS) * MULTIPROCESSORS
}
