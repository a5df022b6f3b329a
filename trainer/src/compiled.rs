//! The resource usage of measured programs, as the compiler reports it: registers, spills, shared
//! memory, and the size of the cubin.
//!
//! ```text
//! recordings ─► MeasuredCase ─► compile (each program, for its smallest matrix) ─► compiled.json.gz
//! ```
//!
//! A program's source hardly depends on the matrix, so one is enough: of 1,273 programs that were
//! compiled for several real matrices, three had different registers, by no more than four (NVRTC
//! 13.0, `sm_90`). Nor does a GPU have to be there.

mod compile;
mod file;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sparserl_core::language::{Program, layouts_changed_since};
use sparserl_core::plan::MachineCode;
use sparserl_core::target::Architecture;
use sparserl_emulator::code::WARP;
use sparserl_emulator::occupancy::blocks_by_registers;

use crate::measured::has_layout_among;

pub use compile::{Code, CompileError, Compiling, RecordedCases, compile};
pub use file::{COMPILED, CompiledFileError};

/// Numbers that a network is to guess of a compiled program: see [`CompiledProgram::resources`].
pub const RESOURCES: usize = 5;

/// Warps that a multiprocessor holds at once, of compute capability 7.0, 8.0, 9.0 and 10.0; others
/// hold 32 or 48, and are compared with these all the same.
const MOST_WARPS: f32 = 64.0;

/// A program, and what it was compiled to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledProgram {
    /// Its text.
    pub program: String,
    /// Hash of the grammar of then, which changes with the kernels of a layout.
    pub grammar_hash: u64,
    /// What the compiler reports of it.
    #[serde(flatten)]
    pub machine_code: MachineCode,
    /// Bytes of the cubin.
    pub cubin_bytes: u64,
}

/// Compiled programs, each once for an architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledPrograms {
    programs: BTreeMap<(String, Architecture), CompiledProgram>,
}

impl CompiledProgram {
    /// What a network is to guess, of a program with blocks of `threads`:
    ///
    /// * registers of a thread ÷ 64, in (0, 4);
    /// * log2 of the share of 64 warps of a multiprocessor for which it has the registers, in
    ///   [−6, 0]: occupancy, as far as these limit it;
    /// * log2(bytes of the cubin ÷ 8 KiB);
    /// * log2(1 + bytes) / 8 of a block's static shared memory, and of what a thread spills, in
    ///   [0, 4].
    #[must_use]
    pub fn resources(&self, threads: u32) -> [f32; RESOURCES] {
        let MachineCode { registers, shared_bytes, spill_store_bytes, .. } = self.machine_code;
        let warps = threads.div_ceil(WARP as u32).max(1);
        // Finite also where no block would be launched.
        let resident = (blocks_by_registers(registers, warps) * warps).max(warps) as f32;
        let eighth_log = |bytes: u32| (1.0 + bytes as f32).log2() / 8.0;
        [
            registers as f32 / 64.0,
            (resident / MOST_WARPS).min(1.0).log2(),
            (self.cubin_bytes.max(1) as f32 / 8192.0).log2(),
            eighth_log(shared_bytes),
            eighth_log(spill_store_bytes),
        ]
    }

    /// The program in the words of today; `None` where the language reads it no more, or its
    /// layouts have other kernels since.
    fn of_today(self) -> Option<Self> {
        let program = Program::parse(&self.program).ok()?;
        let changed = layouts_changed_since(self.grammar_hash)?;
        let holds = !has_layout_among(&program, changed);
        holds.then(|| Self { program: program.to_string(), ..self })
    }
}

impl CompiledPrograms {
    /// Adds a program, in the place of what was there of it.
    pub fn insert(&mut self, compiled: CompiledProgram) {
        let key = (compiled.program.clone(), compiled.machine_code.architecture);
        self.programs.insert(key, compiled);
    }

    /// Adds all programs of another.
    pub fn extend(&mut self, other: Self) {
        self.programs.extend(other.programs);
    }

    /// What a program was compiled to, if it was.
    #[must_use]
    pub fn of(&self, program: &Program, architecture: Architecture) -> Option<&CompiledProgram> {
        self.programs.get(&(program.to_string(), architecture))
    }

    /// Whether a program's text is among them.
    fn has(&self, program: &str, architecture: Architecture) -> bool {
        self.programs.contains_key(&(program.to_owned(), architecture))
    }

    /// All of them, by their texts.
    pub fn iter(&self) -> impl Iterator<Item = &CompiledProgram> {
        self.programs.values()
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sparserl_core::language::grammar_hash;

    use super::*;

    /// A program of so many registers, and of nothing else.
    pub(crate) fn of_registers(program: &str, registers: u32) -> CompiledProgram {
        let machine_code = MachineCode {
            architecture: Architecture::Sm90,
            nvrtc: "13.0".to_owned(),
            registers,
            spill_store_bytes: 0,
            spill_load_bytes: 0,
            stack_bytes: 0,
            shared_bytes: 0,
        };
        let (program, grammar_hash) = (program.to_owned(), grammar_hash());
        CompiledProgram { program, grammar_hash, machine_code, cubin_bytes: 8192 }
    }

    #[test]
    fn resources_are_those_of_the_occupancy_calculator() {
        let of = |registers, threads| of_registers("", registers).resources(threads);
        assert_eq!(of(32, 256), [0.5, 0.0, 0.0, 0.0, 0.0]);
        // 33 registers are taken as 40: of the 65,536 for six blocks of eight warps.
        assert_eq!(of(33, 256), [33.0 / 64.0, 0.75_f32.log2(), 0.0, 0.0, 0.0]);
        assert_eq!(of(64, 1024)[1], -1.0);
        // Not one block has room.
        assert_eq!(of(255, 1024)[1], -1.0);
        let mut spills = of_registers("", 255);
        spills.machine_code.spill_store_bytes = 15;
        spills.machine_code.shared_bytes = 255;
        spills.cubin_bytes = 32768;
        assert_eq!(spills.resources(128), [255.0 / 64.0, -3.0, 2.0, 1.0, 0.5]);
    }

    #[test]
    fn a_program_is_there_once_for_an_architecture() {
        let mut all = CompiledPrograms::default();
        all.insert(of_registers("a", 32));
        all.insert(of_registers("a", 40));
        let mut other = of_registers("a", 64);
        other.machine_code.architecture = Architecture::Sm80;
        all.insert(other);
        let registers: Vec<u32> = all.iter().map(|known| known.machine_code.registers).collect();
        assert_eq!((all.len(), registers), (2, vec![64, 40]));
        assert!(all.has("a", Architecture::Sm90) && !all.has("a", Architecture::Sm75));
    }
}
