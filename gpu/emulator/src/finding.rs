//! What is wrong with a kernel, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::code::SourceLocation;

/// Something that a kernel does wrong. Of the same kind at the same instruction only the first is
/// kept, with how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// Where in the PTX text, from 1.
    pub ptx_line: u32,
    /// Where in the source, when it was compiled with line information.
    pub source: Option<SourceLocation>,
    /// Block, as x, y, z.
    pub block: [u32; 3],
    /// Thread in the block, as x, y, z.
    pub thread: [u32; 3],
    /// The address, for accesses to memory.
    pub address: Option<PlacedAddress>,
    /// What makes it wrong, in a few words; such as with which other access it races.
    pub detail: String,
    /// How often it happened.
    pub count: u64,
}

/// An address, and what lies there or next to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedAddress {
    /// The address in its space.
    pub address: u64,
    /// The place in words: `x + 4096 of 4096 bytes`, `shared memory + 12`.
    pub place: String,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An access to the shared memory of another block of the cluster, which may not have begun or
    /// may have ended.
    AbsentBlock,
    /// An access outside of every buffer, of shared memory or of a thread's own memory.
    OutOfBounds,
    /// An address that is no multiple of the access's size.
    Misaligned,
    /// A write to a buffer that the kernel may only read.
    WriteToReadOnly,
    /// A branch, an address or a stored result depends on memory that was never written.
    Uninitialised,
    /// A kernel that waits for those before it in the stream touches what they may be using before
    /// it has waited.
    BeforeWait,
    /// Two threads access the same place, at least one writes, and nothing orders them.
    Race,
    /// Not all threads that a barrier waits for arrive at it: some take another way, or have ended.
    DivergentBarrier,
    /// More arrivals at an mbarrier than it counts in a phase.
    TooManyArrivals,
    /// A warp-wide operation (shuffle, vote, match) names lanes that never take part, or is
    /// executed by one that it does not name.
    MissingLanes,
    /// A shuffle reads from a lane that does not take part, and something depends on what it gives.
    InactiveLane,
    /// An address was computed from a 16- or 32-bit number that wrapped around.
    AddressOverflow,
    /// Threads wait for each other for ever.
    Deadlock,
    /// A warp waits for what nobody does, or goes round in a loop in which nothing changes.
    Endless,
    /// More instructions than the budget allows: it may never end.
    OverBudget,
    /// More memory or time than the emulator has for the launch: what would become of it is not
    /// known.
    GivenUp,
    /// `trap`, a jump to nowhere, or a call of what is no such function.
    Trap,
    /// Calls nest so deeply that a thread's stack cannot hold them.
    StackOverflow,
    /// An element of the output is wrong: where it was stored last, and what is known of why.
    WrongElement,
    /// An element of the output is wrong that the launch has not stored.
    MissingElement,
    /// A launch that is right by itself goes wrong by what an earlier one has left: where that is
    /// read.
    KeptState,
    /// A remark: threads store to one place in no order, but all the same value.
    SameValue,
    /// A remark: a strong read and a strong write of another thread are in no order, so that the
    /// read may give what was there before. Some are given that.
    UnorderedRead,
    /// A remark: another thread may see an access before an atomic that comes before it in its own
    /// thread.
    Overtaking,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 24] = [
        Self::AbsentBlock,
        Self::OutOfBounds,
        Self::Misaligned,
        Self::WriteToReadOnly,
        Self::Uninitialised,
        Self::BeforeWait,
        Self::Race,
        Self::DivergentBarrier,
        Self::TooManyArrivals,
        Self::MissingLanes,
        Self::InactiveLane,
        Self::AddressOverflow,
        Self::Deadlock,
        Self::Endless,
        Self::OverBudget,
        Self::GivenUp,
        Self::Trap,
        Self::StackOverflow,
        Self::WrongElement,
        Self::MissingElement,
        Self::KeptState,
        Self::SameValue,
        Self::UnorderedRead,
        Self::Overtaking,
    ];

    /// Whether it makes no kernel wrong by itself. Where a result is wrong, it may be why.
    #[must_use]
    pub fn is_remark(self) -> bool {
        matches!(
            self,
            Self::WrongElement
                | Self::MissingElement
                | Self::KeptState
                | Self::SameValue
                | Self::UnorderedRead
                | Self::Overtaking
        )
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AbsentBlock => "shared memory of a block that may not be there",
            Self::OutOfBounds => "out of bounds",
            Self::Misaligned => "misaligned",
            Self::WriteToReadOnly => "write to a read-only buffer",
            Self::Uninitialised => "use of uninitialised memory",
            Self::BeforeWait => "access before the wait for earlier kernels",
            Self::Race => "race",
            Self::DivergentBarrier => "divergent barrier",
            Self::TooManyArrivals => "too many arrivals at an mbarrier",
            Self::MissingLanes => "missing lanes",
            Self::InactiveLane => "shuffle from an inactive lane",
            Self::AddressOverflow => "overflow in an address",
            Self::Deadlock => "deadlock",
            Self::Endless => "never ends",
            Self::OverBudget => "over the instruction budget",
            Self::GivenUp => "given up",
            Self::Trap => "trap",
            Self::StackOverflow => "stack overflow",
            Self::WrongElement => "wrong element",
            Self::MissingElement => "missing element",
            Self::KeptState => "state of an earlier launch",
            Self::SameValue => "the same value stored in no order",
            Self::UnorderedRead => "a strong read in no order with a write",
            Self::Overtaking => "an access that overtakes an atomic",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(location) = &self.source {
            write!(f, " at {location}")?;
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, " (PTX line {}), block ({bx},{by},{bz}) thread ({tx},{ty},{tz})", self.ptx_line)?;
        if let Some(PlacedAddress { address, place }) = &self.address {
            write!(f, ", address {address:#x} ({place})")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}
