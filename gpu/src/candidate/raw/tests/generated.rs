//! Kernels that were generated, as they are or edited, read back.

use std::time::Duration;

use sparserl_core::kernel::Kernel;

use super::*;

/// A matrix and what a program makes of it: a kernel, and its source with the comment that `gen`
/// puts behind it.
fn generated(body: &str) -> (Csr<f64>, Kernel<()>, String) {
    let program = Program::parse(&format!("sparserl 3\n{body}\n")).unwrap();
    let matrix = generate::stencil5(40, 40);
    let kernel = Kernel::for_matrix(matrix.view(), &program).unwrap();
    let text = format!("{}\n// For the matrix of plan.json: …\n", kernel.source.text);
    (matrix, kernel, text)
}

const SELL: &str = "spmm 8 f64\nblock 64\nkeep sell height=32 index=u16 values=plain cache=cached vector=1 lanes=1 unroll=2";
const MERGE: &str = "spmv f64\nblock 128\nkeep merge items=8 index=u32 values=plain cache=cached vector=1 reduction=scan";

#[test]
fn what_gen_writes_is_read_back() {
    for body in [SELL, MERGE] {
        let (matrix, own, text) = generated(body);
        let kernel = RawKernel::parse(&text, None).unwrap();
        let task = own.packed.program.task;
        assert_eq!((kernel.kernel(), kernel.task()), (own.source.kernel.as_str(), Some(task)));
        let read = kernel.prepare(matrix.view(), task).unwrap();
        let own = Prepared::of_kernel(&own);
        assert_eq!(read.names, own.names);
        assert_eq!(read.launch.geometry, own.launch.geometry);
        assert_eq!(read.launch.parameters, own.launch.parameters);
        assert_eq!(read.arrays.len(), own.arrays.len());
    }
}

#[test]
fn a_kernel_for_the_sizes_of_one_matrix_is_read_back_for_no_other() {
    for (body, expected) in [
        (SELL, "for matrices with row_count = 1600 alone, and here it is 1640"),
        (MERGE, "for matrices with item_count = 9440 alone, and here it is 9678"),
    ] {
        let (matrix, own, _) = generated(body);
        let special = Kernel::<()>::specialised(own.packed, Duration::ZERO).unwrap();
        let task = special.packed.program.task;
        let kernel = RawKernel::parse(&special.source_file(), None).unwrap();
        let read = kernel.prepare(matrix.view(), task).unwrap();
        let own = Prepared::of_kernel(&special);
        assert_eq!(read.names, own.names);
        assert_eq!(read.launch.parameters, own.launch.parameters);
        let other = generate::stencil5(40, 41);
        let error = kernel.prepare(other.view(), task).unwrap_err().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn what_gen_writes_may_be_edited() {
    let (matrix, _, text) = generated(SELL);
    let task = Task::new(Operation::SpMM { columns: 8.try_into().unwrap() }, Dtype::F64);
    let prepare = |text: &str| RawKernel::parse(text, None)?.prepare(matrix.view(), task);
    // Two parameters change places, in the launch as in the kernel.
    let swapped = text.replace("(B, C, ", "(C, B, ").replace(
        "const double* __restrict__ B, double* __restrict__ C",
        "double* C, const double* B",
    );
    let read = prepare(&swapped).unwrap();
    assert_eq!(read.names[..2], ["C", "B"]);
    assert_eq!(read.launch.parameters[..2], [given::Parameter::Output, given::Parameter::Input]);

    let error = |text: &str| prepare(text).unwrap_err().to_string();
    for (from, to, message) in [
        ("(B, C, ", "(C, B, C, ", "passes "),
        ("(B, C, ", "(B, b, ", "`b`, which is not among the program's: B, C, alpha, beta, "),
        ("(B, C, ", "(B, B, ", "are both given B"),
        ("(B, C, ", "(B, beta, ", "is of type double*, but `beta` is double for this matrix"),
        ("const u16* columns", "const u32* columns", "but `columns` is int16_t*"),
        ("sell height=32", "sell hight=32", "the program in the source's comment: line 2: "),
        ("<<<blocks, 64>>>", "<<<blocks, 2048>>>", "expected 1 to 1024"),
    ] {
        let edited = text.replace(from, to);
        assert_ne!(edited, text, "{from}");
        let error = error(&edited);
        assert!(error.contains(message) && error.lines().count() == 1, "{to}: {error}");
    }
    let kernel = RawKernel::parse(&text, None).unwrap();
    let error = kernel.prepare(matrix.view(), SPMV).unwrap_err().to_string();
    assert!(error.contains("is for spmm 8 f64, not for this product"), "{error}");
}

#[test]
fn an_edited_kernel_keeps_nothing_from_launch_to_launch() {
    let (matrix, _, text) = generated(MERGE);
    let prepare =
        |text: &str| RawKernel::parse(text, None).unwrap().prepare(matrix.view(), SPMV).map(drop);
    assert_eq!(prepare(&text), Ok(()));
    for edited in [text.replace("  ", "   "), format!("{text}\n__device__ int state;\n")] {
        assert_eq!(prepare(&edited), Err(RawError::Workspace { name: "carry".into() }));
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", sidecar in proptest::option::of("\\PC*")) {
        let _ = RawKernel::parse(&text, sidecar.as_deref());
    }

    #[test]
    fn no_text_like_a_source_panics(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "__global__ ", "void ", "k", "(", ")", "{", "}", ";", "\"", "'", "R\"", "\\", "\n", "//", "/*", "*/", "#",
            "extern \"C\" ", "template", "<", ">", ",", "=", "float* x", "float* y", "int nnz", " launch: ", "<<<1,", "1>>>",
            " program:\n", "//   sparserl 3\n", "__launch_bounds__(", "é", "num_rows/", "\r", "blocks",
        ]), 0..40),
    ) {
        let text = pieces.concat();
        if let Ok(kernel) = RawKernel::parse(&text, None) {
            prop_assert!(kernel.source().contains("extern \"C\""));
            prop_assert!(kernel.source().len() >= text.len());
        }
        let _ = RawKernel::parse(&text, Some(r#"{"grid": 1, "block": 1}"#));
        let _ = LaunchRule::from_comment(&text);
    }
}
