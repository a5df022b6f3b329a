//! What the cost model makes of programs whose times are known.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::sync::Arc;

use sparserl_core::language::{LANGUAGE_VERSION, Program};
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::generate;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;

#[test]
fn rows_that_end_in_a_scanned_tile_are_paid_for() {
    // Of 2.8 rows for each entry, on an H200 the tiles take 2.5 times as long as the slices.
    let matrix = generate::hyper_sparse(2_700_000, 1_600_000, 960_000, 1);
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let seconds = |body: &str| {
        let text = format!("sparserl {LANGUAGE_VERSION}\nspmv f32\nblock 128\n{body}\n");
        let program = Program::parse(&text).unwrap();
        CostModel::new(Arc::clone(&stats), program.task, Target::H200).cost(&program).seconds
    };
    let scan =
        seconds("keep merge items=16 index=u32 values=plain cache=cached vector=1 reduction=scan");
    let slices = seconds(
        "sort window=16384 sell height=32 index=u32 values=plain cache=cached vector=1 lanes=1 \
         unroll=4",
    );
    assert!(scan > 1.1 * slices, "{scan} {slices}");
}

#[test]
fn reads_of_x_that_no_cache_holds_are_paid_for_and_so_is_a_lack_of_room() {
    let matrix = generate::uniform(200_000, 200_000, 4, 1).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let seconds = |target: Target, body: &str| {
        let text = format!("sparserl {LANGUAGE_VERSION}\nspmv f32\nblock 512\n{body}\n");
        let program = Program::parse(&text).unwrap();
        CostModel::new(Arc::clone(&stats), program.task, target).cost(&program).seconds
    };
    let csr = "keep csr index=u32 values=plain cache=cached vector=1 lanes=1 unroll=4";
    let binned = "keep binned shared=7 values=plain cache=streamed vector=1 lanes=1 unroll=4";
    let small_cache = Target { l2_bytes: 64 << 10, ..Target::H200 };
    assert!(seconds(small_cache, csr) > 1.5 * seconds(Target::H200, csr));
    assert_eq!(seconds(small_cache, binned), seconds(Target::H200, binned));
    let no_room = Target { shared_memory_bytes: 64 << 10, ..Target::H200 };
    assert_eq!(seconds(no_room, csr), seconds(Target::H200, csr));
    assert!((1e9..f64::INFINITY).contains(&seconds(no_room, binned)));
}

/// What is stored of a matrix is the same whatever reads it, and is read once for each panel.
#[test]
fn panels_read_a_matrix_several_times_and_store_it_once() {
    let matrix = generate::uniform(5_000, 5_000, 20, 1).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let cost = |columns: u32, panel: &str| {
        let text = format!(
            "sparserl {LANGUAGE_VERSION}\nspmm {columns} f32\nblock 128\nkeep csr index=u16 \
             values=plain cache=cached {panel}vector=4 lanes=1 unroll=4\n"
        );
        let program = Program::parse(&text).unwrap();
        let model = CostModel::new(Arc::clone(&stats), program.task, Target::H200);
        let [part] = model.parts(&program).try_into().unwrap();
        assert_eq!(part.matrix_bytes, model.cost(&program).matrix_bytes);
        (part.matrix_bytes, part.read_bytes() / part.matrix_bytes)
    };
    let (stored, once) = cost(128, "");
    assert_eq!(once, 1);
    assert_eq!(cost(128, "panel=64 "), (stored, 2));
    assert_eq!(cost(128, "panel=32 "), (stored, 4));
    assert_eq!(cost(512, ""), (stored, 4));
}
