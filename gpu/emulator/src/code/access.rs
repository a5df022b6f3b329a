//! Accesses of memory: where, in what order, and atomic ones.

use super::Register;

/// An address in a space: a register plus a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The state space.
    pub space: Space,
    /// A 32- or 64-bit register, or none for a constant address.
    pub base: Option<Register>,
    /// Added to it.
    pub offset: i64,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Any of the next four, by the address: see [`SHARED_WINDOW`](super::SHARED_WINDOW) and
    /// [`LOCAL_WINDOW`](super::LOCAL_WINDOW).
    Generic,
    /// Device memory, and the module's own `.global` and `.const` variables.
    Global,
    /// Shared memory of the block; addresses begin at 0.
    Shared,
    /// Shared memory of the blocks of the cluster: see [`SHARED_BITS`](super::SHARED_BITS).
    Cluster,
    /// A thread's own memory; addresses begin at 0.
    Local,
    /// The kernel's parameters; addresses begin at 0.
    Parameter,
}

/// How memory is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Whether a narrow element is extended by its sign when it is loaded into a wider register.
    pub signed: bool,
    /// How it is ordered.
    pub order: Order,
    /// Whom it is strong to, where it is.
    pub scope: Scope,
    /// `.nc`: through a cache that does not see what the launch writes.
    pub read_only_path: bool,
}

/// How an access is ordered with those of other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Not at all: together with another thread's write to the same place it is a data race.
    Weak,
    /// `volatile` and `relaxed`: no race, and no order.
    Relaxed,
    /// What another thread released is seen by what comes after.
    Acquire,
    /// What came before is seen by another thread that acquires.
    Release,
    /// Both.
    AcquireRelease,
}

/// Threads to which an order extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Those of the block.
    Block,
    /// Those of the block's cluster.
    Cluster,
    /// Those of the grid, or of more devices.
    Device,
}

/// An atomic read-modify-write, of an element or of a vector of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// The address that it changes.
    pub address: Address,
    /// What is done.
    pub operation: AtomicOperation,
    /// Type of what is there.
    pub ty: AtomicType,
    /// How it is ordered.
    pub order: Order,
    /// Who it is atomic to.
    pub scope: Scope,
    /// Receive the old values, one for each element; none for `red`.
    pub destinations: Box<[Register]>,
    /// One operand for each element of a vector; the value to compare with for `cas`. Each element
    /// is atomic by itself.
    pub operands: Box<[Register]>,
    /// The new value for `cas`.
    pub replacement: Option<Register>,
}

impl Atomic {
    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> u32 {
        self.ty.bytes() * self.operands.len() as u32
    }
}

/// What is done atomically, or over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOperation {
    /// `+`
    Add,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// The operand.
    Exchange,
    /// The replacement, if equal to the operand.
    CompareAndSwap,
    /// One more; 0 after the operand.
    Increment,
    /// One less; the operand after 0 or anything above the operand.
    Decrement,
}

/// Type of an atomic's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicType {
    /// 16 bits without a type: `cas` and `exch`.
    B16,
    /// Unsigned 32 bits, or bits.
    U32,
    /// Signed 32 bits.
    S32,
    /// Unsigned 64 bits, or bits.
    U64,
    /// Signed 64 bits.
    S64,
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// binary16.
    F16,
    /// Two of binary16.
    F16x2,
    /// bfloat16.
    BF16,
    /// Two of bfloat16.
    BF16x2,
}
