//! What instructions do with an mbarrier.

use super::{Address, Order, Register, Scope};

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MBarrier {
    /// Where it lies, in shared memory of the own block or of another of the cluster.
    pub address: Address,
    /// What is done.
    pub action: MBarrierAction,
    /// How it is ordered.
    pub order: Order,
    /// The threads with which it is ordered, where it says so.
    pub scope: Option<Scope>,
}

/// The instructions of an mbarrier. Counts and bytes are 32-bit registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MBarrierAction {
    /// `init`: the first phase begins.
    Initialise {
        /// Arrivals that end a phase.
        count: Register,
    },
    /// `inval`
    Invalidate,
    /// `expect_tx`: the phase does not end before so many bytes more have come.
    Expect {
        /// Bytes.
        bytes: Register,
    },
    /// `complete_tx`: so many bytes have come.
    Complete {
        /// Bytes.
        bytes: Register,
    },
    /// `arrive` and `arrive_drop`
    Arrive {
        /// 64-bit register that receives the state before.
        state: Option<Register>,
        /// How many arrivals it counts as; one without.
        count: Option<Register>,
        /// Bytes that are expected from now on.
        bytes: Option<Register>,
        /// Whether later phases count as many fewer arrivals.
        drops: bool,
        /// Whether it may end the phase.
        completes: bool,
    },
    /// `cp.async.mbarrier.arrive`
    ArriveBehindCopies {
        /// `.noinc`: it is one of the arrivals that the phase counts.
        is_counted: bool,
    },
    /// `test_wait` and `try_wait`
    Test {
        /// The phase that is asked for.
        phase: Phase,
        /// Predicate that receives whether that has ended.
        is_complete: Register,
    },
}

/// How a phase is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// By its parity, a 32-bit register: the present or the last one.
    OfParity(Register),
    /// By what an arrival in it gave, a 64-bit register.
    OfState(Register),
}
