//! Matrices in the layouts of programs: legal programs pack, others pack or say why; unpacking
//! gives the matrix back bit for bit, however many threads packed it.

use std::sync::LazyLock;

use rayon::{ThreadPool, ThreadPoolBuilder};
use sparserl_core::codegen::{Argument, ArgumentKind, emit};
use sparserl_core::layout::{PackError, Packed, pack, unpack};
use sparserl_core::matrix::{Csr, Scalar};

use crate::bytes::{Bytes, Case};
use crate::market::same;

static POOLS: LazyLock<[ThreadPool; 2]> =
    LazyLock::new(|| [1, 3].map(|n| ThreadPoolBuilder::new().num_threads(n).build().unwrap()));

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    match bytes.choose(2) {
        0 => packs::<f32>(bytes),
        _ => packs::<f64>(bytes),
    }
}

fn packs<T: Scalar>(bytes: Bytes<'_>) {
    let Some(Case { matrix, program, is_legal }) = bytes.case::<T>() else { return };
    let [packed, by_more] =
        [0, 1].map(|pool| POOLS[pool].install(|| pack(matrix.view(), &program)));
    // Empty slots hold NaN, which `==` takes to differ.
    let identical = packed == by_more || format!("{packed:?}") == format!("{by_more:?}");
    assert!(identical, "by one thread and by several\n{program}");
    match packed {
        Ok(packed) => is_faithful(&matrix, &packed),
        Err(error) => {
            let of_another_matrix =
                matches!(error, PackError::Dtype { .. } | PackError::Grid { .. });
            assert!(!is_legal && !of_another_matrix, "{error}\n{program}");
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}

fn is_faithful<T: Scalar>(matrix: &Csr<T>, packed: &Packed) {
    let program = &packed.program;
    let unpacked = unpack::<T>(packed).unwrap_or_else(|error| panic!("{error}\n{program}"));
    assert!(same(&unpacked, matrix), "{program}");
    let entries: usize = packed.parts.iter().map(|part| part.nnz).sum();
    assert_eq!(entries, matrix.nnz(), "{program}");

    let (mut blocks, mut rows) = (0, vec![0; packed.rows]);
    for part in packed.parts.iter().rev() {
        assert_eq!(part.first_block, blocks, "{program}");
        blocks += part.blocks;
        part.rows.iter().for_each(|row| rows[row] += 1);
        assert_eq!(part.blocks == 0, part.rows.is_empty(), "{program}");
    }
    assert_eq!(packed.geometry.grid, blocks.max(1), "{program}");
    assert!(rows.iter().all(|&count| count == 1), "{program}");

    let source =
        emit(program, &packed.signature()).unwrap_or_else(|error| panic!("{error}\n{program}"));
    let arrays: Vec<_> = packed.arguments().map(|(name, array)| (name, array.data.len())).collect();
    let arguments = source.launch(packed).unwrap().arguments;
    let is_array = |argument: &&Argument| {
        matches!(argument.kind, ArgumentKind::Matrix | ArgumentKind::Workspace)
    };
    let stated =
        arguments.iter().filter(is_array).map(|argument| (argument.name.clone(), argument.len));
    assert!(stated.eq(arrays), "{program}");
}
