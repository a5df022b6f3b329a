//! Copies of dense matrices from column-major to row-major order and back, emulated, and compiled
//! for architectures from Volta to Blackwell. Needs no GPU.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::num::NonZeroU32;

use sparserl_core::codegen::Transposing;
use sparserl_core::task::Dtype;
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers};

const TYPES: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16];
/// Fewer than a warp has threads, as many, and more.
const COLUMNS: [u32; 6] = [1, 3, 8, 32, 33, 70];
/// What gaps hold, which nothing may write.
const GAP: u8 = 0xA5;

/// Bytes of a matrix with the bytes of each of its elements where `place` says, and gaps elsewhere.
fn laid_out(
    (rows, columns, size): (usize, usize, usize),
    length: usize,
    place: impl Fn(usize, usize) -> usize,
) -> Vec<u8> {
    let mut bytes = vec![GAP; length * size];
    for row in 0..rows {
        for column in 0..columns {
            let number = (row * columns + column + 1) as u64;
            let first = place(row, column) * size;
            bytes[first..first + size].copy_from_slice(&number.to_le_bytes()[..size]);
        }
    }
    bytes
}

#[test]
fn matrices_of_odd_sizes_are_copied_there_and_back() {
    let compilers = Compilers::discover().unwrap();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let options = CompileOptions::generated();
    for (dtype, columns) in TYPES.into_iter().flat_map(|t| COLUMNS.map(|columns| (t, columns))) {
        let width = NonZeroU32::new(columns).unwrap();
        for way in [Transposing::ToRows, Transposing::ToColumns] {
            let source = way.source(dtype, width);
            let ptx = nvrtc.compile_ptx(&source.text, &source.kernel, Architecture::Sm90, &options);
            let kernel = Module::parse(&ptx.unwrap()).unwrap().kernel(&source.kernel).unwrap();
            for (rows, more) in [(1, 0), (31, 2), (65, 0), (150, 7), (1_100, 1)] {
                let (ld, columns) = (rows + more, columns as usize);
                let size = (rows, columns, dtype.size());
                let by_rows = laid_out(size, rows * columns, |row, column| row * columns + column);
                let length = ld * (columns - 1) + rows;
                let by_columns = laid_out(size, length, |row, column| column * ld + row);
                let (from, expected) = match way {
                    Transposing::ToRows => (&by_columns, &by_rows),
                    Transposing::ToColumns => (&by_rows, &by_columns),
                };
                let (grid, block) = Transposing::geometry(rows as u64, width);
                // Blocks take several tiles where there are fewer of them.
                for (seed, grid) in [(0, grid), (1, grid.div_ceil(2))] {
                    let mut memory = Memory::new();
                    let from = memory.input("from", from);
                    let to = memory.writable("to", &vec![GAP; expected.len()]);
                    let number = |number: usize| Argument::Value(number.to_le_bytes().to_vec());
                    let operands = [Argument::Buffer(from), Argument::Buffer(to)];
                    let launch = Launch {
                        grid: [grid, 1, 1],
                        block: [block, 1, 1],
                        dynamic_shared: 0,
                        arguments: operands.into_iter().chain([number(rows), number(ld)]).collect(),
                    };
                    let how = Options { seed, budget: 10_000_000, ..Options::default() };
                    let report = run(&kernel, &launch, &mut memory, &how).unwrap();
                    let what = format!("{way:?} {dtype}, {rows} rows, {columns} columns, ld {ld}");
                    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
                    assert!(memory.bytes(to) == *expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn every_architecture_has_them_without_spills() {
    let compilers = Compilers::discover().unwrap();
    for architecture in
        [Architecture::Sm70, Architecture::Sm80, Architecture::Sm90, Architecture::Sm100]
    {
        let nvrtc = compilers.for_arch(architecture).unwrap();
        for columns in [1, 7, 32, 128] {
            for way in [Transposing::ToRows, Transposing::ToColumns] {
                let source = way.source(Dtype::F32, NonZeroU32::new(columns).unwrap());
                let options = CompileOptions::generated();
                let cubin = nvrtc.compile(&source.text, &source.kernel, architecture, &options);
                let resources = cubin.unwrap().resources();
                assert_eq!(resources.spill_stores.max(resources.spill_loads), 0, "{architecture}");
            }
        }
    }
}

#[test]
fn a_grid_has_a_block_for_each_tile_as_far_as_there_are_blocks() {
    let geometry = |rows, columns| Transposing::geometry(rows, NonZeroU32::new(columns).unwrap()).0;
    assert_eq!(geometry(0, 8), 1);
    assert_eq!(geometry(128, 8), 1);
    assert_eq!(geometry(129, 8), 2);
    assert_eq!(geometry(64, 33), 4);
    assert_eq!(geometry(u64::from(u32::MAX), 1 << 20), i32::MAX as u32);
}
