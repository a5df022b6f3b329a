//! A kernel: its instructions, with what they take for granted at its launch.

use std::fmt;
use std::ops::Range;

use super::{Function, Instruction, Op, Order, Register, RegisterCounts};

/// A place in the source, as `-lineinfo` records it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLocation {
    /// The file, as it was named to the compiler.
    pub file: String,
    /// Line, from 1: where the code is written, not where it was inlined.
    pub line: u32,
    /// The line of the kernel that calls the function which this is in, where one is inlined.
    pub called_at: Option<u32>,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, called_at } = self;
        write!(f, "{file}:{line}")?;
        called_at.map_or(Ok(()), |line| write!(f, ", called at line {line}"))
    }
}

/// A register's value that is the same for a whole launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constant {
    /// The same bits in each lane.
    Bits(u64),
    /// A dimension (0 to 2) of `%tid`.
    Thread(u8),
    /// A dimension of `%ntid`.
    BlockSize(u8),
    /// A dimension of `%ctaid`.
    Block(u8),
    /// A dimension of `%nctaid`.
    GridSize(u8),
    /// A dimension of `%cluster_ctaid`.
    ClusterBlock(u8),
    /// `%cluster_ctarank`
    ClusterRank,
    /// A dimension of `%clusterid`.
    Cluster(u8),
    /// A dimension of `%nclusterid`.
    Clusters(u8),
    /// `%laneid`
    Lane,
    /// `%warpid`
    Warp,
    /// `%nwarpid`
    Warps,
    /// `%lanemask_eq`
    LanesEqual,
    /// `%lanemask_le`
    LanesUpTo,
    /// `%lanemask_lt`
    LanesBelow,
    /// `%lanemask_ge`
    LanesFrom,
    /// `%lanemask_gt`
    LanesAbove,
    /// `%smid`: blocks take the multiprocessors in turn.
    Multiprocessor,
    /// `%dynamic_smem_size`
    DynamicShared,
    /// `%total_smem_size`
    TotalShared,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Where it lies among the kernel's parameters, in bytes.
    pub bytes: Range<u32>,
}

/// A variable that the module keeps in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Address of its first byte.
    pub address: u64,
    /// What it holds at first; as long as the variable.
    pub initial: Vec<u8>,
    /// `.const`: only read.
    pub constant: bool,
}

/// A variable in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedArray {
    /// Name of the array.
    pub name: String,
    /// Addresses that it takes.
    pub bytes: Range<u32>,
}

/// A kernel that can be launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// Its instructions; the last never falls through.
    pub code: Vec<Instruction>,
    /// Registers of a warp.
    pub registers: RegisterCounts,
    /// Registers of a thread in machine code, where somebody has assembled it: they decide how many
    /// blocks a device has room for at once.
    pub machine_registers: Option<u32>,
    /// What some of them hold from the beginning.
    pub constants: Vec<(Register, Constant)>,
    /// Registers that may be read before they are written, each with the first instruction that
    /// reads it: they hold nothing at first.
    pub undefined: Vec<(Register, u32)>,
    /// Parameters, in the order of the signature.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
    /// Bytes of shared memory besides what the launch adds, which comes after them.
    pub shared_bytes: u32,
    /// Where the memory that the launch adds begins among the addresses.
    pub shared_dynamic: u32,
    /// What lies before that, by address, with nothing in between.
    pub shared_arrays: Vec<SharedArray>,
    /// Bytes of each thread's own memory.
    pub local_bytes: u32,
    /// What of it lies between arrays, by address.
    pub local_gaps: Vec<Range<u32>>,
    /// Functions that are called, not inlined, in the order of their code.
    pub functions: Vec<Function>,
    /// Variables of the module, by address.
    pub variables: Vec<Variable>,
    /// The places in the source that instructions come from.
    pub locations: Vec<SourceLocation>,
    /// Most threads of a block (`.maxntid`, `.reqntid`), where the kernel says so.
    pub most_threads: Option<u32>,
    /// Blocks of a cluster as x, y, z (`.reqnctapercluster`), where the kernel says so.
    pub cluster: Option<[u32; 3]>,
}

impl Kernel {
    /// Where the source has an instruction. The compiler puts those that it moves to the front of
    /// everything nowhere; for them it is the first place after.
    #[must_use]
    pub fn location(&self, instruction: usize) -> Option<&SourceLocation> {
        let from = self.code.get(instruction..)?;
        let location = from.iter().find_map(|instruction| instruction.location)?;
        self.locations.get(location as usize)
    }

    /// Whether it has strong reads that are no atomics, as those have who wait for other threads.
    #[must_use]
    pub fn has_strong_reads(&self) -> bool {
        self.code.iter().any(|instruction| match &instruction.op {
            Op::Load { access, .. } => access.order != Order::Weak,
            _ => false,
        })
    }

    /// Whether atomics give it old values, as they do where threads draw what to do next.
    #[must_use]
    pub fn has_drawn_values(&self) -> bool {
        self.code.iter().any(|instruction| match &instruction.op {
            Op::Atomic(atomic) => !atomic.destinations.is_empty(),
            _ => false,
        })
    }

    /// Whether it has atomics or other strong accesses, by which threads may work on one result.
    #[must_use]
    pub fn has_strong_accesses(&self) -> bool {
        self.code.iter().any(|instruction| instruction.op.is_strong())
    }

    /// The place of an instruction in the source and in the PTX, in words.
    #[must_use]
    pub fn place(&self, number: u32) -> String {
        let Some(instruction) = self.code.get(number as usize) else {
            return "nowhere".to_owned();
        };
        let line = instruction.ptx_line;
        match self.location(number as usize) {
            Some(location) => format!("at {location} (PTX line {line})"),
            None => format!("at PTX line {line}"),
        }
    }
}
