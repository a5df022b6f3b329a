//! Of instructions as they are written.

mod conversion;
mod float;
mod flow;
mod half;
mod integer;
mod logic;
mod samples;

use super::{Compute, Operands, Registers};
use crate::compute::{Register, RegisterCounts};
use crate::error::PtxError;

/// Where immediates begin in each bank.
const IMMEDIATES: u16 = 16;
const COUNTS: RegisterCounts = RegisterCounts { predicates: 32, words: 32, longs: 32 };

/// Operands as written: `p0`, `w0` and `l0` are registers of the three banks, numbers immediates.
struct Written {
    operands: Vec<String>,
    immediates: Vec<(Register, u64)>,
}

impl Written {
    fn new(text: &str) -> Self {
        let mut operands = vec![String::new()];
        let mut depth = 0;
        for c in text.chars().filter(|c| !c.is_whitespace()) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                operands.push(String::new());
            } else {
                operands.last_mut().unwrap().push(c);
            }
        }
        Self { operands, immediates: Vec::new() }
    }

    fn register(text: &str) -> Option<Register> {
        let number = text.get(1..)?.parse().ok()?;
        match text.chars().next()? {
            'p' => Some(Register::Predicate(number)),
            'w' => Some(Register::Word(number)),
            'l' => Some(Register::Long(number)),
            _ => None,
        }
    }

    fn source(&mut self, text: &str, bits: u32) -> Result<Register, PtxError> {
        if let Some(register) = Self::register(text.trim_start_matches('!')) {
            return Ok(register);
        }
        let value = text.parse::<i64>().map_err(|_| self.error(format!("`{text}`")))? as u64;
        let number = IMMEDIATES + u16::try_from(self.immediates.len()).unwrap();
        let register = match bits {
            1 => Register::Predicate(number),
            64 => Register::Long(number),
            _ => Register::Word(number),
        };
        self.immediates.push((register, value));
        Ok(register)
    }

    fn destination(text: &str) -> Option<Register> {
        if text == "_" { None } else { Some(Self::register(text).unwrap()) }
    }

    fn part(&self, index: usize, element: usize) -> String {
        let inner = self.operands[index].trim_matches(['{', '}']);
        inner.split(',').nth(element).unwrap().to_owned()
    }
}

impl Operands for Written {
    fn count(&self) -> usize {
        self.operands.len()
    }
    fn read(&mut self, index: usize, bits: u32) -> Result<Register, PtxError> {
        let missing = self.error(format!("no operand {index}"));
        let text = self.operands.get(index).ok_or(missing)?.clone();
        self.source(&text, bits)
    }
    fn is_negated(&self, index: usize) -> bool {
        self.operands[index].starts_with('!')
    }
    fn is_immediate(&self, index: usize) -> bool {
        self.operands[index].starts_with(|c: char| c == '-' || c.is_ascii_digit())
    }
    fn write(&mut self, index: usize) -> Result<Option<Register>, PtxError> {
        Ok(Self::destination(&self.operands[index]))
    }
    fn write_pair(&mut self, index: usize) -> Result<[Option<Register>; 2], PtxError> {
        Ok(match self.operands[index].split_once('|') {
            Some((first, second)) => [Self::destination(first), Self::destination(second)],
            None => [Self::destination(&self.operands[index]), None],
        })
    }
    fn elements(&self, index: usize) -> usize {
        let text = &self.operands[index];
        if text.starts_with('{') { text.split(',').count() } else { 1 }
    }
    fn read_element(
        &mut self,
        index: usize,
        element: usize,
        bits: u32,
    ) -> Result<Register, PtxError> {
        self.source(&self.part(index, element), bits)
    }
    fn write_element(
        &mut self,
        index: usize,
        element: usize,
    ) -> Result<Option<Register>, PtxError> {
        Ok(Self::destination(&self.part(index, element)))
    }
    fn error(&self, reason: String) -> PtxError {
        PtxError { line: 7, reason }
    }
}

/// An instruction, and the immediates it reads.
type Selected = (Compute, Vec<(Register, u64)>);

/// Selects `opcode operands`.
fn select(text: &str) -> Result<Option<Selected>, PtxError> {
    let (opcode, operands) = text.split_once(' ').unwrap();
    let mut written = Written::new(operands);
    let opcode: Vec<&str> = opcode.split('.').collect();
    let compute = Compute::select(&opcode, &mut written)?;
    Ok(compute.map(|compute| (compute, written.immediates)))
}

fn set(registers: &mut Registers, register: Register, value: u64) {
    match register {
        Register::Predicate(n) => {
            registers.predicates[usize::from(n)] = if value == 0 { 0 } else { u32::MAX };
        }
        Register::Word(n) => registers.words[usize::from(n)] = [value as u32; 32],
        Register::Long(n) => registers.longs[usize::from(n)] = [value; 32],
    }
}

/// A warp on which instructions are executed.
struct Warp(Registers);

impl Warp {
    fn new() -> Self {
        Self(Registers::new(COUNTS))
    }

    /// Executes an instruction for some lanes.
    #[track_caller]
    fn run_for(&mut self, text: &str, lanes: u32) {
        let (compute, immediates) = match select(text) {
            Ok(Some(selected)) => selected,
            Ok(None) => panic!("`{text}` is no arithmetic"),
            Err(error) => panic!("{error}"),
        };
        for (register, value) in immediates {
            set(&mut self.0, register, value);
        }
        compute.execute(&mut self.0, lanes);
    }

    #[track_caller]
    fn run(&mut self, text: &str) {
        self.run_for(text, u32::MAX);
    }
}

/// What an instruction leaves in `w0`, of values for `w1`, `w2`, `w3`.
#[track_caller]
fn word(text: &str, sources: &[u32]) -> u32 {
    let mut warp = Warp::new();
    for (slot, &value) in warp.0.words[1..].iter_mut().zip(sources) {
        *slot = [value; 32];
    }
    warp.run(text);
    assert!(warp.0.words[0].iter().all(|&value| value == warp.0.words[0][0]));
    warp.0.words[0][0]
}

/// What an instruction leaves in `l0`, of values for `l1`, `l2`, `l3`.
#[track_caller]
fn long(text: &str, sources: &[u64]) -> u64 {
    let mut warp = Warp::new();
    for (slot, &value) in warp.0.longs[1..].iter_mut().zip(sources) {
        *slot = [value; 32];
    }
    warp.run(text);
    warp.0.longs[0][0]
}

/// What an instruction leaves in `w0`, of values for `l1`, `l2`, `l3`.
#[track_caller]
fn word_of_longs(text: &str, sources: &[u64]) -> u32 {
    let mut warp = Warp::new();
    for (slot, &value) in warp.0.longs[1..].iter_mut().zip(sources) {
        *slot = [value; 32];
    }
    warp.run(text);
    warp.0.words[0][0]
}

/// What an instruction leaves in `l0`, of values for `w1`, `w2`, `w3`.
#[track_caller]
fn long_of_words(text: &str, sources: &[u32]) -> u64 {
    let mut warp = Warp::new();
    for (slot, &value) in warp.0.words[1..].iter_mut().zip(sources) {
        *slot = [value; 32];
    }
    warp.run(text);
    warp.0.longs[0][0]
}

/// What an instruction leaves in `p0`, of values for `w1`, `w2`.
#[track_caller]
fn predicate(text: &str, sources: &[u32]) -> bool {
    let mut warp = Warp::new();
    for (slot, &value) in warp.0.words[1..].iter_mut().zip(sources) {
        *slot = [value; 32];
    }
    warp.run(text);
    warp.0.predicates[0] != 0
}
