//! Registers that may be read before anything is written to them, and results that are never read.

use std::collections::BTreeSet;

use crate::code::{Instruction, Op, Register};

/// The registers of code that some way through it, or through a function that begins at one of the
/// `entries`, reads before it writes them. Most kernels have none.
pub(super) fn read_before_written(code: &[Instruction], entries: &[usize]) -> BTreeSet<Register> {
    let blocks = Block::all(code, entries);
    let mut live: Vec<BTreeSet<Register>> =
        blocks.iter().map(|block| block.reads.clone()).collect();
    // Backwards, until nothing changes: what a block's successors read, and it does not write, it
    // hands on.
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in blocks.iter().enumerate().rev() {
            let after = block.successors.iter().filter_map(|&next| live.get(next));
            let new: Vec<Register> = after
                .flatten()
                .filter(|register| !block.writes.contains(register))
                .filter(|register| !live[index].contains(register))
                .copied()
                .collect();
            changed |= !new.is_empty();
            live[index].extend(new);
        }
    }
    let begins = |block: &Block| block.start == 0 || entries.contains(&block.start);
    let live = blocks.iter().zip(live).filter(|(block, _)| begins(block));
    live.flat_map(|(_, live)| live).collect()
}

/// The registers that an instruction reads, that of its guard among them.
pub(super) fn read_by(instruction: &Instruction) -> impl Iterator<Item = Register> + use<> {
    let guard = instruction.guard.map(|guard| Register::Predicate(guard.predicate));
    guard.into_iter().chain(instruction.op.read())
}

/// Takes results away from atomics that nobody reads, as the assembler does: it makes `red` of
/// `atom`.
pub(super) fn drop_unread_results(code: &mut [Instruction]) {
    let mut read = BTreeSet::new();
    for instruction in &*code {
        read.extend(read_by(instruction));
    }
    for Instruction { op, .. } in code {
        if let Op::Atomic(atomic) = op
            && !atomic.destinations.iter().any(|register| read.contains(register))
        {
            atomic.destinations = Box::default();
        }
    }
}

/// Instructions that are executed one after the other.
struct Block {
    /// Number of the first.
    start: usize,
    /// What it reads before it writes.
    reads: BTreeSet<Register>,
    /// What it writes for certain.
    writes: BTreeSet<Register>,
    successors: Vec<usize>,
}

impl Block {
    fn all(code: &[Instruction], entries: &[usize]) -> Vec<Self> {
        let targets = |instruction: &Instruction| match &instruction.op {
            Op::Branch { target } => vec![*target as usize],
            Op::BranchIndexed { targets, .. } => targets.iter().map(|&t| t as usize).collect(),
            _ => Vec::new(),
        };
        let ends = |instruction: &Instruction| {
            matches!(
                instruction.op,
                Op::Branch { .. } | Op::BranchIndexed { .. } | Op::Return | Op::Exit | Op::Trap
            )
        };
        let mut starts = BTreeSet::from([0]);
        starts.extend(entries);
        for (at, instruction) in code.iter().enumerate() {
            starts.extend(targets(instruction));
            if ends(instruction) {
                starts.insert(at + 1);
            }
        }
        let starts: Vec<usize> = starts.into_iter().filter(|&start| start < code.len()).collect();
        let number = |at: usize| starts.binary_search(&at).ok();
        let block = |(index, &start): (usize, &usize)| {
            let end = starts.get(index + 1).copied().unwrap_or(code.len());
            let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
            let instructions = code.get(start..end).unwrap_or_default();
            for instruction in instructions {
                reads.extend(read_by(instruction).filter(|register| !writes.contains(register)));
                if instruction.guard.is_none() {
                    writes.extend(instruction.op.written());
                }
            }
            let last = instructions.last();
            let mut successors: Vec<usize> =
                last.map(targets).unwrap_or_default().into_iter().filter_map(number).collect();
            let falls_through = last.is_none_or(|last| !ends(last) || last.guard.is_some());
            successors.extend(falls_through.then(|| number(end)).flatten());
            Self { start, reads, writes, successors }
        };
        starts.iter().enumerate().map(block).collect()
    }
}
