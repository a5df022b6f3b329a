//! Places a kernel's shared variables: those of the module that it names, then those of its body
//! and of the functions that it calls, then the dynamic ones.

use std::collections::{HashMap, HashSet};

use super::reach::{instructions, names};
use super::syntax::{Declaration, DeclaredSpace, StatementKind};
use super::{Module, PtxError};
use crate::code::SharedArray;

/// Bytes between variables, at least.
const GAP: u64 = 256;
/// Static shared memory that a block may have.
const MOST_BYTES: u64 = 48 << 10;

/// Addresses in shared memory.
#[derive(Debug, Default)]
pub(super) struct Shared<'m> {
    /// Of the module's variables.
    pub(super) of_module: HashMap<&'m str, u64>,
    /// Of those in bodies, by function and statement.
    pub(super) of_bodies: HashMap<(usize, usize), u64>,
    /// Where dynamic shared memory begins, without the gaps.
    pub(super) bytes: u64,
    /// Where it begins with them.
    pub(super) dynamic: u64,
    /// The variables, each behind a gap, so that no access past one falls into another unseen.
    pub(super) arrays: Vec<SharedArray>,
}

/// Places the shared variables of a kernel and what it may call: the module's functions of those
/// numbers.
pub(super) fn place<'m>(module: &'m Module, functions: &[usize]) -> Result<Shared<'m>, PtxError> {
    let bodies = || functions.iter().filter_map(|&n| Some((n, module.source.functions.get(n)?)));
    let names: HashSet<&str> =
        bodies().flat_map(|(_, function)| instructions(function)).flat_map(names).collect();
    let is_shared = |d: &&Declaration| d.space == DeclaredSpace::Shared;
    let named = |d: &&Declaration| names.contains(d.name.as_str());

    let mut shared = Shared::default();
    let mut dynamic = Vec::new();
    for declaration in module.source.variables.iter().filter(is_shared).filter(named) {
        if declaration.is_extern || declaration.count.is_none() {
            dynamic.push(declaration);
        } else {
            let address = shared.add(declaration)?;
            shared.of_module.insert(&declaration.name, address);
        }
    }
    for (number, function) in bodies() {
        for (at, statement) in function.body.iter().flatten().enumerate() {
            if let StatementKind::Variable(declaration) = &statement.kind
                && is_shared(&declaration)
            {
                let address = shared.add(declaration)?;
                shared.of_bodies.insert((number, at), address);
            }
        }
    }
    let align = dynamic.iter().map(|declaration| declaration.align).max().unwrap_or(1);
    shared.bytes = shared.bytes.next_multiple_of(align);
    shared.dynamic = shared.spread(shared.bytes, align);
    for declaration in dynamic {
        shared.of_module.insert(&declaration.name, shared.dynamic);
    }
    Ok(shared)
}

impl Shared<'_> {
    /// Where a variable lies that would lie at `address` without gaps. Gaps are as wide as all
    /// banks, or as a multiple of that, and so make no difference to conflicts.
    fn spread(&self, address: u64, align: u64) -> u64 {
        let gap = GAP.max(align);
        let after = self.arrays.last().map_or(0, |last| u64::from(last.bytes.end) + GAP);
        (0..).map(|n| address + n * gap).find(|&start| start >= after).unwrap_or(address)
    }

    fn add(&mut self, declaration: &Declaration) -> Result<u64, PtxError> {
        let address = self.bytes.next_multiple_of(declaration.align);
        self.bytes = address.saturating_add(declaration.bytes());
        let start = self.spread(address, declaration.align);
        if self.bytes > MOST_BYTES {
            let reason = format!(
                "`{}` makes static shared memory larger than {MOST_BYTES} bytes",
                declaration.name
            );
            return Err(PtxError::new(declaration.line, reason));
        }
        let bytes = start as u32..start.saturating_add(declaration.bytes()) as u32;
        self.arrays.push(SharedArray { name: declaration.name.clone(), bytes });
        Ok(start)
    }
}
