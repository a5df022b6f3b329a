//! Every golden program, with its result elsewhere and with an epilogue, emulated. Needs no
//! GPU.

#![allow(clippy::panic, clippy::unwrap_used, reason = "test code")]

use std::sync::Arc;

use half::bf16;
use sparserl_core::codegen::{Alignment, Ending, Epilogue, UserField};
use sparserl_core::layout::{Packed, pack};
use sparserl_core::matrix::{Scalar, middle_rows, sample_rows};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_tests::golden::{self, Golden};

/// Products with entries of the rows that programs are tried on, about.
const SAMPLE: usize = 4_000;

fn emulator() -> EmulatorEvaluator {
    let compilers = Arc::new(Compilers::discover().unwrap());
    let options = EmulationOptions::default();
    EmulatorEvaluator::in_process(compilers, Architecture::Sm90, options).unwrap()
}

fn epilogue(operation: Operation, user: &str, body: &str) -> Ending {
    let place = match operation {
        Operation::SpMV => "unsigned row",
        Operation::SpMM { .. } => "unsigned row, unsigned column",
    };
    let text = format!(
        "__device__ Scalar epilogue({place}, Scalar product, Scalar old, const User& user) {{\n\
         {body}\n}}"
    );
    Ending::Fused(Epilogue { text, user: UserField::parse_all(user).unwrap() })
}

fn packed<T: Scalar>(golden: &Golden) -> Packed {
    let matrix = golden.build::<T>().unwrap();
    let entries = (SAMPLE / golden.program.task.operation.columns() as usize).clamp(400, 2_000);
    let sample = sample_rows(matrix.view(), entries).matrix;
    let in_one_run = || middle_rows(matrix.view(), entries).matrix;
    let packed = pack(sample.view(), &golden.program);
    packed.or_else(|_| pack(in_one_run().view(), &golden.program)).unwrap()
}

#[test]
fn every_layout_ends_elsewhere_and_in_an_epilogue() {
    let emulator = emulator();
    let mut tried = 0;
    for golden in golden::load().unwrap() {
        let task = golden.program.task;
        let packed = Arc::new(with_scalar!(task.precision.matrix(), T => packed::<T>(&golden)));
        let step = match task.operation {
            Operation::SpMV => epilogue(
                task.operation,
                "const Dense shift[rows]; Scalar factor; Scalar moved[rows]",
                "const Scalar v = product + old + user.shift[row];\n\
                 user.moved[row] = user.factor * v;\n\
                 return v > 0 ? v : Scalar(0);",
            ),
            Operation::SpMM { .. } => epilogue(
                task.operation,
                "const Dense shift[N]; const Scalar weight[rows]; Scalar moved[rows][N]",
                "const Scalar v = product + old + user.shift[column];\n\
                 user.moved[size_t(row) * N + column] = user.weight[row] * v;\n\
                 return v > 0 ? v : Scalar(0);",
            ),
        };
        let mut endings = vec![Ending::Apart, step.clone()];
        if task.operation != Operation::SpMV {
            for alignment in [Alignment::Vectors, Alignment::Elements] {
                endings.extend(
                    [None, step.epilogue().cloned()]
                        .map(|epilogue| Ending::Strided { epilogue, alignment }),
                );
            }
        }
        for ending in &endings {
            let judged = emulator.judge_ending(&packed, ending).unwrap();
            assert!(judged.outcome.is_right(), "{}: {}", golden.name, judged.outcome);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

#[test]
fn an_epilogue_that_does_harm_is_refused() {
    let emulator = emulator();
    let goldens = golden::load().unwrap();
    let csr = goldens.iter().find(|golden| golden.name == "csr-graph").unwrap();
    let packed = Arc::new(match csr.program.task.precision.matrix() {
        Dtype::F64 => packed::<f64>(csr),
        _ => packed::<f32>(csr),
    });
    let cases = [
        ("", "return product + missing;", "epilogue(2): error"),
        ("const Scalar a[rows]", "return user.a[row + 1];", "epilogue:2"),
        ("Scalar a[rows]", "user.a[row + 1] = 0;\nreturn product;", "epilogue:2"),
        ("Scalar a[rows]", "user.a[0] = product;\nreturn product;", "race"),
        ("Scalar a[rows]", "return product + user.a[row];", "uninitialised memory"),
        // A result that depends on who computes it.
        ("", "return blockDim.x == 128 ? product : product + 1;", "by itself its epilogue gives"),
    ];
    for (user, body, words) in cases {
        let ending = epilogue(Operation::SpMV, user, body);
        let outcome = emulator.judge_ending(&packed, &ending).unwrap().outcome;
        assert!(!outcome.is_right(), "{body}");
        assert!(outcome.to_string().contains(words), "{body}: {outcome}");
    }
}

#[test]
fn an_epilogue_of_matrices_that_does_harm_is_refused() {
    let emulator = emulator();
    let goldens = golden::load().unwrap();
    let of = |dtype| {
        let is_wanted = |golden: &&Golden| {
            let task = golden.program.task;
            // The epilogue by itself has blocks of 128 threads.
            let has_other_blocks = golden.program.block.threads() != 128;
            task.operation != Operation::SpMV && task.precision.dense() == dtype && has_other_blocks
        };
        goldens.iter().find(is_wanted).unwrap()
    };
    let (single, half) = (of(Dtype::F32), of(Dtype::BF16));
    let packings = [(single, packed::<f32>(single)), (half, packed::<bf16>(half))];
    let cases = [
        ("const Scalar a[N]", "return product + user.a[N + column];", "epilogue:2"),
        // A row has several columns, which write at the same time.
        ("Scalar a[rows]", "user.a[row] = product;\nreturn product;", "race"),
        ("Dense a[rows][N]", "return product + user.a[row * N + column];", "uninitialised memory"),
        // A result that depends on who computes it.
        ("", "return blockDim.x == 128 ? product : product + 1;", "in row 0, column 0,"),
    ];
    for (golden, packed) in packings {
        let packed = Arc::new(packed);
        for (user, body, words) in cases {
            let ending = epilogue(golden.program.task.operation, user, body);
            let outcome = emulator.judge_ending(&packed, &ending).unwrap().outcome;
            assert!(!outcome.is_right(), "{}: {body}", golden.name);
            assert!(outcome.to_string().contains(words), "{}: {body}: {outcome}", golden.name);
        }
    }
}

#[test]
fn an_epilogue_is_tried_all_over_the_result() {
    let emulator = emulator();
    let size = (1_000_000, 300_000);
    let columns = std::num::NonZero::new(512).unwrap();
    let (spmv, spmm) = (Operation::SpMV, Operation::SpMM { columns });
    let judge = |operation, dtype, user: &str, body: &str| {
        let ending = epilogue(operation, user, body);
        let task = Task::new(operation, dtype);
        emulator.judge_epilogue(ending.epilogue().unwrap(), task, size).unwrap().outcome
    };
    // All that is declared may be read, and each element written for its own place.
    let user = "const Scalar a[rows]; const Dense b[columns]; const Dense c[N]; Scalar d; \
                const Scalar e[1]; Dense f[rows][N]; const Scalar g[rows][N]";
    let body = "user.f[size_t(row) * N + column] = Dense(0);\n\
                return user.a[999999] + Scalar(user.b[299999]) + Scalar(user.c[N - 1]) + user.d\n\
                + *user.e + user.g[size_t(999999) * N + 511] + product + old;";
    for dtype in [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::BF16] {
        let body = if dtype.accumulator() == dtype {
            body.to_owned()
        } else {
            body.replace("Dense(0)", "Dense::nearest(0)")
        };
        let outcome = judge(spmm, dtype, user, &body);
        assert!(outcome.is_right(), "{dtype:?}: {outcome}");
    }
    let cases = [
        (spmv, "Scalar a[rows]", "if (row > 700000) user.a[row + 500000] = 0;", "in row "),
        (spmv, "Scalar a[rows]", "if (row == 412374u) user.a[row + 600000] = 0;", "in row 412374,"),
        (spmv, "Scalar a[rows]", "user.a[row + 1] = 0;", "in row 999999,"),
        (spmv, "const Scalar a[rows]", "return user.a[row - 1];", "in row 0,"),
        (spmv, "Scalar a[rows]", "if (product > 1e6) user.a[row + 2000000] = 0;", "out of bounds"),
        (spmv, "Scalar a[rows]", "if (product == 1234.5) user.a[row + 1000000] = 0;", "1.2345e3"),
        (spmv, "Scalar a[rows]", "if (isnan(product)) user.a[row + 1000000] = 0;", "product NaN"),
        (spmv, "Scalar a[rows]", "if (old < -1e12) user.a[row + 1000000] = 0;", "old -"),
        (spmv, "const Scalar a[1]", "return user.a[row / 999999];", "in row 999999,"),
        (spmv, "const Scalar a[columns]", "return user.a[row];", "in row 999999,"),
        (spmv, "", "if (row > 900000) __trap();", "trap"),
        (
            spmv,
            "const Scalar a[rows]",
            "if (row > 700000) for (unsigned i = 1; i; i += 2) if (user.a[0] > 1e30) break;",
            "in row ",
        ),
        (spmv, "Scalar a[rows]", "user.a[row < 524288 ? row : 524288] = product;", "race"),
        (
            spmm,
            "Scalar a[rows][N]",
            "user.a[row * N + column + 1] = 0;",
            "in row 999999, column 511,",
        ),
        (
            spmm,
            "const Scalar a[N]",
            "return user.a[column + (row == 65536)];",
            "in row 65536, column 511",
        ),
    ];
    for (operation, user, body, words) in cases {
        let body = format!("{body}\nreturn product + old;");
        let outcome = judge(operation, Dtype::F64, user, &body);
        assert!(!outcome.is_right() && outcome.to_string().contains(words), "{body}: {outcome}");
    }
    // A number of 32 bits is that of the first element there, too.
    let ending = epilogue(spmm, "Scalar a[rows][N]", "return user.a[row * N + column] = product;");
    let task = Task::new(spmm, Dtype::F32);
    let judged = emulator.judge_epilogue(ending.epilogue().unwrap(), task, (10_000_000, 10));
    let outcome = judged.unwrap().outcome;
    assert!(outcome.to_string().contains("in row 8388608, column 0,"), "{outcome}");
}
