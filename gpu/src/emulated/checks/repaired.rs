//! Launches that went wrong, once more with mutants of the kernel: which of them are right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sparserl_core::matrix::Scalar;
use sparserl_core::reference::{self, Reference};
use sparserl_emulator::code::Kernel;
use sparserl_emulator::compute::WARP;
use sparserl_emulator::launch::{Launch, Options};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;

use super::super::diagnosis::Repair;
use super::super::mutants::{Foreign, Instructions, Mutant};
use super::super::verdict;
use super::excerpt::Excerpt;
use super::{FEW_WARPS, Kept, Operands, Trial, warps};
use crate::candidate::raw::Rewritten;
use crate::run::device::Geometry;

/// Bytes of a source and of its PTX above which there are no mutants: each is a copy of all of it.
const LONGEST_TEXT: usize = 1 << 18;
/// Places in the source that are named of those whose mutants are right.
const MOST_REPAIRS: usize = 3;
/// How much longer than the kernel's a warp of a mutant may take, and by how many instructions.
const LONGER: u64 = 4;
const LONGER_BY: u64 = 10_000;
/// Instructions of a warp of a mutant of a kernel that does not end.
pub(super) const OF_ENDLESS: u64 = 50_000;
/// Orders in which the threads of a mutant take turns.
const ORDERS: u64 = 3;
/// How many times as many blocks, threads of a block and bytes of shared memory a launch is given.
const MORE_BLOCKS: [u32; 4] = [2, 4, 8, 32];
const MORE_THREADS: [u32; 2] = [2, 4];
const MORE_SHARED: [u32; 3] = [2, 4, 8];

/// What may be spent on mutants: of each so many at most, whatever else the machine does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Sources that are compiled.
    sources: usize,
    /// Mutants of the PTX that are launched.
    mutants: usize,
    /// Such mutants with a barrier more.
    barriers: usize,
    /// Other forms of the source that are compiled, as sources are.
    forms: usize,
    /// Sources with other expressions that are compiled where nothing else makes it right.
    expressions: usize,
    /// Instructions that all of them execute but for these.
    instructions: u64,
    /// Instructions that sources with other expressions execute.
    of_expressions: u64,
}

impl Effort {
    /// For a result that is wrong.
    pub(super) const RESULT: Self = Self {
        sources: 40,
        mutants: 800,
        barriers: 0,
        forms: 24,
        expressions: 80,
        instructions: 80_000_000,
        of_expressions: 30_000_000,
    };
    /// For a launch with findings, which say where it is done wrong.
    pub(super) const FINDINGS: Self = Self {
        sources: 16,
        mutants: 600,
        barriers: 40,
        forms: 12,
        expressions: 60,
        instructions: 20_000_000,
        of_expressions: 15_000_000,
    };
}

/// A launch that mutants have to do right.
#[derive(Clone, Copy)]
struct Tried<'t, D: Scalar> {
    foreign: Foreign<'t>,
    operands: &'t Operands<D>,
    before: &'t Kept,
    how: &'t Options,
    reference: &'t Reference,
    geometry: Geometry,
    excerpt: Option<&'t Excerpt>,
}

impl<D: Scalar> Tried<'_, D> {
    /// Whether enough is found, or all is spent.
    fn is_over(&self, repairs: &[Repair], left: &Effort) -> bool {
        let is_late = self.how.until.is_some_and(|end| Instant::now() >= end);
        repairs.len() >= MOST_REPAIRS || left.instructions == 0 || is_late
    }
}

impl<A: Scalar, D: Scalar> Trial<'_, A, D> {
    /// By which changes of the kernel a launch of it is right; `longest` is what its longest warp
    /// has executed, if it has ended.
    pub(super) fn repairs(
        &self,
        operands: &Operands<D>,
        before: &Kept,
        how: &Options,
        (longest, reference, excerpt): (Option<u64>, &Reference, Option<&Excerpt>),
        mut left: Effort,
    ) -> Vec<Repair> {
        let is_short = |of: &Foreign<'_>| of.raw.source().len().max(of.ptx.len()) <= LONGEST_TEXT;
        let Some(foreign) = self.foreign.filter(is_short) else { return Vec::new() };
        let sources: BTreeMap<u32, u32> = (0..)
            .zip(&self.kernel.code)
            .filter_map(|(n, at)| Some((at.ptx_line, self.kernel.location(n)?.line)))
            .collect();
        let longest = longest.map(|of| of.saturating_mul(LONGER).saturating_add(LONGER_BY));
        let budget = how.budget.min(longest.unwrap_or(OF_ENDLESS));
        let how = Options { budget, until_fault: true, ..how.clone() };
        let geometry = self.prepared.launch.geometry;
        let tried = Tried { foreign, operands, before, how: &how, reference, geometry, excerpt };
        let mut repairs = Vec::new();
        // These are few, and each executes many times what the others do.
        self.try_launches(tried, &mut { left }, &mut repairs);
        let forms = foreign.raw.with_other_forms();
        let mut of_forms = Effort { sources: left.forms, ..left };
        self.try_sources(forms, tried, &mut of_forms, &mut repairs);
        left.instructions = of_forms.instructions;
        self.try_sources(foreign.raw.with_other_definitions(), tried, &mut left, &mut repairs);
        let code = Instructions::of(foreign.ptx, &sources);
        let barriers = code.with_barriers().take(left.barriers);
        for mutant in code.mutants().take(left.mutants).chain(barriers) {
            if tried.is_over(&repairs, &left) {
                break;
            }
            let repair = self.repair_of(&mutant);
            let text = mutant.text(foreign.ptx);
            self.try_mutant(&text, repair, tried, &mut left, &mut repairs);
        }
        if repairs.is_empty() {
            let lines: BTreeSet<u32> = sources.into_values().collect();
            let all = foreign.raw.with_other_expressions(&lines);
            let Effort { expressions: sources, of_expressions: instructions, .. } = left;
            let mut of_expressions = Effort { sources, instructions, ..left };
            self.try_sources(all, tried, &mut of_expressions, &mut repairs);
        }
        repairs
    }

    /// Launches it with more blocks, threads or shared memory than its source says.
    fn try_launches(&self, tried: Tried<'_, D>, left: &mut Effort, repairs: &mut Vec<Repair>) {
        let Some(line) = tried.foreign.raw.launch_line() else { return };
        let of @ Geometry { grid: [blocks, ..], block: [threads, ..], dynamic_shared, .. } =
            tried.geometry;
        let with_blocks = |blocks: u32| {
            let [_, y, z] = of.grid;
            Geometry { grid: [blocks, y, z], ..of }
        };
        let with_threads = |threads: u32| {
            let [_, y, z] = of.block;
            Geometry { block: [threads, y, z], ..of }
        };
        let more = |what: &str, times: u32| format!("{times} times as {what}");
        let mut others = vec![("another block".to_owned(), with_blocks(blocks.saturating_add(1)))];
        others.extend(
            MORE_BLOCKS.map(|by| (more("many blocks", by), with_blocks(blocks.saturating_mul(by)))),
        );
        others.extend(MORE_THREADS.map(|by| {
            (more("many threads in a block", by), with_threads(threads.saturating_mul(by)))
        }));
        others.extend(MORE_SHARED.map(|by| {
            let dynamic_shared = dynamic_shared.saturating_mul(by);
            (more("much dynamic shared memory", by), Geometry { dynamic_shared, ..of })
        }));
        for (change, geometry) in others.into_iter().filter(|(_, other)| *other != of) {
            if warps(&geometry) > FEW_WARPS || tried.is_over(repairs, left) {
                continue;
            }
            let lines = BTreeSet::from([line]);
            let repair = Repair { counters: Vec::new(), lines, element: None, change };
            if repairs.iter().any(|known| known.is_like(&repair)) {
                return;
            }
            let tried = Tried { geometry, ..tried };
            self.try_kernel(self.kernel, repair, tried, left, repairs);
        }
    }

    fn try_sources(
        &self,
        all: impl Iterator<Item = Rewritten>,
        tried: Tried<'_, D>,
        left: &mut Effort,
        repairs: &mut Vec<Repair>,
    ) {
        for Rewritten { lines, change, text, shared } in all {
            if left.sources == 0 || tried.is_over(repairs, left) {
                return;
            }
            let repair = Repair { counters: Vec::new(), lines, element: None, change };
            if repairs.iter().any(|known| known.is_like(&repair)) {
                continue;
            }
            left.sources -= 1;
            let mut geometry = tried.geometry;
            geometry.dynamic_shared = geometry.dynamic_shared.saturating_add(shared);
            if let Some(ptx) = (tried.foreign.compile)(&text) {
                let tried = Tried { geometry, ..tried };
                self.try_mutant(&ptx, repair, tried, left, repairs);
            }
        }
    }

    fn repair_of(&self, mutant: &Mutant) -> Repair {
        let mut counters = Vec::new();
        for line in mutant.changed() {
            let at = self.kernel.code.iter().position(|at| at.ptx_line == line);
            counters.extend(at.and_then(|at| u32::try_from(at).ok()));
        }
        let places = counters.iter().filter_map(|&at| self.kernel.location(at as usize));
        let lines = places.map(|location| location.line).collect();
        Repair { counters, lines, element: mutant.element.clone(), change: mutant.change.clone() }
    }

    /// Launches a mutant, and keeps what repairs it where it is right.
    fn try_mutant(
        &self,
        ptx: &str,
        repair: Repair,
        tried: Tried<'_, D>,
        left: &mut Effort,
        repairs: &mut Vec<Repair>,
    ) {
        if repairs.iter().any(|known| known.is_like(&repair)) {
            return;
        }
        let kernel = Module::parse(ptx).and_then(|module| module.kernel(&self.kernel.name));
        let Ok(mut kernel) = kernel else { return };
        kernel.machine_registers = self.kernel.machine_registers;
        self.try_kernel(&kernel, repair, tried, left, repairs);
    }

    /// Likewise of a kernel that may be the same, launched in another way.
    fn try_kernel(
        &self,
        kernel: &Kernel,
        repair: Repair,
        tried: Tried<'_, D>,
        left: &mut Effort,
        repairs: &mut Vec<Repair>,
    ) {
        let own = self.prepared.launch.geometry;
        let Geometry { grid, block, dynamic_shared, .. } = tried.geometry;
        // Variables that are kept would undo what a mutant changes of them.
        let kept = match repair.element {
            Some(_) => Kept { workspace: tried.before.workspace.clone(), ..Kept::default() },
            None => tried.before.copied(),
        };
        // It is of the launch as it was.
        if let Some(excerpt) = tried.excerpt.filter(|_| tried.geometry == own) {
            let with = (tried.operands, kept.copied());
            let (may_be_right, executed) =
                self.may_be_right(excerpt, kernel, tried.reference, with, tried.how);
            left.instructions = left.instructions.saturating_sub(executed);
            if !may_be_right {
                return;
            }
        }
        // What is right in one order of its threads only repairs nothing.
        let mut is_right = |order: u64| {
            // In others than the plain one, lanes of a warp execute their instructions apart.
            let apart = if order == 0 { 1 } else { WARP as u64 };
            let (seed, budget) = (tried.how.seed.wrapping_add(order), tried.how.budget);
            let how = Options { seed, budget: budget.saturating_mul(apart), ..tried.how.clone() };
            let by = |launch: &Launch, memory: &mut Memory| {
                let launch = Launch { grid, block, dynamic_shared, ..launch.clone() };
                run(kernel, &launch, memory, &how)
            };
            let launched = self.launch_by(by, tried.operands, kept.copied());
            let Ok(mut launched) = launched else { return false };
            verdict::forgive_wraps(&mut launched.report);
            let executed = launched.report.counters.instructions;
            left.instructions = left.instructions.saturating_sub(executed);
            launched.report.findings.is_empty()
                && reference::compare(tried.reference, &launched.output).passed()
        };
        let is_right = (0..ORDERS).all(&mut is_right);
        repairs.extend(is_right.then_some(repair));
    }
}
