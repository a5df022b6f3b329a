//! Plain reads that only guess what a compare-and-swap will find.
//!
//! `old = *p; do { seen = old; old = atomicCAS(p, seen, seen + v); } while (old != seen);` is how CUDA's manual makes
//! atomics that a device lacks. The first read races with the atomics of others, but whatever it gives, a swap takes
//! place only where it was right. It is taken for a relaxed read.

use std::collections::BTreeSet;

use crate::code::{Atomic, AtomicOperation, Instruction, Op, Order, Register, Space};

/// From a read to the swap. Compilers need one or two; what they compile need not be read more often.
const MOST_MOVES: usize = 8;

/// Makes the reads relaxed whose results, moved or converted at most, are what compare-and-swaps expect.
pub(super) fn relax(code: &mut [Instruction]) {
    let expected = |instruction: &Instruction| match &instruction.op {
        Op::Atomic(Atomic { operation: AtomicOperation::CompareAndSwap, operands, .. }) => {
            operands.first().copied()
        }
        _ => None,
    };
    let mut guesses: BTreeSet<Register> = code.iter().filter_map(expected).collect();
    if guesses.is_empty() {
        return;
    }
    for _ in 0..MOST_MOVES {
        let moved: Vec<Register> = code.iter().filter_map(|at| source(&at.op, &guesses)).collect();
        guesses.extend(moved);
    }
    for instruction in code {
        if let Op::Load { address, access, destinations } = &mut instruction.op
            && let [destination] = &destinations[..]
            && guesses.contains(destination)
            && !matches!(address.space, Space::Local | Space::Parameter)
            && access.order == Order::Weak
            && !access.read_only_path
        {
            access.order = Order::Relaxed;
        }
    }
}

/// The only register of which an operation makes one of these.
fn source(op: &Op, of: &BTreeSet<Register>) -> Option<Register> {
    let Op::Compute(compute) = op else { return None };
    let (mut read, mut makes) = (Vec::new(), false);
    compute.registers(&mut |register, is_write| match is_write {
        true => makes |= of.contains(&register),
        false => read.push(register),
    });
    match read.as_slice() {
        [only] if makes => Some(*only),
        _ => None,
    }
}
