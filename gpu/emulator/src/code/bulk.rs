//! Bulk copies: to shared memory, which an mbarrier counts, and from there to global memory, which
//! threads wait for in groups.

use super::{Address, AtomicOperation, AtomicType, Register};

/// `cp.async.bulk` to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// Where the bytes go, in shared memory of the cluster.
    pub destination: Address,
    /// Where the bytes are, in global memory or in the block's shared memory.
    pub source: Address,
    /// 32-bit register: how many bytes, a multiple of 16.
    pub bytes: Register,
    /// The mbarrier, in the shared memory that the destination is in.
    pub barrier: Address,
    /// `.multicast::cluster`: a 16-bit register with a bit for each block of the cluster that is
    /// given the bytes, each where the addresses lie in its own memory.
    pub blocks: Option<Register>,
}

/// What instructions do with copies from shared to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkStore {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`
    Issue {
        /// In global memory.
        destination: Address,
        /// In shared memory.
        source: Address,
        /// 32-bit register: how many bytes, a multiple of 16.
        bytes: Register,
        /// How elements change those that are there; they take their place without one.
        reduction: Option<(AtomicOperation, AtomicType)>,
    },
    /// `cp.async.bulk.commit_group`: makes a group of those that a thread has issued.
    Commit,
    /// `cp.async.bulk.wait_group`: waits until at most so many groups are left.
    Wait {
        /// Groups that may be left.
        groups: u32,
        /// `.read`: waits only until the others have read their sources.
        reads_only: bool,
    },
    /// Fences between what threads access and what bulk copies do.
    Fence(ProxyFence),
}

/// A fence between the proxies of threads and of bulk copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFence {
    /// `fence.proxy.async`
    All,
    /// `fence.proxy.async.global`
    Global,
    /// `fence.proxy.async.shared::cta` and `.shared::cluster`
    Shared,
    /// `fence.mbarrier_init`: of mbarriers only, that they were initialised.
    Initialisation,
}
