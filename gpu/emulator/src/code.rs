//! A kernel as the machine runs it: instructions on numbered registers, jumps to instruction
//! numbers, every symbol an address.
//!
//! The front end ([`ptx`](crate::ptx)) makes it of PTX. Immediate operands and special registers
//! that do not change during a launch have become registers of their own, filled once for each
//! warp, so that an instruction's operands are registers and nothing else.

mod access;
mod bulk;
mod call;
mod kernel;
mod matrix;
mod mbarrier;

use std::ops::Range;

pub use self::access::{Access, Address, Atomic, AtomicOperation, AtomicType, Order, Scope, Space};
pub use self::bulk::{BulkCopy, BulkStore, ProxyFence};
pub use self::call::{Call, Callee, FUNCTIONS, Function, STACK_BYTES};
pub use self::kernel::{Constant, Kernel, Parameter, SharedArray, SourceLocation, Variable};
pub use self::matrix::{LoadMatrix, Mma, MmaShape, MmaType, StoreMatrix};
pub use self::mbarrier::{MBarrier, MBarrierAction, Phase};
use crate::compute::Compute;
pub use crate::compute::{Register, RegisterCounts, WARP};

/// Where generic addresses of shared memory lie.
pub const SHARED_WINDOW: Range<u64> = 0x0100_0000_0000..0x0100_0100_0000;
/// Bits of an address within the shared memory of a block. In addresses of the cluster's shared
/// memory, the block's rank + 1 stands above them; 0 is the block itself.
pub const SHARED_BITS: u32 = 24;
/// Where generic addresses of the cluster's shared memory lie.
pub const CLUSTER_WINDOW: Range<u64> = 0x0100_0000_0000..0x0101_0000_0000;
/// Where generic addresses of a thread's own memory lie.
pub const LOCAL_WINDOW: Range<u64> = 0x0200_0000_0000..0x0200_0100_0000;
/// Multiprocessors of the largest devices, as `%nsmid` tells.
pub const MULTIPROCESSORS: usize = 132;
/// Where the module's variables lie, one after the other.
pub const VARIABLES: Range<u64> = 0x0300_0000_0000..0x0310_0000_0000;

/// An instruction, with where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Lanes for which it takes effect; all without one.
    pub guard: Option<Guard>,
    /// What it does.
    pub op: Op,
    /// Its line in the PTX text, from 1.
    pub ptx_line: u32,
    /// Where the source has it: an index into [`Kernel::locations`].
    pub location: Option<u32>,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Number of the predicate.
    pub predicate: u16,
    /// The value with which the instruction takes effect.
    pub expected: bool,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Arithmetic, logic, comparison, selection, conversion, move: anything on registers alone,
    /// lane by lane.
    Compute(Compute),
    /// Jumps to an instruction.
    Branch {
        /// Number of the instruction.
        target: u32,
    },
    /// Jumps to the target of that number; undefined past the last.
    BranchIndexed {
        /// A 32-bit register.
        index: Register,
        /// Numbers of instructions.
        targets: Box<[u32]>,
    },
    /// Calls a function that is not inlined.
    Call(Call),
    /// Goes on behind the call.
    Return,
    /// Ends the thread.
    Exit,
    /// `trap`: stops the kernel with an error.
    Trap,
    /// `griddepcontrol.wait`: waits for the kernels before this one in the stream. A kernel that
    /// has it is taken to begin before those have ended.
    WaitForGrids,
    /// Does nothing that can be seen: prefetches, hints, `nanosleep`.
    Nothing,
    /// Reads memory into one to four registers.
    Load {
        /// Where from.
        address: Address,
        /// Of each element.
        access: Access,
        /// One register for each element.
        destinations: Box<[Register]>,
    },
    /// Writes one to four registers to memory.
    Store {
        /// Where to.
        address: Address,
        /// Of each element.
        access: Access,
        /// One register for each element.
        sources: Box<[Register]>,
    },
    /// `atom` and `red`.
    Atomic(Atomic),
    /// `cp.async`: copies from global to shared memory, done when waited for.
    CopyAsync {
        /// In shared memory.
        destination: Address,
        /// In global memory.
        source: Address,
        /// Bytes to write: 4, 8 or 16.
        bytes: u32,
        /// Bytes to read, in a 32-bit register; the rest is zero. All without one.
        source_bytes: Option<Register>,
    },
    /// `cp.async.bulk` to shared memory: the same of many bytes, done when an mbarrier has counted
    /// them.
    CopyBulk(BulkCopy),
    /// `cp.async.bulk` from shared to global memory.
    BulkStore(BulkStore),
    /// `mbarrier`: a barrier in shared memory at which copies arrive, too.
    MBarrier(MBarrier),
    /// `cp.async.commit_group`.
    CopyAsyncCommit,
    /// `cp.async.wait_group` and, with 0, `cp.async.wait_all`: waits until at most so many groups
    /// are left.
    CopyAsyncWait {
        /// Groups that may be left; `None` for `wait_all`, which also waits for copies of no group.
        groups: Option<u32>,
    },
    /// `shfl.sync`.
    Shuffle {
        /// Which lane each lane reads from.
        mode: ShuffleMode,
        /// 32-bit register that receives.
        destination: Register,
        /// Predicate that tells whether the source lane was within the segment.
        in_range: Option<Register>,
        /// 32-bit register that is read.
        source: Register,
        /// 32-bit register: lane, offset or mask, by mode.
        lane: Register,
        /// 32-bit register: clamp in bits 0–4, segment mask in bits 8–12.
        clamp: Register,
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `vote.sync`.
    Vote {
        /// What is asked.
        mode: VoteMode,
        /// Predicate, or 32-bit register for a ballot.
        destination: Register,
        /// Predicate that each lane gives.
        source: Register,
        /// Whether the negation of the source is given.
        negated: bool,
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `match.sync`.
    Match {
        /// `.all` instead of `.any`.
        all: bool,
        /// 32-bit register: lanes with an equal value.
        destination: Register,
        /// Predicate of `.all`: whether all are equal.
        is_equal: Option<Register>,
        /// 32- or 64-bit register that is compared.
        source: Register,
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `redux.sync`.
    Reduce {
        /// The operation, on 32 bits.
        operation: AtomicOperation,
        /// Whether `min` and `max` compare as signed.
        signed: bool,
        /// 32-bit register.
        destination: Register,
        /// 32-bit register.
        source: Register,
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `mma`: a product of small matrices.
    Mma(Box<Mma>),
    /// `ldmatrix`: loads small matrices.
    LoadMatrix(LoadMatrix),
    /// `stmatrix`.
    StoreMatrix(StoreMatrix),
    /// `activemask`.
    ActiveMask {
        /// 32-bit register.
        destination: Register,
    },
    /// `elect.sync`: picks one of the lanes that take part.
    Elect {
        /// 32-bit register: the lane picked.
        destination: Option<Register>,
        /// Predicate: set in the lane picked.
        is_elected: Register,
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `bar.sync`, `bar.arrive`, `bar.red`, and their `barrier.cta` forms.
    Barrier {
        /// Whether it waits, or only arrives.
        waits: bool,
        /// 32-bit register: number of the barrier, 0 to 15.
        barrier: Register,
        /// 32-bit register: threads that take part, a multiple of 32. All of the block without one.
        threads: Option<Register>,
        /// A reduction over the threads.
        reduction: Option<BarrierReduction>,
        /// Every thread of a warp has to execute this very instruction.
        aligned: bool,
    },
    /// `bar.warp.sync`.
    WarpBarrier {
        /// 32-bit register: lanes that take part.
        members: Register,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        /// Whether it releases what was done before; not with `.relaxed`.
        releases: bool,
        /// Every thread of a warp has to execute this very instruction.
        aligned: bool,
    },
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// `membar` and `fence`.
    Fence {
        /// Who sees the accesses before it.
        scope: Scope,
        /// Whether it is `.sc`, and so in one order with all others.
        sequential: bool,
    },
    /// `mov` from `%clock`, `%clock64`, `%globaltimer` and their halves: something that grows.
    Clock {
        /// 32- or 64-bit register.
        destination: Register,
    },
}

/// `shfl.sync`'s modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// From a lower lane.
    Up,
    /// From a higher lane.
    Down,
    /// From the lane whose number differs in some bits.
    Butterfly,
    /// From a lane.
    Index,
}

/// `vote.sync`'s modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteMode {
    /// True in all.
    All,
    /// True in any.
    Any,
    /// The same in all.
    Uniform,
    /// A bit for each lane.
    Ballot,
}

/// `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierReduction {
    /// `popc` with a 32-bit destination, `and` and `or` with a predicate.
    pub operation: BarrierOperation,
    /// Register that receives.
    pub destination: Register,
    /// Predicate that each thread gives.
    pub source: Register,
    /// Whether the negation of the source is given.
    pub negated: bool,
}

/// What `bar.red` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierOperation {
    /// Threads whose predicate is true.
    Count,
    /// Whether all are.
    And,
    /// Whether any is.
    Or,
}

impl Op {
    /// Bytes of an element that it accesses in memory; 0 where it accesses none.
    pub(crate) fn element_bytes(&self) -> u8 {
        match self {
            Self::Load { access, .. } | Self::Store { access, .. } => access.bytes as u8,
            Self::Atomic(atomic) => atomic.ty.bytes() as u8,
            Self::MBarrier(_) => 8,
            Self::BulkStore(BulkStore::Issue { reduction: Some((_, ty)), .. }) => ty.bytes() as u8,
            _ => 0,
        }
    }

    /// Whether it is a strong access.
    pub(crate) fn is_strong(&self) -> bool {
        match self {
            Self::Load { access, .. } | Self::Store { access, .. } => access.order != Order::Weak,
            Self::Atomic(_) | Self::MBarrier(_) => true,
            _ => false,
        }
    }

    /// Whether threads arrive or wait at the barrier of a cluster by it.
    pub(crate) fn is_cluster_barrier(&self) -> bool {
        matches!(self, Self::ClusterArrive { .. } | Self::ClusterWait)
    }

    /// Whether it orders memory for its own block or cluster only.
    pub(crate) fn is_near(&self) -> bool {
        match self {
            Self::Load { access, .. } | Self::Store { access, .. } => {
                access.scope < Scope::Device && access.order != Order::Weak
            }
            Self::Atomic(atomic) => atomic.scope < Scope::Device,
            Self::Fence { scope, .. } => *scope < Scope::Device,
            Self::MBarrier(MBarrier { scope, .. }) => scope.is_some(),
            _ => false,
        }
    }

    /// The registers that it reads.
    pub(crate) fn read(&self) -> Vec<Register> {
        let mut read = Vec::new();
        self.registers(&mut |register, is_written| read.extend((!is_written).then_some(register)));
        read
    }

    /// The registers that it writes.
    pub(crate) fn written(&self) -> Vec<Register> {
        let mut written = Vec::new();
        self.registers(&mut |register, is_written| written.extend(is_written.then_some(register)));
        written
    }

    /// Shows all registers to `visit`, with whether they are written.
    pub(crate) fn registers(&self, visit: &mut dyn FnMut(Register, bool)) {
        let mut all = |read: &[Option<Register>], written: &[Option<Register>]| {
            read.iter().flatten().for_each(|&register| visit(register, false));
            written.iter().flatten().for_each(|&register| visit(register, true));
        };
        match self {
            Self::Compute(compute) => compute.registers(visit),
            Self::BranchIndexed { index, .. } => all(&[Some(*index)], &[]),
            Self::Call(Call { callee: Callee::Pointer(pointer), .. }) => {
                all(&[Some(*pointer)], &[]);
            }
            Self::Load { address, destinations, .. } => {
                all(&[address.base], &[]);
                destinations.iter().for_each(|&register| all(&[], &[Some(register)]));
            }
            Self::Store { address, sources, .. } => {
                all(&[address.base], &[]);
                sources.iter().for_each(|&register| all(&[Some(register)], &[]));
            }
            Self::Atomic(Atomic { address, operands, replacement, destinations, .. }) => {
                all(&[address.base, *replacement], &[]);
                operands.iter().for_each(|&register| all(&[Some(register)], &[]));
                destinations.iter().for_each(|&register| all(&[], &[Some(register)]));
            }
            Self::CopyAsync { destination, source, source_bytes, .. } => {
                all(&[destination.base, source.base, *source_bytes], &[]);
            }
            Self::CopyBulk(BulkCopy { destination, source, bytes, barrier, blocks }) => {
                all(&[destination.base, source.base, Some(*bytes), barrier.base, *blocks], &[]);
            }
            Self::BulkStore(BulkStore::Issue { destination, source, bytes, .. }) => {
                all(&[destination.base, source.base, Some(*bytes)], &[]);
            }
            Self::MBarrier(MBarrier { address, action, .. }) => {
                all(&[address.base], &[]);
                match action {
                    MBarrierAction::Initialise { count } => all(&[Some(*count)], &[]),
                    MBarrierAction::Expect { bytes } | MBarrierAction::Complete { bytes } => {
                        all(&[Some(*bytes)], &[]);
                    }
                    MBarrierAction::Arrive { state, count, bytes, .. } => {
                        all(&[*count, *bytes], &[*state]);
                    }
                    MBarrierAction::Test { phase, is_complete } => {
                        let (Phase::OfParity(phase) | Phase::OfState(phase)) = phase;
                        all(&[Some(*phase)], &[Some(*is_complete)]);
                    }
                    MBarrierAction::Invalidate | MBarrierAction::ArriveBehindCopies { .. } => {}
                }
            }
            Self::Shuffle { destination, in_range, source, lane, clamp, members, .. } => {
                let read = [source, lane, clamp, members].map(|&register| Some(register));
                all(&read, &[Some(*destination), *in_range]);
            }
            Self::Vote { destination, source, members, .. }
            | Self::Reduce { destination, source, members, .. } => {
                all(&[Some(*source), Some(*members)], &[Some(*destination)]);
            }
            Self::Match { destination, is_equal, source, members, .. } => {
                all(&[Some(*source), Some(*members)], &[Some(*destination), *is_equal]);
            }
            Self::Elect { destination, is_elected, members } => {
                all(&[Some(*members)], &[*destination, Some(*is_elected)]);
            }
            Self::Barrier { barrier, threads, reduction, .. } => {
                all(&[Some(*barrier), *threads, reduction.map(|r| r.source)], &[]);
                all(&[], &[reduction.map(|r| r.destination)]);
            }
            Self::Mma(mma) => {
                for sources in [&mma.a, &mma.b, &mma.c] {
                    sources.iter().for_each(|&register| all(&[Some(register)], &[]));
                }
                mma.d.iter().for_each(|&register| all(&[Some(mma.members)], &[Some(register)]));
            }
            Self::LoadMatrix(LoadMatrix { address, destinations, members, .. }) => {
                all(&[address.base, Some(*members)], &[]);
                destinations.iter().for_each(|&register| all(&[], &[Some(register)]));
            }
            Self::StoreMatrix(StoreMatrix { address, sources, members, .. }) => {
                all(&[address.base, Some(*members)], &[]);
                sources.iter().for_each(|&register| all(&[Some(register)], &[]));
            }
            Self::WarpBarrier { members } => all(&[Some(*members)], &[]),
            Self::ActiveMask { destination } | Self::Clock { destination } => {
                all(&[], &[Some(*destination)]);
            }
            Self::Branch { .. }
            | Self::Call(_)
            | Self::Return
            | Self::Exit
            | Self::Trap
            | Self::WaitForGrids
            | Self::Nothing
            | Self::ClusterArrive { .. }
            | Self::ClusterWait
            | Self::CopyAsyncCommit
            | Self::CopyAsyncWait { .. }
            | Self::BulkStore(_)
            | Self::Fence { .. } => {}
        }
    }
}
