//! Bulk copies from shared to global memory, which threads wait for in groups.

use super::{Address, Register};

/// What instructions do with such copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkStore {
    /// `cp.async.bulk`
    Issue {
        /// In global memory.
        destination: Address,
        /// In shared memory.
        source: Address,
        /// 32-bit register: how many bytes, a multiple of 16.
        bytes: Register,
    },
    /// `cp.async.bulk.commit_group`: makes a group of those that a thread has issued.
    Commit,
    /// `cp.async.bulk.wait_group`, with `.read` or without: waits until at most so many groups are
    /// left.
    Wait {
        /// Groups that may be left.
        groups: u32,
    },
    /// `fence.proxy.async`: what threads have written to shared memory is there for copies.
    Fence,
}
