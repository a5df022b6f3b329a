//! Puts gaps between the arrays of a function's own memory.
//!
//! The compiler joins them to one variable, `__local_depot0`, and names each by its distance from
//! the beginning: `add.u64 %rd1, %SPL, 16`, where `%SPL` has the variable's address. It does that
//! once for each array; constant indices come after it. So the distances tell where arrays begin,
//! and an access past one would fall into the next unseen. What alignment adds to an array counts
//! as a part of it.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::syntax::{Declaration, DeclaredSpace, Instruction, Operand, Statement, StatementKind};

/// What the compiler names the variable.
const NAME: &str = "__local_depot";
/// Bytes between arrays, at least.
const GAP: u64 = 256;

/// Moves the arrays apart, and tells where each lies within the variable. None where a function has
/// no such variable, or does something else with its address.
pub(super) fn spread(body: &mut [Statement]) -> Vec<Range<u64>> {
    let Some((align, bytes)) = depot(body).map(|depot| (depot.align, depot.bytes())) else {
        return Vec::new();
    };
    let mut starts = BTreeSet::new();
    let frames = frames(body);
    for instruction in instructions(body) {
        match begins_array(instruction, &frames) {
            Some(start) => {
                starts.insert(start);
            }
            None if uses_otherwise(instruction, &frames) => return Vec::new(),
            None => {}
        }
    }
    let starts: Vec<u64> = starts.into_iter().collect();
    if starts.len() < 2 || starts.last().is_some_and(|&last| last >= bytes) {
        return Vec::new();
    }
    let gap = GAP.next_multiple_of(align.max(1));
    let ends = starts.iter().skip(1).copied().chain([bytes]);
    let moved: Vec<Range<u64>> = (0..)
        .zip(starts.iter().zip(ends))
        .map(|(n, (&start, end))| start + n * gap..end + n * gap)
        .collect();
    for statement in body {
        match &mut statement.kind {
            StatementKind::Variable(declaration) if is_depot(declaration) => {
                declaration.count = moved.last().map(|last| last.end);
            }
            StatementKind::Instruction(instruction) => {
                if let Some(start) = begins_array(instruction, &frames)
                    && let Ok(number) = starts.binary_search(&start)
                    && let Some(Operand::Integer(distance)) = instruction.operands.get_mut(2)
                {
                    *distance = start + number as u64 * gap;
                }
            }
            _ => {}
        }
    }
    moved
}

fn is_depot(declaration: &Declaration) -> bool {
    declaration.space == DeclaredSpace::Local
        && declaration.name.starts_with(NAME)
        && declaration.ty.bits == 8
}

fn depot(body: &[Statement]) -> Option<&Declaration> {
    body.iter().find_map(|statement| match &statement.kind {
        StatementKind::Variable(declaration) => is_depot(declaration).then_some(declaration),
        _ => None,
    })
}

fn instructions(body: &[Statement]) -> impl Iterator<Item = &Instruction> {
    body.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

/// Registers that hold the variable's address, in its own space or a generic one.
fn frames(body: &[Statement]) -> HashSet<String> {
    let mut frames = HashSet::new();
    for instruction in instructions(body) {
        if let Some(frame) = makes_frame(instruction, &frames) {
            frames.insert(frame.to_owned());
        }
    }
    frames
}

/// The register that an instruction puts the address into.
fn makes_frame<'i>(instruction: &'i Instruction, frames: &HashSet<String>) -> Option<&'i str> {
    let [to, from] = instruction.operands.as_slice() else { return None };
    let (to, from) = (name(to)?, name(from)?);
    let is_frame = match instruction.opcode.as_str() {
        "mov.u64" | "mov.b64" => from.starts_with(NAME),
        "cvta.local.u64" => frames.contains(from),
        _ => false,
    };
    is_frame.then_some(to)
}

/// Where the array begins whose address an instruction computes.
fn begins_array(instruction: &Instruction, frames: &HashSet<String>) -> Option<u64> {
    match (instruction.opcode.as_str(), instruction.operands.as_slice()) {
        ("add.u64" | "add.s64", [_, from, Operand::Integer(start)]) => {
            frames.contains(name(from)?).then_some(*start)
        }
        _ => None,
    }
}

fn uses_otherwise(instruction: &Instruction, frames: &HashSet<String>) -> bool {
    makes_frame(instruction, frames).is_none()
        && instruction.operands.iter().any(|operand| names_any(operand, frames))
}

fn names_any(operand: &Operand, frames: &HashSet<String>) -> bool {
    let is_one = |name: &str| name.starts_with(NAME) || frames.contains(name);
    match operand {
        Operand::Name { name, .. } => is_one(name),
        Operand::Address { base, .. } => base.as_deref().is_some_and(is_one),
        Operand::Pair(parts) => parts.iter().any(|part| names_any(part, frames)),
        Operand::Vector(parts) | Operand::List(parts) => {
            parts.iter().any(|part| names_any(part, frames))
        }
        _ => false,
    }
}

fn name(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Name { name, negated: false, offset: 0 } => Some(name),
        _ => None,
    }
}
