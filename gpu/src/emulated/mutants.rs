//! A kernel's PTX with one thing changed: a constant, a comparison, an operation, an operand.
//!
//! Where a launch of such a mutant is right, the fault is in what was changed, or in what its line
//! names (mutation-based fault localization, after Papadakis and Le Traon, 2015). What a line of
//! the source says once stands in the PTX as often as it is unrolled and inlined, and a constant as
//! often as it is folded: instructions of one line, or with one constant, change together, too.

mod literals;
mod operations;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use self::literals::{Literal, Table, elements_of, table_of};
use self::operations::with_operations;
use super::EmulatorEvaluator;
use crate::candidate::raw::RawKernel;
use crate::compile::nvrtc::CompileOptions;

/// Instructions of one source line and opcode of which every so many are one place of the source.
const MOST_PERIOD: usize = 4;
/// Instructions before one of which a register may be meant instead of an operand.
const NEAR: usize = 12;
/// Registers that an operand is replaced by.
const MOST_OTHERS: usize = 4;
/// Other constants in the place of one that are tried before the others of any.
const NEXT: usize = 4;
/// Elements of a table that are changed.
const MOST_ELEMENTS: usize = 64;

/// A kernel that was not written here: its source, and the PTX of that.
#[derive(Clone, Copy)]
pub(super) struct Foreign<'k> {
    pub(super) raw: &'k RawKernel,
    pub(super) ptx: &'k str,
    /// Makes PTX of another source of the same kernel.
    pub(super) compile: &'k (dyn Fn(&str) -> Option<String> + Sync),
}

impl EmulatorEvaluator {
    /// PTX of another source of a kernel, if it compiles until then.
    pub(super) fn recompile(
        &self,
        source: &str,
        kernel: &str,
        until: Option<Instant>,
    ) -> Option<String> {
        self.compile((source, kernel), &CompileOptions::foreign(), until).ok()?.ok()
    }
}

/// PTX that differs in some lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// Lines, from 1, with what stands there instead.
    lines: Vec<(u32, String)>,
    /// The variable and the element of it that is changed, where no instruction is.
    pub(super) element: Option<(String, usize)>,
    /// What is changed to what, in words.
    pub(super) change: String,
}

impl Mutant {
    /// The lines of PTX that are changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().map(|(line, _)| *line)
    }

    /// All of the PTX.
    pub(super) fn text(&self, ptx: &str) -> String {
        let mut text = String::with_capacity(ptx.len());
        for (number, line) in (1..).zip(ptx.lines()) {
            let changed = self.lines.iter().find(|(changed, _)| *changed == number);
            text += changed.map_or(line, |(_, line)| line);
            text.push('\n');
        }
        text
    }
}

/// An instruction of the text.
#[derive(Debug)]
struct Written<'p> {
    /// Its line in the text, and in the source.
    line: u32,
    source: u32,
    /// `@%p1`
    guard: &'p str,
    opcode: &'p str,
    /// Registers that hold one constant are that.
    operands: Vec<&'p str>,
}

impl<'p> Written<'p> {
    /// The one instruction of a line, if there is just one.
    fn of(text: &'p str, line: u32, source: u32) -> Option<Self> {
        let text = text.split("//").next()?.trim();
        let text = text.strip_suffix(';').filter(|text| !text.contains(';'))?;
        let (guard, text) = match text.starts_with('@') {
            true => text.split_once(char::is_whitespace)?,
            false => ("", text),
        };
        let (opcode, operands) = text.trim().split_once(char::is_whitespace)?;
        let is_opcode = opcode.starts_with(|first: char| first.is_ascii_lowercase());
        if !is_opcode || opcode.contains(".param") || opcode.starts_with("call") {
            return None;
        }
        Some(Self { line, source, guard, opcode, operands: operands_of(operands) })
    }

    fn text(&self, opcode: &str, operands: &[String]) -> String {
        format!("{} {opcode} {};", self.guard, operands.join(", "))
    }

    fn owned(&self) -> Vec<String> {
        self.operands.iter().map(|&operand| operand.to_owned()).collect()
    }

    fn with_operand(&self, number: usize, operand: String) -> String {
        let mut operands = self.owned();
        if let Some(place) = operands.get_mut(number) {
            *place = operand;
        }
        self.text(self.opcode, &operands)
    }

    fn root(&self) -> &'p str {
        self.opcode.split('.').next().unwrap_or_default()
    }
}

/// Operands between commas that are in no brackets.
fn operands_of(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0_usize, 0, Vec::new());
    for (at, mark) in text.char_indices() {
        match mark {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.extend(text.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.extend(text.get(begin..));
    found.into_iter().map(str::trim).collect()
}

/// The instructions of PTX, and the tables that they read.
pub(super) struct Instructions<'p> {
    code: Vec<Written<'p>>,
    tables: Vec<(u32, Table<'p>)>,
    places: Vec<Vec<usize>>,
}

impl<'p> Instructions<'p> {
    /// Those that stand in the lines that `source_of` gives lines of the source for.
    pub(super) fn of(ptx: &'p str, source_of: &BTreeMap<u32, u32>) -> Self {
        let mut code = Vec::new();
        let mut tables = Vec::new();
        for (number, line) in (1..).zip(ptx.lines()) {
            match source_of.get(&number) {
                Some(&source) => code.extend(Written::of(line, number, source)),
                None => tables.extend(table_of(line).map(|table| (number, table))),
            }
        }
        let constants = constants(&code);
        for at in &mut code {
            for operand in at.operands.iter_mut().skip(1) {
                *operand = constants.get(operand).copied().unwrap_or(operand);
            }
        }
        tables.retain(|(_, table)| {
            let named = |operand: &&str| operand.contains(table.name);
            code.iter().any(|at| at.operands.iter().any(&named))
        });
        let places = places(&code);
        Self { code, tables, places }
    }

    /// The mutants, each made when it is asked for: those of what is most often wrong first, and
    /// constants, operations and fields in turn, operands last.
    pub(super) fn mutants(&self) -> impl Iterator<Item = Mutant> {
        let Self { code, tables, places } = self;
        let of_tables = tables.iter().flat_map(|(number, table)| of_table(*number, table));
        let of_fields = std::iter::once_with(|| with_fields(code)).flatten();
        let shared = std::iter::once_with(|| with_shared_constants(code)).flatten();
        let next = places.iter().flat_map(|place| with_constants(code, place, 0..NEXT));
        let farther = places.iter().flat_map(|place| with_constants(code, place, NEXT..usize::MAX));
        let of_operations = places.iter().flat_map(|place| with_operations(code, place));
        let of_operands = places.iter().flat_map(|place| with_operands(code, place));
        let of: [Box<dyn Iterator<Item = Mutant>>; 3] = [
            Box::new(next.chain(farther)),
            Box::new(of_operations),
            Box::new(of_fields.chain(shared)),
        ];
        let all = of_tables.chain(InTurn { of, turn: 0 }).chain(of_operands);
        let mut seen = BTreeSet::new();
        all.filter(move |mutant| seen.insert(mutant.lines.clone()))
    }

    /// Mutants with a barrier before what is done in memory.
    pub(super) fn with_barriers(&self) -> impl Iterator<Item = Mutant> {
        const BARRIERS: [(&str, &str); 2] = [
            ("bar.sync 0;", "a barrier of the block"),
            ("bar.warp.sync -1;", "a barrier of the warp"),
        ];
        let is_access = |at: &&Written<'_>| matches!(at.root(), "ld" | "st" | "atom" | "red");
        let mut known = BTreeSet::new();
        let accesses = self.code.iter().filter(is_access);
        let first = accesses.filter(move |at| known.insert((at.source, at.opcode)));
        first.flat_map(|at| {
            let text = at.text(at.opcode, &at.owned());
            BARRIERS.map(|(barrier, change)| Mutant {
                lines: vec![(at.line, format!("{barrier} {text}"))],
                element: None,
                change: change.to_owned(),
            })
        })
    }
}

/// Mutants of several kinds in turn, as long as there are any of each.
struct InTurn<'m> {
    of: [Box<dyn Iterator<Item = Mutant> + 'm>; 3],
    turn: usize,
}

impl Iterator for InTurn<'_> {
    type Item = Mutant;

    fn next(&mut self) -> Option<Mutant> {
        for _ in 0..self.of.len() {
            let turn = self.turn;
            self.turn = (turn + 1) % self.of.len();
            if let Some(mutant) = self.of.get_mut(turn).and_then(Iterator::next) {
                return Some(mutant);
            }
        }
        None
    }
}

/// Mutants of the elements of a table, which stands in that line.
fn of_table(number: u32, table: &Table<'_>) -> Vec<Mutant> {
    let elements = elements_of(table).take(MOST_ELEMENTS);
    let mutants = elements.flat_map(|(element, changes)| {
        let of = move |(line, change)| Mutant {
            lines: vec![(number, line)],
            element: Some((table.name.to_owned(), element)),
            change,
        };
        changes.into_iter().map(of)
    });
    mutants.collect()
}

/// What registers hold that are given nothing but one constant.
fn constants<'p>(code: &[Written<'p>]) -> BTreeMap<&'p str, &'p str> {
    let mut given: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for at in code {
        let Some((&to, from)) = at.operands.split_first() else { continue };
        let constant = match *from {
            [from] if at.root() == "mov" && at.guard.is_empty() => {
                Literal::in_operand(from, "mov").map(|_| from)
            }
            _ => None,
        };
        given.entry(to).and_modify(|of| *of = None).or_insert(constant);
    }
    given.into_iter().filter_map(|(register, constant)| Some((register, constant?))).collect()
}

/// Instructions that may be one place of the source each: of each line and opcode first all, which
/// may be one, then every second, third or fourth, and at last each.
fn places(code: &[Written<'_>]) -> Vec<Vec<usize>> {
    let mut lines: BTreeMap<(u32, &str), Vec<usize>> = BTreeMap::new();
    for (number, at) in code.iter().enumerate() {
        lines.entry((at.source, at.opcode)).or_default().push(number);
    }
    let (mut whole, mut parts, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for same in lines.into_values() {
        for period in (2..=MOST_PERIOD).filter(|period| same.len() % period == 0) {
            for first in 0..period {
                let place: Vec<usize> = same.iter().copied().skip(first).step_by(period).collect();
                parts.extend((place.len() > 1).then_some(place));
            }
        }
        if same.len() > 1 {
            single.extend(same.iter().map(|&number| vec![number]));
        }
        whole.push(same);
    }
    whole.into_iter().chain(parts).chain(single).collect()
}

/// A mutant that changes some instructions in one way, if that can be done to all.
fn changed(
    code: &[Written<'_>],
    place: &[usize],
    change: &str,
    new: impl Fn(usize, &Written<'_>) -> Option<String>,
) -> Option<Mutant> {
    let line = |&number: &usize| {
        let at = code.get(number)?;
        Some((at.line, new(number, at)?))
    };
    let lines: Vec<(u32, String)> = place.iter().map(line).collect::<Option<_>>()?;
    Some(Mutant { lines, element: None, change: change.to_owned() })
}

/// Other constants in the place of each.
fn with_constants(code: &[Written<'_>], place: &[usize], steps: Range<usize>) -> Vec<Mutant> {
    let first = place.first().and_then(|&number| code.get(number));
    let operands = first.map_or(0, |at| at.operands.len());
    (0..operands)
        .filter(|&index| !first.is_some_and(|at| scales(at, index)))
        .flat_map(|index| with_constant_at(code, place, index, steps.clone()))
        .collect()
}

/// Whether an operand says how large elements are that an address is computed of.
fn scales(at: &Written<'_>, index: usize) -> bool {
    let is_size = at.operands.get(index).is_some_and(|&operand| matches!(operand, "4" | "8"));
    at.opcode.starts_with("mul.wide") && is_size
}

/// Other constants wherever one stands in the same opcode.
fn with_shared_constants(code: &[Written<'_>]) -> Vec<Mutant> {
    let mut shared: BTreeMap<(&str, usize, i64), Vec<usize>> = BTreeMap::new();
    for (number, at) in code.iter().enumerate() {
        for (index, operand) in at.operands.iter().enumerate() {
            if let Some(value) = Literal::in_operand(operand, at.root()).and_then(|l| l.whole()) {
                shared.entry((at.root(), index, value)).or_default().push(number);
            }
        }
    }
    let many = shared.into_iter().filter(|(_, place)| place.len() > 1);
    many.flat_map(|((_, index, _), place)| with_constant_at(code, &place, index, 0..usize::MAX))
        .collect()
}

/// Some of the other constants in the place of that of one operand.
fn with_constant_at(
    code: &[Written<'_>],
    place: &[usize],
    index: usize,
    steps: Range<usize>,
) -> Vec<Mutant> {
    let literal = place.first().and_then(|&number| code.get(number)).and_then(|at| {
        let operand = at.operands.get(index)?;
        Literal::in_operand(operand, at.root())
    });
    let others = literal.map(|literal| literal.others()).unwrap_or_default();
    let of = |(step, (_, change)): (usize, (String, String))| {
        changed(code, place, &change, |_, at| {
            let own = Literal::in_operand(at.operands.get(index)?, at.root())?;
            let (new, _) = own.others().into_iter().nth(step)?;
            Some(at.with_operand(index, new))
        })
    };
    let some = others.into_iter().enumerate().filter(|(step, _)| steps.contains(step));
    some.filter_map(of).collect()
}

/// Fields of words, wider or narrower: shifts, masks and factors together.
fn with_fields(code: &[Written<'_>]) -> Vec<Mutant> {
    let whole = |at: &Written<'_>, index: usize| {
        let operand = at.operands.get(index)?;
        Literal::in_operand(operand, at.root())?.whole()
    };
    let shifts = code.iter().filter(|at| matches!(at.root(), "shl" | "shr"));
    let widths: BTreeSet<i64> = shifts.filter_map(|at| whole(at, 2)).collect();
    let mut found = Vec::new();
    for width in widths.into_iter().filter(|width| (1..31).contains(width)) {
        for wider in [width + 1, width + 2, width - 1] {
            let pairs = [
                (width, wider),
                ((1 << width) - 1, (1 << wider) - 1),
                (1 << width, 1 << wider),
                (-(1 << width), -(1 << wider)),
            ];
            let new = |_: usize, at: &Written<'_>| {
                let index = at.operands.len().checked_sub(1)?;
                let index = if at.root() == "mad" { 2 } else { index };
                let value = whole(at, index)?;
                let of = match at.root() {
                    "shl" | "shr" => pairs.get(..1)?,
                    "and" | "mul" | "mad" | "or" => pairs.get(1..)?,
                    _ => return None,
                };
                let (_, other) = of.iter().find(|(from, _)| *from == value)?;
                Some(at.with_operand(index, other.to_string()))
            };
            let place: Vec<usize> = (0..code.len())
                .filter(|&number| code.get(number).is_some_and(|at| new(number, at).is_some()))
                .collect();
            if place.len() > 1 {
                let change = format!("{wider} bits instead of {width}");
                found.extend(changed(code, &place, &change, new));
            }
        }
    }
    found
}

/// Registers that were written shortly before in the place of an operand.
fn with_operands(code: &[Written<'_>], place: &[usize]) -> Vec<Mutant> {
    let Some((&number, first)) = place.first().and_then(|n| Some((n, code.get(*n)?))) else {
        return Vec::new();
    };
    if matches!(first.root(), "bra" | "mov" | "cvt" | "cvta" | "st") {
        return Vec::new();
    }
    let class = |register: &str| {
        let class = register.trim_end_matches(|last: char| last.is_ascii_digit());
        (class.len() < register.len() && class.starts_with('%')).then(|| class.to_owned())
    };
    let mut found = Vec::new();
    for (index, operand) in first.operands.iter().enumerate().skip(1) {
        let Some(of) = class(operand).filter(|of| of != "%p") else { continue };
        let written = |before: usize| {
            let at = code.get(before)?;
            let register = at.operands.first()?.split('|').next()?;
            let is_it = class(register).as_deref() == Some(&of) && register != *operand;
            (is_it && at.root() != "st").then_some(before)
        };
        let near = number.saturating_sub(NEAR)..number;
        for before in near.rev().filter_map(written).take(MOST_OTHERS) {
            let distance = number - before;
            let new = |number: usize, at: &Written<'_>| {
                let before = code.get(number.checked_sub(distance)?)?;
                let register = before.operands.first()?.split('|').next()?;
                let is_of = |text: &str| class(text).as_deref() == Some(&of);
                let fits = is_of(register) && is_of(at.operands.get(index)?);
                fits.then(|| at.with_operand(index, register.to_owned()))
            };
            let source = code.get(before).map_or(0, |at| at.source);
            let change = format!("an operand that comes from line {source}");
            found.extend(changed(code, place, &change, new));
        }
    }
    found
}
