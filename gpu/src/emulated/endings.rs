//! Judging a kernel that ends otherwise than the plain one: it has to give what the plain kernel
//! gives in place, or what its caller's epilogue makes of the plain kernel's product, and to leave
//! everything else alone.
//!
//! Nobody knows what an epilogue should compute but its text, so that the text is run twice: within
//! the kernel, and by itself on the product of the plain kernel, which is judged elsewhere. What
//! the epilogue does on the way is watched as in every kernel: accesses outside of the caller's
//! arrays, races, use of what nobody wrote.

use std::sync::Arc;

use sparserl_core::codegen::{
    CudaSource, EmitError, Ending, Epilogue, Extent, UserKind, emit, emit_ending,
};
use sparserl_core::layout::Packed;
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Verification, Violation};
use sparserl_core::task::Dtype;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::launch::{Argument, Launch, Options, run};
use sparserl_emulator::memory::{BufferId, Memory};
use sparserl_emulator::ptx::Module;

use super::{EmulatorError, EmulatorEvaluator, Judgement, not_compiled, verdict};
use crate::candidate::executable::{Parameter, Prepared};
use crate::compile::nvrtc::CompileOptions;

/// What inputs begin with.
const FIRST_INPUT: u64 = 0xE71;
/// Threads of a block of the kernel that applies the epilogue by itself.
const BLOCK: u32 = 128;
/// Instructions that a warp may execute in a launch.
const BUDGET: u64 = 100_000_000;
/// How far two results of one epilogue may be apart, in unit roundoffs of what went into them: the
/// compiler may contract one and not the other.
const ROUNDINGS: f64 = 64.0;

/// α, β, and whether the result overwrites the old vector.
const LAUNCHES: [(f64, f64, bool); 3] = [(1.0, 0.0, false), (1.5, -0.5, false), (-2.0, 1.0, true)];

impl EmulatorEvaluator {
    /// Judges the kernel of a program with another ending on what `packed` was made of.
    ///
    /// # Errors
    /// When nothing can be said about the kernel. Whatever an epilogue does is in the judgement.
    pub fn judge_ending(
        &self,
        packed: &Arc<Packed>,
        ending: &Ending,
    ) -> Result<Judgement, EmulatorError> {
        match packed.program.task.precision.dense() {
            Dtype::F32 => self.judge_ending_in::<f32>(packed, ending),
            Dtype::F64 => self.judge_ending_in::<f64>(packed, ending),
            // Which no kernel has.
            Dtype::F16 | Dtype::BF16 => Err(EmitError::Ending.into()),
        }
    }

    fn judge_ending_in<D: Scalar>(
        &self,
        packed: &Arc<Packed>,
        ending: &Ending,
    ) -> Result<Judgement, EmulatorError> {
        let signature = packed.signature();
        let plain = emit(&packed.program, &signature)?;
        let fused = emit_ending(&packed.program, &signature, ending)?;
        let nothing = Epilogue { text: String::new(), user: Vec::new() };
        // Without an epilogue, the plain kernel itself says what is right.
        let (epilogue, unfused) = match ending {
            Ending::Fused(epilogue) => (epilogue, epilogue.unfused(packed.program.task)),
            Ending::Apart => (&nothing, plain.clone()),
        };
        let mut kernels = Vec::new();
        for source in [&plain, &fused, &unfused] {
            match self.parsed(source)? {
                Ok(kernel) => kernels.push(kernel),
                Err(reason) => return Ok(Judgement::unlaunched(not_compiled(reason))),
            }
        }
        let [plain, fused, unfused] = kernels.as_slice() else {
            return Ok(Judgement::unlaunched(not_compiled("a kernel is missing".to_owned())));
        };
        let prepared = Prepared::of_program(packed, &emit(&packed.program, &signature)?);
        let trial = Trial::<D> { prepared: &prepared, packed, epilogue, zero: D::from_f64(0.0) };
        let mut random = fastrand::Rng::with_seed(FIRST_INPUT);
        let mut counters = None;
        let judged = |outcome, findings, counters| Judgement {
            outcome,
            findings,
            counters,
            ptx_instructions: Some(fused.code.len()),
        };
        let mut verified = Verification { checks: 0, worst_ratio: 0.0 };
        for (seed, (alpha, beta, in_place)) in (0..).zip(LAUNCHES) {
            let given = trial.given(alpha, beta, in_place, &mut random);
            let how = Options { seed, budget: BUDGET };
            let product = match trial.plain(plain, &given, &how) {
                Ok(product) => product,
                Err(outcome) => return Ok(judged(outcome, Vec::new(), counters)),
            };
            let expected = match ending {
                Ending::Fused(_) => trial.unfused(unfused, &given, &product, &how),
                Ending::Apart => trial.in_place(plain, &given, &how),
            };
            let found = expected.and_then(|expected| {
                let (found, counted) = trial.fused(fused, &given, &how)?;
                counters.get_or_insert(counted);
                trial.compare(&given, &product, &expected, &found)
            });
            match found {
                Ok(ratio) => verified.worst_ratio = verified.worst_ratio.max(ratio),
                Err(outcome) => return Ok(judged(outcome, Vec::new(), counters)),
            }
            verified.checks += 1;
        }
        Ok(judged(Outcome::Verified(verified), Vec::new(), counters))
    }

    /// The kernel of a source; an `Err` within is the source's fault.
    fn parsed(&self, source: &CudaSource) -> Result<Result<Kernel, String>, EmulatorError> {
        let options = CompileOptions { line_information: true, ..CompileOptions::generated() };
        let ptx = match self.compile(&source.text, &source.kernel, &options)? {
            Ok(ptx) => ptx,
            Err(reason) => return Ok(Err(reason)),
        };
        let kernel = Module::parse(&ptx).and_then(|module| module.kernel(&source.kernel));
        let unlike = |error| EmulatorError::Ptx { kernel: source.kernel.clone(), error };
        let mut kernel = kernel.map_err(unlike)?;
        for location in &mut kernel.locations {
            if let Some((_, name)) = location.file.rsplit_once('/') {
                location.file = name.to_owned();
            }
        }
        Ok(Ok(kernel))
    }
}

/// What kernels are tried with.
struct Trial<'a, D> {
    prepared: &'a Prepared,
    packed: &'a Packed,
    epilogue: &'a Epilogue,
    zero: D,
}

/// What a launch is given.
struct Given<D> {
    alpha: D,
    beta: D,
    in_place: bool,
    input: Vec<D>,
    old: Vec<D>,
    /// For each of the caller's values: one number, or the elements of an array that is read.
    user: Vec<Vec<D>>,
}

/// What a launch left: the result, and the caller's arrays that it writes.
struct Left<D> {
    result: Vec<D>,
    outputs: Vec<Vec<D>>,
}

impl<D: Scalar> Trial<'_, D> {
    fn given(&self, alpha: f64, beta: f64, in_place: bool, random: &mut fastrand::Rng) -> Given<D> {
        let mut numbers = |count: usize| -> Vec<D> {
            (0..count).map(|_| D::from_f64(2.0 * random.f64() - 1.0)).collect()
        };
        let (rows, cols) = (self.packed.rows, self.packed.cols);
        let (input, old) = (numbers(cols), numbers(rows));
        let user = self.epilogue.user.iter().map(|field| match field.kind {
            UserKind::Number => numbers(1),
            UserKind::Input(Extent::Rows) => numbers(rows),
            UserKind::Input(Extent::Columns) => numbers(cols),
            UserKind::Output => Vec::new(),
        });
        let user = user.collect();
        Given { alpha: D::from_f64(alpha), beta: D::from_f64(beta), in_place, input, old, user }
    }

    /// The product of the plain kernel.
    fn plain(&self, kernel: &Kernel, given: &Given<D>, how: &Options) -> Result<Vec<D>, Outcome> {
        let mut memory = Memory::new();
        let bytes = self.packed.rows * size_of::<D>();
        let output = memory.uninitialised("y", bytes);
        let arguments = self.arguments(&mut memory, given, output, self.zero);
        self.launch(kernel, self.grid(), arguments, &mut memory, how)?;
        Ok(bytemuck::pod_collect_to_vec(&memory.bytes(output)))
    }

    /// What the plain kernel gives where the old vector is.
    fn in_place(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        how: &Options,
    ) -> Result<Left<D>, Outcome> {
        let mut memory = Memory::new();
        let output = memory.writable("y", bytemuck::cast_slice(&given.old));
        let arguments = self.arguments(&mut memory, given, output, given.beta);
        self.launch(kernel, self.grid(), arguments, &mut memory, how)?;
        Ok(left(&memory, output, &[]))
    }

    /// What the epilogue makes of a product.
    fn unfused(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        product: &[D],
        how: &Options,
    ) -> Result<Left<D>, Outcome> {
        let rows = self.packed.rows;
        let mut memory = Memory::new();
        let product = memory.input("product", bytemuck::cast_slice(product));
        let (old, result) = self.vectors(&mut memory, given);
        let (user, outputs) = self.user(&mut memory, given);
        let mut arguments = vec![
            Argument::Buffer(product),
            Argument::Buffer(old),
            Argument::Buffer(result),
            value(&given.beta),
            value(&(rows as u32)),
        ];
        arguments.extend(user);
        let grid = (rows as u32).div_ceil(BLOCK).max(1);
        self.launch(kernel, (grid, BLOCK), arguments, &mut memory, how)?;
        Ok(left(&memory, result, &outputs))
    }

    /// What the fused kernel gives, with its counters.
    fn fused(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        how: &Options,
    ) -> Result<(Left<D>, super::Counters), Outcome> {
        let mut memory = Memory::new();
        let (old, result) = self.vectors(&mut memory, given);
        let (user, outputs) = self.user(&mut memory, given);
        let mut arguments = self.arguments(&mut memory, given, result, given.beta);
        arguments.push(Argument::Buffer(old));
        arguments.extend(user);
        let counters = self.launch(kernel, self.grid(), arguments, &mut memory, how)?;
        Ok((left(&memory, result, &outputs), counters))
    }

    /// The old vector, which is never written where β is 0, and the result.
    fn vectors(&self, memory: &mut Memory, given: &Given<D>) -> (BufferId, BufferId) {
        let bytes = self.packed.rows * size_of::<D>();
        let old = match given.beta == self.zero {
            true => memory.uninitialised("y", bytes),
            false if given.in_place => memory.writable("y", bytemuck::cast_slice(&given.old)),
            false => memory.input("y", bytemuck::cast_slice(&given.old)),
        };
        (old, if given.in_place { old } else { memory.uninitialised("z", bytes) })
    }

    /// The caller's values as an argument, where there are any, and those of them that are written.
    fn user(&self, memory: &mut Memory, given: &Given<D>) -> (Option<Argument>, Vec<BufferId>) {
        let dtype = D::DTYPE;
        let mut bytes = vec![0_u8; self.epilogue.user_bytes(dtype)];
        let mut outputs = Vec::new();
        let fields = self.epilogue.user.iter().zip(self.epilogue.user_offsets(dtype));
        for ((field, offset), elements) in fields.zip(&given.user) {
            let buffer = match field.kind {
                UserKind::Number => {
                    let number = bytemuck::cast_slice(elements);
                    if let Some(place) = bytes.get_mut(offset..offset + number.len()) {
                        place.copy_from_slice(number);
                    }
                    continue;
                }
                UserKind::Input(_) => memory.input(&field.name, bytemuck::cast_slice(elements)),
                UserKind::Output => {
                    let bytes = self.packed.rows * size_of::<D>();
                    let buffer = memory.uninitialised(&field.name, bytes);
                    outputs.push(buffer);
                    buffer
                }
            };
            if let Some(place) = bytes.get_mut(offset..offset + size_of::<u64>()) {
                place.copy_from_slice(&memory.address(buffer).to_le_bytes());
            }
        }
        ((!bytes.is_empty()).then_some(Argument::Value(bytes)), outputs)
    }

    /// The arguments of the plain kernel.
    fn arguments(
        &self,
        memory: &mut Memory,
        given: &Given<D>,
        output: BufferId,
        beta: D,
    ) -> Vec<Argument> {
        let Prepared { launch, arrays, names } = self.prepared;
        let parameters = launch.parameters.iter().zip(names);
        let argument = |(parameter, name): (&Parameter, &String)| match *parameter {
            Parameter::Input => {
                Argument::Buffer(memory.input(name, bytemuck::cast_slice(&given.input)))
            }
            Parameter::Output => Argument::Buffer(output),
            Parameter::Alpha => value(&given.alpha),
            Parameter::Beta => value(&beta),
            Parameter::Array(index) => {
                let bytes = arrays.get(index).map_or(&[][..], |array| array.bytes());
                Argument::Buffer(memory.read_only(name, bytes))
            }
            Parameter::Workspace { bytes, .. } => {
                Argument::Buffer(memory.writable(name, &vec![0; bytes as usize]))
            }
            Parameter::I32(number) => value(&number),
            Parameter::U32(number) => value(&number),
            Parameter::U64(number) => value(&number),
        };
        parameters.map(argument).collect()
    }

    fn grid(&self) -> (u32, u32) {
        (self.packed.geometry.grid, self.packed.geometry.block)
    }

    fn launch(
        &self,
        kernel: &Kernel,
        (grid, block): (u32, u32),
        arguments: Vec<Argument>,
        memory: &mut Memory,
        how: &Options,
    ) -> Result<super::Counters, Outcome> {
        let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
        let launch = Launch { grid, block, dynamic_shared: 0, arguments };
        let refused = |error: sparserl_emulator::launch::LaunchError| Outcome::LaunchFailed {
            reason: error.to_string(),
        };
        let report = run(kernel, &launch, memory, how).map_err(refused)?;
        match verdict::of_findings(&report.findings) {
            Some(outcome) => Err(outcome),
            None => Ok(report.counters),
        }
    }

    /// By how many times the allowed distance the worst element is off, where that is less than
    /// one.
    fn compare(
        &self,
        given: &Given<D>,
        product: &[D],
        expected: &Left<D>,
        found: &Left<D>,
    ) -> Result<f64, Outcome> {
        let roundoff = D::DTYPE.unit_roundoff() * ROUNDINGS;
        let largest = given.user.iter().flatten().map(|n| n.to_f64().abs()).fold(1.0, f64::max);
        let mut worst: f64 = 0.0;
        let all = [("z", &expected.result, &found.result)].into_iter();
        let outputs = expected.outputs.iter().zip(&found.outputs);
        for (name, expected, found) in
            all.chain(outputs.map(|(one, other)| ("an array", one, other)))
        {
            for (row, (one, other)) in expected.iter().zip(found).enumerate() {
                let (one, other) = (one.to_f64(), other.to_f64());
                let same = one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan());
                let into = product.get(row).map_or(0.0, |product| product.to_f64().abs());
                let allowed = roundoff * (one.abs() + other.abs() + into + largest);
                let distance = if same { 0.0 } else { (one - other).abs() / allowed };
                if distance.is_nan() || distance > 1.0 {
                    let reason = format!(
                        "the kernel gives {other:e} in row {row} of {name}, and by itself its epilogue gives {one:e}"
                    );
                    return Err(Outcome::WrongResult { violation: Violation::Inexact, reason });
                }
                worst = worst.max(distance);
            }
        }
        Ok(worst)
    }
}

fn left<D: Scalar>(memory: &Memory, result: BufferId, outputs: &[BufferId]) -> Left<D> {
    let read = |buffer: BufferId| bytemuck::pod_collect_to_vec(&memory.bytes(buffer));
    Left { result: read(result), outputs: outputs.iter().map(|&buffer| read(buffer)).collect() }
}

fn value(number: &impl bytemuck::NoUninit) -> Argument {
    Argument::Value(bytemuck::bytes_of(number).to_vec())
}
