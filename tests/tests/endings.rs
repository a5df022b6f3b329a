//! Every golden program for SpMV, with its result elsewhere and with an epilogue, emulated. Needs no
//! GPU.

#![allow(clippy::panic, clippy::unwrap_used, reason = "test code")]

use std::sync::Arc;

use sparserl_core::codegen::{Ending, Epilogue, UserField};
use sparserl_core::layout::{Packed, pack};
use sparserl_core::matrix::{Scalar, middle_rows, sample_rows};
use sparserl_core::task::{Dtype, Operation};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_tests::golden::{self, Golden};

/// Entries of the rows that programs are tried on, about.
const SAMPLE: usize = 2_000;

fn emulator() -> EmulatorEvaluator {
    let compilers = Arc::new(Compilers::discover().unwrap());
    let options = EmulationOptions::default();
    EmulatorEvaluator::in_process(compilers, Architecture::Sm90, options).unwrap()
}

fn epilogue(user: &str, body: &str) -> Ending {
    let text = format!(
        "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {{\n\
         {body}\n}}"
    );
    Ending::Fused(Epilogue { text, user: UserField::parse_all(user).unwrap() })
}

fn packed<T: Scalar>(golden: &Golden) -> Packed {
    let matrix = golden.build::<T>().unwrap();
    let sample = sample_rows(matrix.view(), SAMPLE).matrix;
    let in_one_run = || middle_rows(matrix.view(), SAMPLE).matrix;
    let packed = pack(sample.view(), &golden.program);
    packed.or_else(|_| pack(in_one_run().view(), &golden.program)).unwrap()
}

#[test]
fn every_layout_ends_elsewhere_and_in_an_epilogue() {
    let emulator = emulator();
    let step = epilogue(
        "const Scalar shift[rows]; Scalar factor; Scalar moved[rows]",
        "const Scalar v = product + old + user.shift[row];\n\
         user.moved[row] = user.factor * v;\n\
         return v > 0 ? v : Scalar(0);",
    );
    let mut tried = 0;
    for golden in golden::load().unwrap() {
        let task = golden.program.task;
        if task.operation != Operation::SpMV {
            continue;
        }
        let packed = Arc::new(match task.precision.matrix() {
            Dtype::F32 => packed::<f32>(&golden),
            Dtype::F64 => packed::<f64>(&golden),
            // Which have no other endings.
            Dtype::F16 | Dtype::BF16 => continue,
        });
        for ending in [&Ending::Apart, &step] {
            let judged = emulator.judge_ending(&packed, ending).unwrap();
            assert!(judged.outcome.is_right(), "{}: {}", golden.name, judged.outcome);
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
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
        let outcome = emulator.judge_ending(&packed, &epilogue(user, body)).unwrap().outcome;
        assert!(!outcome.is_right(), "{body}");
        assert!(outcome.to_string().contains(words), "{body}: {outcome}");
    }
}
