//! Packing: every legal program packs, unpacking gives the matrix back bit for bit, and what packs
//! can be emitted; programs that do not fit are typed errors.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sparserl_core::arbitrary::{
    Case, case, case_in, csr, free_case, legal_program, random_bits, task,
};
use sparserl_core::codegen::{ArgumentKind, emit};
use sparserl_core::language::{Derivation, LANGUAGE_VERSION, Mask, Program};
use sparserl_core::layout::{ElementType, PackError, Packed, pack, unpack};
use sparserl_core::matrix::{Csr, CsrView, Offsets, OffsetsView, Scalar, generate};
use sparserl_core::reference::{compare, multiply};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Precision, Task};

/// Equality of bits: `==` would take −0 for 0.
fn same<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> bool {
    let bits = |m: &Csr<T>| m.view().values().iter().map(|v| v.bits()).collect::<Vec<_>>();
    a == b && bits(a) == bits(b)
}

/// The grid and the rows are divided among the parts, nothing twice, nothing left over.
fn parts_fit_together(packed: &Packed) -> Result<(), TestCaseError> {
    let (mut blocks, mut rows) = (0, vec![0; packed.rows]);
    for part in packed.parts.iter().rev() {
        prop_assert_eq!(part.first_block, blocks);
        blocks += part.blocks;
        part.rows.iter().for_each(|row| rows[row] += 1);
        // Without rows there is nothing to do, and with some they may need β.
        prop_assert_eq!(part.blocks == 0, part.rows.is_empty());
    }
    prop_assert_eq!(packed.geometry.grid, blocks.max(1));
    prop_assert!(rows.iter().all(|&count| count == 1));
    prop_assert_eq!(packed.geometry.block, packed.program.block.threads());
    prop_assert!(packed.geometry.static_shared() <= 48 * 1024);
    prop_assert!(packed.geometry.dynamic_shared() <= 224 * 1024);
    Ok(())
}

/// Arrays that hold values of the matrix.
const VALUES: [&str; 2] = ["values", "table"];

/// The source states as many arguments as the packed matrix has, under their names.
fn source_is_complete<T: Scalar>(
    matrix: &Csr<T>,
    program: &Program,
    packed: &Packed,
) -> Result<(), TestCaseError> {
    let source = emit(program, &packed.signature()).unwrap();
    let columns = program.task.operation.columns() as usize;
    let arguments = source.launch(packed).unwrap().arguments;
    let (own, rest) = arguments.split_at(4);
    let (arrays, sizes) = rest.split_at(packed.arguments().count());
    let kinds: Vec<_> = own.iter().map(|argument| (argument.kind, argument.len)).collect();
    prop_assert_eq!(
        kinds,
        [
            (ArgumentKind::Input, matrix.cols() * columns),
            (ArgumentKind::Output, matrix.rows() * columns),
            (ArgumentKind::Alpha, 1),
            (ArgumentKind::Beta, 1),
        ]
    );
    let packed_arrays: Vec<_> = packed.arguments().collect();
    prop_assert_eq!(arrays.len(), packed_arrays.len());
    for (argument, (name, array)) in arrays.iter().zip(packed_arrays) {
        prop_assert_eq!(&argument.name, &name);
        prop_assert_eq!(argument.len, array.data.len());
        prop_assert_eq!(argument.element, array.data.element_type());
    }
    for size in sizes {
        let fits = match (size.kind, size.element) {
            (ArgumentKind::Size(value), ElementType::U32) => u32::try_from(value).is_ok(),
            (ArgumentKind::Size(_), ElementType::U64) => true,
            _ => false,
        };
        prop_assert!(fits, "{size:?}");
    }
    prop_assert!(arguments.iter().all(|argument| !argument.meaning.is_empty()));
    // Each role has its element type: what is stored of the matrix, and what is computed with.
    let Task { precision, .. } = program.task;
    for argument in &arguments {
        let expected = match argument.kind {
            ArgumentKind::Matrix if VALUES.iter().any(|name| argument.name.ends_with(name)) => {
                precision.matrix()
            }
            ArgumentKind::Workspace if argument.name.ends_with("carry") => precision.accumulator(),
            ArgumentKind::Input | ArgumentKind::Output => precision.dense(),
            ArgumentKind::Alpha | ArgumentKind::Beta => precision.accumulator(),
            _ => continue,
        };
        prop_assert_eq!(argument.element, expected.into(), "{}", argument.name);
    }
    // The header repeats the program, so that the file alone says what it is.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let header = source.text.lines().map_while(|line| line.strip_prefix("//"));
    let header = words(&header.collect::<Vec<_>>().join("\n"));
    prop_assert!(header.contains(&words(&program.to_string())), "{header}");
    Ok(())
}

/// The product of what was unpacked, in the element type, against the reference of the matrix.
fn product_is_right<T: Scalar>(
    matrix: &Csr<T>,
    unpacked: &Csr<T>,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut random = random_bits(seed);
    let x: Vec<T> =
        (0..matrix.cols()).map(|_| T::from_f64(random() as f64 / u64::MAX as f64 - 0.5)).collect();
    let sum = T::Accumulator::from_f64;
    let reference = multiply(matrix.view(), &x, 1, sum(1.0), sum(0.0), &[]).unwrap();
    let y: Vec<T> = (0..unpacked.rows())
        .map(|row| {
            let (columns, values) = unpacked.view().row(row);
            let products = columns.iter().zip(values).map(|(&column, value)| {
                // A product of two f32 is exact in f64, so rounding it once is rounding it.
                sum(value.to_f64() * x[column as usize].to_f64())
            });
            let all = products.fold(sum(0.0), |all, one| sum(all.to_f64() + one.to_f64()));
            T::from_f64(all.to_f64())
        })
        .collect();
    let comparison = compare(&reference, &y);
    prop_assert!(comparison.passed(), "{comparison:?}");
    Ok(())
}

fn packs<T: Scalar>(matrix: &Csr<T>, program: &Program) -> Result<(), TestCaseError> {
    let packed = pack(matrix.view(), program).unwrap_or_else(|e| panic!("{e}\n{program}"));
    is_faithful(matrix, program, &packed)
}

fn is_faithful<T: Scalar>(
    matrix: &Csr<T>,
    program: &Program,
    packed: &Packed,
) -> Result<(), TestCaseError> {
    let unpacked = unpack::<T>(packed).unwrap_or_else(|e| panic!("{e}\n{program}"));
    prop_assert!(same(&unpacked, matrix), "{program}");
    parts_fit_together(packed)?;
    source_is_complete(matrix, program, packed)?;
    product_is_right(matrix, &unpacked, matrix.nnz() as u64)
}

fn packs_or_says_why<T: Scalar>(matrix: &Csr<T>, program: &Program) -> Result<(), TestCaseError> {
    match pack(matrix.view(), program) {
        Ok(packed) => is_faithful(matrix, program, &packed),
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            // The dtype is right, and the other fields are the grammar's own.
            let is_expected = !matches!(error, PackError::Dtype { .. } | PackError::Grid { .. });
            prop_assert!(is_expected, "{}", error);
            Ok(())
        }
    }
}

proptest! {
    // The space of programs takes milliseconds to count where tests are not optimised.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn legal_programs_pack_in_f32(case in case::<f32>(50, 70, 200)) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_in_f64(case in case::<f64>(50, 70, 200)) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_in_f32_for_products_in_f64(
        case in case_in::<f32>(Precision::F32_IN_F64, 50, 70, 200),
    ) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_in_f16(case in case::<half::f16>(50, 70, 200)) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_in_bf16(case in case::<half::bf16>(50, 70, 200)) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_wide_matrices(case in case::<f64>(20, 300_000, 80)) {
        packs(&case.matrix, &case.program)?;
    }

    #[test]
    fn legal_programs_pack_tall_matrices(case in case::<f32>(3000, 20, 80)) {
        packs(&case.matrix, &case.program)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn free_programs_pack_or_say_why(case in free_case::<f32>(60, 90, 300)) {
        packs_or_says_why(&case.matrix, &case.program)?;
    }

    #[test]
    fn free_programs_pack_wide_matrices_or_say_why(case in free_case::<f64>(40, 300_000, 100)) {
        packs_or_says_why(&case.matrix, &case.program)?;
    }
}

#[test]
fn another_element_type_is_refused() {
    let Case { matrix, program } = {
        use proptest::strategy::ValueTree;
        use proptest::test_runner::TestRunner;
        case::<f32>(9, 9, 9).new_tree(&mut TestRunner::deterministic()).unwrap().current()
    };
    let double = matrix.cast::<f64>().unwrap();
    let error = pack(double.view(), &program).unwrap_err();
    assert_eq!(error, PackError::Dtype { program: Dtype::F32, matrix: Dtype::F64 });

    // It is the type of the matrix that has to fit, whatever the product is computed in.
    let mixed = program.task.with_precision(Precision::F32_IN_F64);
    let mixed = legal_program(matrix.view(), mixed, 1);
    assert_eq!(pack(double.view(), &mixed).unwrap_err(), error);
    pack(matrix.view(), &mixed).unwrap();
}

/// Plain CSR and merge path of a whole matrix are its own arrays. Rows of a part, and those of a
/// view whose matrix is not known, are copied; what is packed is the same.
#[test]
fn arrays_of_a_whole_matrix_are_shared() {
    let matrix = generate::rmat(9, 6, 1);
    let view = matrix.view();
    let (offsets, columns, values) = (view.offsets(), view.columns(), view.values());
    let unknown = CsrView::new(view.rows(), view.cols(), offsets, columns, values).unwrap();
    let OffsetsView::U32(offsets) = offsets else { panic!() };
    let own = [offsets.as_ptr().addr(), columns.as_ptr().addr(), values.as_ptr().addr()];
    let csr = "keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=1";
    let merge = "keep merge items=8 index=u32 values=plain cache=cached vector=1 reduction=scan";
    let split = format!("split-length threshold=4\n  {csr}\n  {csr}");
    for (body, shared) in [(csr, 3), (merge, 2), (&split, 0)] {
        let text = format!("sparserl {LANGUAGE_VERSION}\nspmv f64\nblock 256\n{body}\n");
        let program = Program::parse(&text).unwrap();
        let (packed, copied) = (pack(view, &program).unwrap(), pack(unknown, &program).unwrap());
        assert_eq!(packed, copied);
        assert!(same(&unpack(&packed).unwrap(), &matrix));
        let of_matrix = |packed: &Packed| {
            let addresses = packed.arguments().map(|(_, array)| array.data.bytes().as_ptr().addr());
            addresses.filter(|address| own.contains(address)).count()
        };
        assert_eq!((of_matrix(&packed), of_matrix(&copied)), (shared, 0), "{body}");
    }
}

/// Every other row of 8 × 8 blocks is dense, the others are scattered: whoever samples every second
/// one finds the whole matrix dense, and packs it into blocks that hold mostly padding.
#[test]
fn the_mask_is_not_fooled_by_rows_that_repeat() {
    let rows = 40_000;
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        let block_row = row / 8;
        match block_row % 2 {
            0 => columns.extend((0..8).map(|j| block_row * 8 + j)),
            _ => columns.extend([row % 8 * 16, 20_000 + row % 8 * 16]),
        }
        offsets.push(columns.len() as u32);
    }
    let values = vec![1.5; columns.len()];
    let matrix =
        Csr::<f64>::new(rows as usize, rows as usize, Offsets::U32(offsets), columns, values);
    let matrix = matrix.unwrap();
    let task = Task::new(Operation::SpMV, Dtype::F64);
    let stats = MatrixStats::new(matrix.view());
    let mut derivation = Derivation::start(Mask::legal(&stats, task));
    let words = ["256", "keep", "bcsr", "8", "u16", "plain", "cached", "1", "1"];
    for token in words.map(|word| word.parse().unwrap()) {
        if derivation.push(token).is_err() {
            return;
        }
    }
    packs(&matrix, &derivation.finish().unwrap()).unwrap();
}

/// Packs a program that is legal for one matrix on both, and compares their sources: whether there
/// was anything to compare.
fn same_source<T: Scalar>(matrices: [&Csr<T>; 2], task: Task, seed: u64) -> bool {
    let program = legal_program(matrices[0].view(), task, seed);
    let packed = pack(matrices[0].view(), &program).unwrap();
    let Ok(other) = pack(matrices[1].view(), &program) else { return false };
    let source = emit(&program, &packed.signature()).unwrap();
    let other_source = emit(&program, &other.signature()).unwrap();
    assert_eq!(packed.signature() == other.signature(), source == other_source, "{program}");
    true
}

/// A program's source is the same for matrices whose arrays have the same types.
fn sources_depend_on_programs_and_types_of_arrays<T: Scalar>() {
    const CASES: usize = 128;
    let mut runner = TestRunner::deterministic();
    let draws = (csr::<T>(90, 90, 900), csr::<T>(90, 90, 900), task(T::DTYPE), any::<u64>());
    let (mut compared, mut products) = (0, BTreeSet::new());
    for _ in 0..CASES {
        let (one, other, task, seed) = draws.new_tree(&mut runner).unwrap().current();
        // Programs are packed on the other matrix where they fit it: in one of two directions.
        let fits =
            same_source([&one, &other], task, seed) || same_source([&other, &one], task, seed);
        if fits {
            compared += 1;
            products.insert(task.operation == Operation::SpMV);
        }
    }
    assert!(compared * 2 >= CASES, "{compared} of {CASES} cases compare two sources");
    assert_eq!(products.len(), 2, "SpMV and SpMM");
}

#[test]
fn sources_depend_on_programs_and_types_of_arrays_in_f32() {
    sources_depend_on_programs_and_types_of_arrays::<f32>();
}

#[test]
fn sources_depend_on_programs_and_types_of_arrays_in_f64() {
    sources_depend_on_programs_and_types_of_arrays::<f64>();
}

#[test]
fn sources_depend_on_programs_and_types_of_arrays_in_half_precision() {
    sources_depend_on_programs_and_types_of_arrays::<half::f16>();
    sources_depend_on_programs_and_types_of_arrays::<half::bf16>();
}
