//! Plain reads that only guess what a compare-and-swap will find.
//!
//! `old = *p; do { seen = old; old = atomicCAS(p, seen, seen + v); } while (old != seen);` is how
//! CUDA's manual makes atomics that a device lacks. The first read races with the atomics of
//! others, but whatever it gives, a swap takes place only where it was right. It is taken for a
//! relaxed read.

use std::collections::BTreeSet;

use crate::code::{Address, Atomic, AtomicOperation, Instruction, Op, Order, Register, Space};

/// From a read to the swap. Compilers need one or two; what they compile need not be read more
/// often.
const MOST_MOVES: usize = 8;

/// What the swaps at one address expect.
struct Guesses {
    address: Address,
    registers: BTreeSet<Register>,
}

/// Makes the reads relaxed whose results, moved or converted at most, are what compare-and-swaps at
/// the same address expect.
pub(super) fn relax(code: &mut [Instruction]) {
    let mut all: Vec<Guesses> = Vec::new();
    for instruction in code.iter() {
        if let Op::Atomic(Atomic { address, operation, operands, .. }) = &instruction.op
            && *operation == AtomicOperation::CompareAndSwap
            && let Some(&expected) = operands.first()
        {
            match all.iter_mut().find(|guesses| guesses.address == *address) {
                Some(guesses) => _ = guesses.registers.insert(expected),
                None => all.push(Guesses { address: *address, registers: [expected].into() }),
            }
        }
    }
    for guesses in &mut all {
        for _ in 0..MOST_MOVES {
            let moved = code.iter().filter_map(|at| source(&at.op, &guesses.registers));
            let moved: Vec<Register> = moved.collect();
            guesses.registers.extend(moved);
        }
    }
    for instruction in code {
        if let Op::Load { address, access, destinations } = &mut instruction.op
            && let [destination] = &destinations[..]
            && all.iter().any(|g| g.address == *address && g.registers.contains(destination))
            && !matches!(address.space, Space::Local | Space::Parameter)
            && access.order == Order::Weak
            && !access.read_only_path
        {
            access.order = Order::Relaxed;
        }
    }
}

/// The register that an operation moves or converts to one of these.
fn source(op: &Op, of: &BTreeSet<Register>) -> Option<Register> {
    let Op::Compute(compute) = op else { return None };
    let (mut read, mut makes) = (Vec::new(), false);
    compute.registers(&mut |register, is_write| match is_write {
        true => makes |= of.contains(&register),
        false => read.push(register),
    });
    match read.as_slice() {
        [only] if makes && compute.is_move() => Some(*only),
        _ => None,
    }
}
