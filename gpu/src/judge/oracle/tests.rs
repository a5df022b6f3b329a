use bytemuck::{bytes_of, cast_slice, pod_collect_to_vec};
use half::{bf16, f16};
use sparserl_core::matrix::{CsrView, generate};
use sparserl_core::reference;
use sparserl_emulator::launch as emulated;
use sparserl_emulator::machine;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module as PtxModule;

use super::*;
use crate::compile::nvrtc::{CompileOptions, Compilers, Nvrtc};
use crate::run::device_csr::cut;
use sparserl_core::target::Architecture;

#[test]
fn the_device_code_compiles_for_every_architecture() {
    let compilers = Compilers::discover().unwrap();
    let compile = |nvrtc: &Nvrtc| {
        for &architecture in nvrtc.architectures() {
            let options = CompileOptions::default();
            let cubin =
                nvrtc.compile(ORACLE_SOURCE, ORACLE_KERNEL, architecture, &options).unwrap();
            assert_eq!(cubin.resources().spill_stores, 0, "{architecture}");
        }
        nvrtc.architectures().len()
    };
    // Side by side: each compiler works for one thread at a time.
    let compiled: usize = std::thread::scope(|scope| {
        let compile = &compile;
        let running = compilers.all().iter().map(|nvrtc| scope.spawn(move || compile(nvrtc)));
        running.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert!(compiled > 0);
}

/// Runs the device code on the CPU, launched as [`Oracle::multiply`] launches it.
struct Emulated {
    module: PtxModule,
}

impl Emulated {
    fn new() -> Self {
        let compilers = Compilers::discover().unwrap();
        let architecture: Architecture = "sm_90".parse().unwrap();
        let nvrtc = compilers.for_arch(architecture).unwrap();
        let options = CompileOptions::default();
        let ptx = nvrtc.compile_ptx(ORACLE_SOURCE, ORACLE_KERNEL, architecture, &options).unwrap();
        Self { module: PtxModule::parse(&ptx).unwrap() }
    }

    fn launch(
        &self,
        memory: &mut Memory,
        name: &str,
        grid: [u32; 3],
        arguments: &[emulated::Argument],
    ) {
        self.launch_of(memory, name, (grid, THREADS), arguments);
    }

    fn launch_of(
        &self,
        memory: &mut Memory,
        name: &str,
        (grid, threads): ([u32; 3], u32),
        arguments: &[emulated::Argument],
    ) {
        let kernel = self.module.kernel(name).unwrap();
        let launch = emulated::Launch {
            grid,
            block: [threads, 1, 1],
            dynamic_shared: 0,
            arguments: arguments.to_vec(),
        };
        let report = machine::run(&kernel, &launch, memory, &emulated::Options::default()).unwrap();
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
    }

    /// A product's elements and bounds.
    fn product<A: Scalar, D: Scalar>(
        &self,
        matrix: CsrView<'_, A>,
        (dense, width): (&[D], u32),
        (alpha, beta): (D::Accumulator, D::Accumulator),
        initial: &[D],
    ) -> (Vec<f64>, Vec<f64>) {
        use emulated::Argument::{Buffer, Value};
        let value = |bytes: &[u8]| Value(bytes.to_vec());
        let mut memory = Memory::new();
        let offsets: Vec<u32> =
            (0..matrix.offsets().len()).map(|i| matrix.offsets().at(i) as u32).collect();
        let (bounds_of_slices, long_rows) = cut(matrix);
        let mut input = |name: &str, bytes: &[u8]| Buffer(memory.read_only(name, bytes));
        let offsets = input("offsets", cast_slice(&offsets));
        let columns = input("columns", cast_slice(matrix.columns()));
        let entries = input("entries", cast_slice(matrix.values()));
        let dense = input("dense", cast_slice(dense));
        let initial = input("initial", cast_slice(initial));
        let slices = input("slices", cast_slice(&bounds_of_slices));
        let rows_of_slices = input("long rows", cast_slice(&long_rows));
        let elements = matrix.rows() * width as usize;
        let values = memory.writable("values", &vec![0; 8 * elements]);
        let bounds = memory.writable("bounds", &vec![0; 8 * elements]);
        let sums = bounds_of_slices.len() * width as usize * SUM_BYTES;
        let sums = Buffer(memory.writable("sums", &vec![0; sums]));
        let null = || value(&0_u64.to_ne_bytes());
        let product = [
            offsets,
            columns.clone(),
            entries.clone(),
            dense.clone(),
            initial,
            null(),
            Buffer(values),
            Buffer(bounds),
            null(),
            value(&(matrix.rows() as u64).to_ne_bytes()),
            value(&width.to_ne_bytes()),
            value(bytes_of(&alpha)),
            value(bytes_of(&beta)),
        ];
        let types = types(Precision::new(A::DTYPE, D::DTYPE, D::Accumulator::DTYPE).unwrap());
        let name = |kernel: &str| format!("{kernel}_{types}");
        let tiles = width.div_ceil(TILE);
        let blocks = (matrix.rows() as u64).div_ceil(ROWS) as u32;
        let long_row = value(&(longest_short_row(matrix.nnz()) as u64).to_ne_bytes());
        let short = [&product[..], &[long_row]].concat();
        self.launch(&mut memory, &(name("judge") + "_u32"), [blocks, tiles, 1], &short);
        if !long_rows.is_empty() {
            let count = bounds_of_slices.len() as u64;
            let of_slices = [
                slices,
                value(&count.to_ne_bytes()),
                columns,
                entries,
                dense,
                null(),
                value(&width.to_ne_bytes()),
                sums.clone(),
            ];
            let grid = [count as u32, tiles, 1];
            self.launch(&mut memory, &name("sum_slices"), grid, &of_slices);
            let count = value(&(long_rows.len() as u64).to_ne_bytes());
            let long = [&product[..], &[rows_of_slices, count, sums]].concat();
            let blocks = (long_rows.len() as u32 * width).div_ceil(THREADS);
            self.launch(&mut memory, &(name("judge_long") + "_u32"), [blocks, 1, 1], &long);
        }
        let read = |buffer| pod_collect_to_vec(&memory.bytes(buffer));
        (read(values), read(bounds))
    }
}

/// As close to the host's reference as a matrix's certificate asks for.
fn agrees<A: Scalar, D: Scalar>(emulated: &Emulated, matrix: CsrView<'_, A>, width: u32) {
    let mut random = fastrand::Rng::with_seed(3);
    let mut draw = |rows: usize| -> Vec<D> {
        (0..rows * width as usize).map(|_| D::from_f64(2.0 * random.f64() - 1.0)).collect()
    };
    let (dense, initial) = (draw(matrix.cols()), draw(matrix.rows()));
    let [alpha, beta] = [-1.75, 0.6].map(D::Accumulator::from_f64);
    let (values, bounds) = emulated.product(matrix, (&dense, width), (alpha, beta), &initial);
    let host = reference::multiply(matrix, &dense, width as usize, alpha, beta, &initial).unwrap();
    assert_eq!(values.len(), host.values.len());
    for (i, (&value, &bound)) in values.iter().zip(&bounds).enumerate() {
        let (expected, allowed) = (host.values[i], host.bounds[i]);
        assert!((value - expected).abs() <= 0.05 * allowed, "{i}: {value} {expected}");
        assert!((bound - allowed).abs() <= 1e-6 * allowed, "{i}: {bound} {allowed}");
    }
}

#[test]
fn the_device_code_agrees_with_the_reference_on_short_rows_and_on_cut_ones() {
    let emulated = Emulated::new();
    let (short, long) = (generate::stencil5(9, 7), generate::one_dense_row(20, 3000, 5));
    for (matrix, widths) in [(&short, [1, 3, 40]), (&long, [1, 3, 40])] {
        for width in widths {
            agrees::<f64, f64>(&emulated, matrix.view(), width);
            let single = matrix.cast::<f32>().unwrap();
            agrees::<f32, f32>(&emulated, single.view(), width);
            agrees::<f32, f64>(&emulated, single.view(), width);
            let half = matrix.cast::<f16>().unwrap();
            agrees::<f16, f16>(&emulated, half.view(), width);
            let upper = matrix.cast::<bf16>().unwrap();
            agrees::<bf16, bf16>(&emulated, upper.view(), width);
        }
    }
}

#[test]
fn a_link_depends_on_the_output_and_changes_no_more_than_a_sign() {
    use emulated::Argument::{Buffer, Value};
    let emulated = Emulated::new();
    let linked = |mask: u32, word: u64, flipped: u32| {
        let mut memory = Memory::new();
        let output = memory.read_only("output", &0x7fc0_1234_u32.to_ne_bytes());
        let input = memory.writable("input", cast_slice(&[0x8000_0001_u32, 2, 3]));
        let value = |bytes: &[u8]| Value(bytes.to_vec());
        let arguments = [
            Buffer(output),
            Buffer(input),
            value(&mask.to_ne_bytes()),
            value(&word.to_ne_bytes()),
            value(&flipped.to_ne_bytes()),
        ];
        emulated.launch_of(&mut memory, "chain_link", ([1; 3], 1), &arguments);
        pod_collect_to_vec::<u8, u32>(&memory.bytes(input))
    };
    // As launched: bit by bit what it was, beside a NaN and with the sign of a 0.
    assert_eq!(linked(0, 0, 0), [0x8000_0001, 2, 3]);
    assert_eq!(linked(0, 2, 1 << 31), [0x8000_0001, 2, 0x8000_0003]);
    assert_eq!(linked(u32::MAX, 0, 0), [0x8000_0001 ^ 0x7fc0_1234, 2, 3]);
}

#[test]
fn a_sign_is_found_in_numbers_of_all_types() {
    fn negated<T: Scalar + PartialEq + std::ops::Neg<Output = T>>(elements: [T; 4]) {
        for (place, &element) in elements.iter().enumerate() {
            let mut words = pod_collect_to_vec::<T, u32>(&elements);
            let (word, flipped) = sign_bit::<T>(place);
            words[word as usize] ^= flipped;
            let changed: Vec<T> = pod_collect_to_vec(&words);
            let mut expected = elements;
            expected[place] = -element;
            assert!(changed == expected, "{} at {place}", T::DTYPE);
        }
    }
    let numbers = [1.0, -0.5, 0.25, 3.0];
    negated(numbers);
    negated(numbers.map(|number| number as f32));
    negated(numbers.map(f16::from_f64));
    negated(numbers.map(bf16::from_f64));
}

#[test]
fn long_rows_are_cut_without_a_gap_and_into_few_slices() {
    let matrix = generate::one_dense_row(5, 700_000, 5);
    let (bounds, rows) = cut(matrix.view());
    let [[row, first, last]] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((first, last), (0, bounds.len() as u64));
    assert!((200..=256).contains(&bounds.len()), "{}", bounds.len());
    let offsets = matrix.view();
    let offset = |row: u64| offsets.offsets().at(row as usize) as u64;
    assert_eq!((bounds[0][0], bounds[bounds.len() - 1][1]), (offset(row), offset(row + 1)));
    assert!(bounds.windows(2).all(|pair| pair[0][1] == pair[1][0]));
    assert!(cut(generate::stencil5(30, 30).view()).1.is_empty());
}

#[test]
fn gathered_rows_are_those_that_were_asked_for_in_their_order() {
    use emulated::Argument::{Buffer, Value};
    let width = 3_u32;
    let dense: Vec<f64> = (0..30).map(f64::from).collect();
    let rows = [7_u32, 0, 7, 9];
    let mut memory = Memory::new();
    let arguments = |memory: &mut Memory, out| {
        [
            Buffer(memory.read_only("dense", cast_slice(&dense))),
            Value(width.to_ne_bytes().to_vec()),
            Buffer(memory.read_only("rows", cast_slice(&rows))),
            Value((rows.len() as u64).to_ne_bytes().to_vec()),
            Buffer(out),
        ]
    };
    let out = memory.writable("out", &[0; 4 * 3 * 8]);
    let arguments = arguments(&mut memory, out);
    Emulated::new().launch(&mut memory, "gather_f64", [1, 1, 1], &arguments);
    let gathered: Vec<f64> = pod_collect_to_vec(&memory.bytes(out));
    assert_eq!(gathered, [21., 22., 23., 0., 1., 2., 21., 22., 23., 27., 28., 29.]);
}

#[test]
fn a_digest_tells_any_change_of_any_word_of_its_region_and_no_other() {
    let emulated = Emulated::new();
    let mut random = fastrand::Rng::with_seed(8);
    // More than a chunk; neither aligned nor whole words; shorter than 16 bytes; empty.
    let regions = [(0, CHUNK as usize + 4096), (4100, 8191), (32, 0), (60, 6), (64, 16)];
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(70_000).collect();
    let value = |bytes: &[u8]| emulated::Argument::Value(bytes.to_vec());
    let digests = |bytes: &[u8]| -> Vec<u64> {
        let mut memory = Memory::new();
        let buffer = memory.read_only("bytes", bytes);
        let base = memory.address(buffer);
        // Each at another place than it has in the list.
        let placed: Vec<(Region, usize)> = regions
            .iter()
            .enumerate()
            .map(|(index, &(start, length))| ((base + start, length as u64), 2 * index + 1))
            .collect();
        let (table, chunks) = chunk_table(&placed);
        let old = vec![0xff; 8 * (2 * regions.len() + 1)];
        let sums = memory.writable("digests", &old);
        let (table, count) =
            (value(cast_slice(&table)), value(&(regions.len() as u32).to_ne_bytes()));
        let sums_there = emulated::Argument::Buffer(sums);
        let arguments = [table.clone(), count.clone(), sums_there.clone()];
        emulated.launch(&mut memory, "clear_digests", [1; 3], &arguments);
        // Fewer blocks than chunks.
        let arguments = [table, count, value(&chunks.to_ne_bytes()), sums_there];
        emulated.launch(&mut memory, ORACLE_KERNEL, [3, 1, 1], &arguments);
        let sums: Vec<u64> = pod_collect_to_vec(&memory.bytes(sums));
        assert!(sums.iter().step_by(2).all(|&untouched| untouched == u64::MAX));
        sums.into_iter().skip(1).step_by(2).collect()
    };
    let first = digests(&bytes);
    assert_eq!(first, digests(&bytes));
    assert_eq!(first[2], 0);
    for at in [0, 63, 65, 66, 79, 80, 4099, 4100, 12_290, 12_291, 65_535, 65_536, 69_631, 69_999] {
        let old = bytes[at];
        bytes[at] = !old;
        for (index, digest) in digests(&bytes).into_iter().enumerate() {
            let (start, length) = regions[index];
            let inside = (start as usize..start as usize + length).contains(&at);
            assert_eq!(digest != first[index], inside, "byte {at}, region {index}");
        }
        bytes[at] = old;
    }
    // Words that trade places.
    bytes.swap(8, 12);
    assert_ne!(digests(&bytes)[0], first[0]);
}

/// What the device notes of a result that differs in some elements, where so many regions were
/// found to have changed, and the columns are those.
fn noted(result: &[f32], columns: &[u32], digests: [&[u64]; 2]) -> Noted {
    use emulated::Argument::{Buffer, Value};
    let emulated = Emulated::new();
    let value = |bytes: &[u8]| Value(bytes.to_vec());
    let mut memory = Memory::new();
    let words = memory.writable("notes", &[0; 8 * 5]);
    let placed: Vec<(Region, usize)> =
        (0..digests[0].len()).map(|place| ((256 * place as u64, 0), place)).collect();
    let (table, _) = chunk_table(&placed);
    let [before, after] =
        digests.map(|digests| Buffer(memory.read_only("digests", cast_slice(digests))));
    let count = value(&(placed.len() as u32).to_ne_bytes());
    let compared = [value(cast_slice(&table)), count, before, after, Buffer(words)];
    emulated.launch(&mut memory, "compare_digests", [1; 3], &compared);

    let mut input = |name: &str, bytes: &[u8]| Buffer(memory.read_only(name, bytes));
    let null = || value(&0_u64.to_ne_bytes());
    let arguments = [
        input("offsets", cast_slice(&[0_u32, 1, 3, 3])),
        input("columns", cast_slice(columns)),
        input("entries", cast_slice(&[2.0_f32, 3.0, 4.0])),
        input("dense", cast_slice(&[0.5_f32, 0.25])),
        null(),
        input("result", cast_slice(result)),
        null(),
        null(),
        Buffer(words),
        value(&3_u64.to_ne_bytes()),
        value(&1_u32.to_ne_bytes()),
        value(&1.0_f32.to_ne_bytes()),
        value(&0.0_f32.to_ne_bytes()),
        value(&512_u64.to_ne_bytes()),
    ];
    emulated.launch(&mut memory, "judge_f32_f32_u32", [1; 3], &arguments);
    Noted::of(pod_collect_to_vec(&memory.bytes(words)))
}

#[test]
fn a_verdict_counts_what_is_wrong_and_names_the_first() {
    let same: [&[u64]; 2] = [&[5, 7], &[5, 7]];
    let right = noted(&[0.5, 2.5, 0.0], &[1, 0, 1], [&[5; 64], &[5; 64]]);
    assert!(!right.is_changed());
    assert_eq!(right.verdict().violations, 0);
    let wrong = noted(&[0.5, 1.5, f32::NAN], &[1, 0, 1], same);
    let Verdict { violations, unbounded, worst_ratio, first_violation } = wrong.verdict();
    assert_eq!((violations, unbounded, first_violation), (2, 0, 1));
    assert_eq!(worst_ratio, f64::INFINITY);
}

#[test]
fn nothing_is_read_of_a_matrix_that_may_be_changed() {
    // Columns that lead far outside, where the emulator finds reads.
    let digests: [&[u64]; 2] = [&[1, 2, 3, 4], &[1, 9, 3, 9]];
    let changed = noted(&[0.0; 3], &[u32::MAX; 3], digests);
    assert!(changed.is_changed());
    assert_eq!(changed.verdict().violations, 0);
}
