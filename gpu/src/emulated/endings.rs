//! Judging a kernel that ends otherwise than the plain one: it has to give what the plain kernel
//! gives in place, or what its caller's epilogue makes of the plain kernel's product, and to leave
//! everything else alone, gaps between the rows of matrices with leading dimensions among it.
//!
//! In half precision the plain kernel rounds its product, and an epilogue is given it unrounded: an
//! epilogue of ours, which only tells what it is given, says what that is, and rounded it has to be
//! the plain kernel's.
//!
//! Nobody knows what an epilogue should compute but its text, so that the text is run twice: within
//! the kernel, and by itself on the product of the plain kernel, which is judged elsewhere. What
//! the epilogue does on the way is watched as in every kernel: accesses outside of the caller's
//! arrays, races, use of what nobody wrote.

use std::sync::Arc;
use std::time::Duration;

use rayon::prelude::*;
use sparserl_core::codegen::{
    Alignment, CudaSource, EmitError, Ending, Epilogue, Extent, UserArray, UserElement, UserField,
    UserKind, row_alignment,
};
use sparserl_core::kernel;
use sparserl_core::layout::Packed;
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Verification, Violation};
use sparserl_core::task::{Dtype, Operation};
use sparserl_core::with_scalar;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::{BufferId, Memory};
use sparserl_emulator::ptx::Module;

use super::gaps::Rows;
use super::{EmulatorError, EmulatorEvaluator, Judgement, not_compiled, verdict};
use crate::candidate::executable::{Parameter, Prepared};
use crate::compile::nvrtc::{CompileOptions, Cubin};
use crate::run::device::Geometry;

/// What inputs begin with.
const FIRST_INPUT: u64 = 0xE71;
/// Threads of a block of the kernel that applies the epilogue by itself.
const BLOCK: u32 = 128;
/// Instructions that a warp may execute in a launch.
const BUDGET: u64 = 100_000_000;
/// How far two results of one epilogue may be apart, in unit roundoffs of what went into them: the
/// compiler may contract one and not the other.
const ROUNDINGS: f64 = 64.0;

/// What gaps between the rows of B hold, of which nothing may get into a result, and what those of
/// C and D do, which nothing may write.
const READ_GAP: f64 = f64::NAN;
const WRITTEN_GAP: f64 = -13.0;
/// Leading dimensions of B, C and D, in the smallest steps that loads allow beyond the columns.
const STEPS: [usize; 3] = [1, 3, 2];

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
        let dense = packed.program.task.precision.dense();
        with_scalar!(dense, D => self.judge_ending_in::<D>(packed, ending))
    }

    fn judge_ending_in<D: Scalar>(
        &self,
        packed: &Arc<Packed>,
        ending: &Ending,
    ) -> Result<Judgement, EmulatorError> {
        let task = packed.program.task;
        let EndingSources { plain: plain_kernel, all: sources } = sources(packed, ending)?;
        log::debug!("trying the ending of {}", plain_kernel.source.kernel);
        let telling = telling(task.operation);
        let nothing = Epilogue { text: String::new(), user: Vec::new() };
        // Without an epilogue, the plain kernel itself says what is right.
        let epilogue = ending.epilogue().unwrap_or(&nothing);
        let parsed: Vec<_> = sources.par_iter().map(|source| self.parsed(source)).collect();
        let mut kernels = Vec::new();
        for kernel in parsed {
            match kernel? {
                Ok(kernel) => kernels.push(kernel),
                Err(reason) => return Ok(Judgement::unlaunched(not_compiled(reason))),
            }
        }
        let [plain, fused, others @ ..] = kernels.as_slice() else {
            return Ok(Judgement::unlaunched(not_compiled("a kernel is missing".to_owned())));
        };
        let prepared = Prepared::of_kernel(&plain_kernel);
        let mut trial = Trial::<D>::new(&prepared, packed, epilogue);
        if let Some(alignment) = ending.strided(task.operation) {
            let step = match alignment {
                Alignment::Vectors => row_alignment(task) / size_of::<D>(),
                Alignment::Elements => 1,
            };
            trial.leading = Some(STEPS.map(|steps| trial.columns + steps * step));
        }
        let teller = Trial::<D>::new(&prepared, packed, &telling);
        let mut random = fastrand::Rng::with_seed(FIRST_INPUT);
        let mut counters = None;
        let judged = |outcome, findings, counters| Judgement {
            outcome,
            findings,
            counters,
            ptx_instructions: Some(fused.code.len()),
            remark: None,
        };
        let mut verified = Verification { checks: 0, worst_ratio: 0.0 };
        for (seed, (alpha, beta, in_place)) in (0..).zip(LAUNCHES) {
            let given = trial.given(alpha, beta, in_place, &mut random);
            let how = Options { seed, budget: BUDGET, ..Options::default() };
            let mut ratio = || {
                let rounded = trial.plain(plain, &given, &how)?;
                let product = match (task.precision.rounds_results(), others.last()) {
                    (true, Some(kernel)) => teller.told(kernel, &given, &rounded, &how)?,
                    _ => rounded.iter().map(|n| D::Accumulator::from_f64(n.to_f64())).collect(),
                };
                let expected = match (ending.epilogue(), others.first()) {
                    (Some(_), Some(unfused)) => trial.unfused(unfused, &given, &product, &how)?,
                    _ => trial.in_place(plain, &given, &how)?,
                };
                let (found, counted) = trial.fused(fused, &given, &how)?;
                counters.get_or_insert(counted);
                trial.compare(&given, &product, &expected, &found)
            };
            match ratio() {
                Ok(ratio) => verified.worst_ratio = verified.worst_ratio.max(ratio),
                Err(outcome) => return Ok(judged(outcome, Vec::new(), counters)),
            }
            verified.checks += 1;
        }
        Ok(judged(Outcome::Verified(verified), Vec::new(), counters))
    }

    /// The kernel of a source; an `Err` within is the source's fault.
    pub(super) fn parsed(
        &self,
        source: &CudaSource,
    ) -> Result<Result<Kernel, String>, EmulatorError> {
        let ptx = match self.compile((&source.text, &source.kernel), &ptx_options(), None)? {
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

/// How what is emulated is compiled.
pub(super) fn ptx_options() -> CompileOptions {
    CompileOptions { line_information: true, ..CompileOptions::generated() }
}

/// What an ending is judged by.
pub(super) struct EndingSources {
    /// The kernel of the program without it.
    pub(super) plain: kernel::Kernel<Cubin>,
    /// All that is compiled: the plain kernel, that with the ending, the epilogue by itself where
    /// there is one, and the kernel with the [telling] one where results are rounded.
    pub(super) all: Vec<CudaSource>,
}

pub(super) fn sources(packed: &Arc<Packed>, ending: &Ending) -> Result<EndingSources, EmitError> {
    let task = packed.program.task;
    let written = |ending: Option<&Ending>| {
        kernel::Kernel::<Cubin>::written(Arc::clone(packed), ending, Duration::ZERO)
    };
    let plain = written(None)?;
    let mut all = vec![plain.source.clone(), written(Some(ending))?.source];
    if let Some(epilogue) = ending.epilogue() {
        all.push(epilogue.unfused(task)?);
    }
    if task.precision.rounds_results() {
        all.push(written(Some(&Ending::Fused(telling(task.operation))))?.source);
    }
    Ok(EndingSources { plain, all })
}

/// An epilogue that stores what it is given.
fn telling(operation: Operation) -> Epilogue {
    let array = UserArray { element: UserElement::Scalar, extent: Extent::Result };
    let products = UserField { name: "products".to_owned(), kind: UserKind::Output(array) };
    Epilogue::of_body("return user.products[at] = product;", vec![products], operation)
}

/// What kernels are tried with.
struct Trial<'a, D: Scalar> {
    prepared: &'a Prepared,
    packed: &'a Packed,
    epilogue: &'a Epilogue,
    /// Columns of the dense operands.
    columns: usize,
    /// Leading dimensions of B, C and D, where the kernel takes any.
    leading: Option<[usize; 3]>,
    zero: D::Accumulator,
}

/// What a launch is given.
struct Given<D: Scalar> {
    alpha: D::Accumulator,
    beta: D::Accumulator,
    in_place: bool,
    input: Vec<D>,
    old: Vec<D>,
    /// For each of the caller's values: one number, or the elements of an array that is read.
    user: Vec<Vec<f64>>,
}

/// What a launch left: the result, and the caller's arrays that it writes, by their names.
struct Left {
    result: Vec<f64>,
    outputs: Vec<(String, Vec<f64>)>,
}

/// An array of the caller's that a launch writes.
struct UserOutput {
    name: String,
    buffer: BufferId,
    dtype: Dtype,
}

impl<'a, D: Scalar> Trial<'a, D> {
    fn new(prepared: &'a Prepared, packed: &'a Packed, epilogue: &'a Epilogue) -> Self {
        let columns = packed.program.task.operation.columns() as usize;
        let zero = D::Accumulator::from_f64(0.0);
        Self { prepared, packed, epilogue, columns, leading: None, zero }
    }

    fn given(&self, alpha: f64, beta: f64, in_place: bool, random: &mut fastrand::Rng) -> Given<D> {
        let mut numbers = |count: usize| -> Vec<D> {
            (0..count).map(|_| D::from_f64(2.0 * random.f64() - 1.0)).collect()
        };
        let Packed { rows, cols, .. } = *self.packed;
        let (input, old) = (numbers(cols * self.columns), numbers(rows * self.columns));
        let user = self.epilogue.user.iter().map(|field| {
            let count = match field.kind {
                UserKind::Number => 1,
                UserKind::Input(array) => array.extent.elements(rows, cols, self.columns),
                UserKind::Output(_) => 0,
            };
            numbers(count).into_iter().map(Scalar::to_f64).collect()
        });
        let user = user.collect();
        let number = D::Accumulator::from_f64;
        Given { alpha: number(alpha), beta: number(beta), in_place, input, old, user }
    }

    /// The product of the plain kernel.
    fn plain(&self, kernel: &Kernel, given: &Given<D>, how: &Options) -> Result<Vec<D>, Outcome> {
        let mut memory = Memory::new();
        let output = memory.uninitialised("y", size_of_val(given.old.as_slice()));
        let arguments = self.arguments(&mut memory, given, (&given.input, output), self.zero);
        self.launch(kernel, self.geometry(), arguments, &mut memory, how)?;
        Ok(bytemuck::pod_collect_to_vec(&memory.bytes(output)))
    }

    /// The product as a kernel with the [telling] epilogue has it, which is that of the plain one
    /// before it is rounded.
    fn told(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        rounded: &[D],
        how: &Options,
    ) -> Result<Vec<D::Accumulator>, Outcome> {
        let (left, _) = self.fused(kernel, given, how)?;
        let products = left.outputs.first().map_or(&[][..], |(_, products)| products);
        let differs = |(&exact, &rounded): (&f64, &D)| {
            let own = D::from_f64(exact);
            own.bits() != rounded.bits() && !(exact.is_nan() && rounded.to_f64().is_nan())
        };
        if products.len() != rounded.len() || products.iter().zip(rounded).any(differs) {
            let reason = "with an epilogue the kernel has another product than without".to_owned();
            return Err(Outcome::WrongResult { violation: Violation::Inexact, reason });
        }
        Ok(products.iter().map(|&product| D::Accumulator::from_f64(product)).collect())
    }

    /// What the plain kernel gives where the old operand is.
    fn in_place(&self, kernel: &Kernel, given: &Given<D>, how: &Options) -> Result<Left, Outcome> {
        let mut memory = Memory::new();
        let output = memory.writable("y", bytemuck::cast_slice(&given.old));
        let arguments = self.arguments(&mut memory, given, (&given.input, output), given.beta);
        self.launch(kernel, self.geometry(), arguments, &mut memory, how)?;
        Ok(left::<D>(&memory, output, &[]))
    }

    /// What the epilogue makes of a product.
    fn unfused(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        product: &[D::Accumulator],
        how: &Options,
    ) -> Result<Left, Outcome> {
        let elements = product.len() as u32;
        let mut memory = Memory::new();
        let product = memory.input("product", bytemuck::cast_slice(product));
        let (old, result) = self.vectors(&mut memory, given);
        let (user, outputs) = self.user(&mut memory, given);
        let mut arguments = vec![
            Argument::Buffer(product),
            Argument::Buffer(old),
            Argument::Buffer(result),
            value(&given.beta),
            value(&elements),
        ];
        arguments.extend(user);
        let grid = elements.div_ceil(BLOCK).max(1);
        self.launch(kernel, Geometry::linear(grid, BLOCK), arguments, &mut memory, how)?;
        Ok(left::<D>(&memory, result, &outputs))
    }

    /// What the fused kernel gives, with its counters.
    fn fused(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        how: &Options,
    ) -> Result<(Left, super::Counters), Outcome> {
        if let Some(leading) = self.leading {
            return self.fused_between_gaps(kernel, given, leading, how);
        }
        let mut memory = Memory::new();
        let (old, result) = self.vectors(&mut memory, given);
        let (user, outputs) = self.user(&mut memory, given);
        let operands = (given.input.as_slice(), result);
        let mut arguments = self.arguments(&mut memory, given, operands, given.beta);
        arguments.push(Argument::Buffer(old));
        arguments.extend(user);
        let counters = self.launch(kernel, self.geometry(), arguments, &mut memory, how)?;
        Ok((left::<D>(&memory, result, &outputs), counters))
    }

    /// The same of a kernel whose dense operands have leading dimensions.
    fn fused_between_gaps(
        &self,
        kernel: &Kernel,
        given: &Given<D>,
        [ldb, ldc, ldd]: [usize; 3],
        how: &Options,
    ) -> Result<(Left, super::Counters), Outcome> {
        // A matrix in the place of another has its leading dimension.
        let ldd = if given.in_place { ldc } else { ldd };
        let rows = |leading| Rows { columns: self.columns, leading };
        let (read, written) = (D::from_f64(READ_GAP), D::from_f64(WRITTEN_GAP));
        let mut memory = Memory::new();
        let old = rows(ldc).spread(&given.old, written);
        let result = vec![read; given.old.len()];
        let result = rows(ldd).spread(&result, written);
        let old = match given.beta == self.zero {
            true => memory.uninitialised("C", size_of_val(old.as_slice())),
            false if given.in_place => memory.writable("C", bytemuck::cast_slice(&old)),
            false => memory.input("C", bytemuck::cast_slice(&old)),
        };
        let result = match given.in_place {
            true => old,
            false => memory.writable("D", bytemuck::cast_slice(&result)),
        };
        let (user, outputs) = self.user(&mut memory, given);
        let input = rows(ldb).spread(&given.input, read);
        let mut arguments = self.arguments(&mut memory, given, (&input, result), given.beta);
        arguments.push(Argument::Buffer(old));
        arguments.extend([ldb, ldc, ldd].map(|leading| value(&(leading as u32))));
        arguments.extend(user);
        let counters = self.launch(kernel, self.geometry(), arguments, &mut memory, how)?;
        let mut left = left::<D>(&memory, result, &outputs);
        let stored: Vec<D> = bytemuck::pod_collect_to_vec(&memory.bytes(result));
        let gathered = rows(ldd).gathered(&stored, written).ok_or_else(|| {
            let reason = "the kernel writes between the rows of D".to_owned();
            Outcome::WrongResult { violation: Violation::WroteOutside, reason }
        })?;
        left.result = gathered.into_iter().map(Scalar::to_f64).collect();
        Ok((left, counters))
    }

    /// The old operand, which is never written where β is 0, and the result.
    fn vectors(&self, memory: &mut Memory, given: &Given<D>) -> (BufferId, BufferId) {
        let bytes = size_of_val(given.old.as_slice());
        let old = match given.beta == self.zero {
            true => memory.uninitialised("y", bytes),
            false if given.in_place => memory.writable("y", bytemuck::cast_slice(&given.old)),
            false => memory.input("y", bytemuck::cast_slice(&given.old)),
        };
        (old, if given.in_place { old } else { memory.uninitialised("z", bytes) })
    }

    /// The caller's values as an argument, where there are any, and those of them that are written.
    fn user(&self, memory: &mut Memory, given: &Given<D>) -> (Option<Argument>, Vec<UserOutput>) {
        let mut outputs = Vec::new();
        let argument = user_argument(self.epilogue, D::DTYPE, |place, UserField { name, kind }| {
            // What is only written is given nothing, as by the [telling] epilogue.
            let elements = given.user.get(place).map_or(&[][..], Vec::as_slice);
            match kind {
                UserKind::Number => stored(D::DTYPE.accumulator(), elements),
                UserKind::Input(array) => {
                    let elements = stored(array.element.dtype(D::DTYPE), elements);
                    let buffer = memory.input(name, &elements);
                    memory.address(buffer).to_le_bytes().to_vec()
                }
                UserKind::Output(UserArray { element, extent }) => {
                    let dtype = element.dtype(D::DTYPE);
                    let Packed { rows, cols, .. } = *self.packed;
                    let elements = extent.elements(rows, cols, self.columns);
                    let buffer = memory.uninitialised(name, elements * dtype.size());
                    outputs.push(UserOutput { name: name.clone(), buffer, dtype });
                    memory.address(buffer).to_le_bytes().to_vec()
                }
            }
        });
        (argument, outputs)
    }

    /// The arguments of the plain kernel.
    fn arguments(
        &self,
        memory: &mut Memory,
        given: &Given<D>,
        (input, output): (&[D], BufferId),
        beta: D::Accumulator,
    ) -> Vec<Argument> {
        let Prepared { launch, arrays, names } = self.prepared;
        let parameters = launch.parameters.iter().zip(names);
        let argument = |(parameter, name): (&Parameter, &String)| match *parameter {
            Parameter::Input => Argument::Buffer(memory.input(name, bytemuck::cast_slice(input))),
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

    fn geometry(&self) -> Geometry {
        self.packed.geometry.into()
    }

    fn launch(
        &self,
        kernel: &Kernel,
        Geometry { grid, block, dynamic_shared }: Geometry,
        arguments: Vec<Argument>,
        memory: &mut Memory,
        how: &Options,
    ) -> Result<super::Counters, Outcome> {
        let launch = Launch { grid, block, dynamic_shared, arguments };
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
        product: &[D::Accumulator],
        expected: &Left,
        found: &Left,
    ) -> Result<f64, Outcome> {
        let roundoff = D::Accumulator::DTYPE.unit_roundoff() * ROUNDINGS;
        // What is stored in fewer bits may have been rounded to either side.
        let stored = match D::DTYPE == D::Accumulator::DTYPE {
            true => 0.0,
            false => 2.0 * D::DTYPE.unit_roundoff(),
        };
        let largest = given.user.iter().flatten().map(|n| n.abs()).fold(1.0, f64::max);
        let mut worst: f64 = 0.0;
        let all = [("z", &expected.result, &found.result)].into_iter();
        let outputs = expected.outputs.iter().zip(&found.outputs);
        let outputs = outputs.map(|((name, one), (_, other))| (name.as_str(), one, other));
        for (name, expected, found) in all.chain(outputs) {
            // An array has an element for each of the result's, or for each row.
            let products = (product.len() / expected.len().max(1)).max(1);
            let within = product.chunks(products);
            for (element, ((&one, &other), into)) in
                expected.iter().zip(found).zip(within).enumerate()
            {
                let same = one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan());
                let into = into.iter().map(|product| product.to_f64().abs()).fold(0.0, f64::max);
                let sizes = one.abs() + other.abs();
                let allowed = roundoff * (sizes + into + largest) + stored * sizes;
                let distance = if same { 0.0 } else { (one - other).abs() / allowed };
                if distance.is_nan() || distance > 1.0 {
                    let elements_of_row = (expected.len() / self.packed.rows.max(1)).max(1);
                    let row = element / elements_of_row;
                    let column = match elements_of_row {
                        1 => String::new(),
                        count => format!(", column {},", element % count),
                    };
                    let reason = format!(
                        "the kernel gives {other:e} in row {row}{column} of {name}, and by itself its \
                         epilogue gives {one:e}"
                    );
                    return Err(Outcome::WrongResult { violation: Violation::Inexact, reason });
                }
                worst = worst.max(distance);
            }
        }
        Ok(worst)
    }
}

/// The caller's values as an argument, where there are any; `member` says the bytes of each, which
/// are an address where it is an array.
pub(super) fn user_argument(
    epilogue: &Epilogue,
    dense: Dtype,
    mut member: impl FnMut(usize, &UserField) -> Vec<u8>,
) -> Option<Argument> {
    let mut bytes = vec![0_u8; epilogue.user_bytes(dense)];
    let fields = epilogue.user.iter().zip(epilogue.user_offsets(dense));
    for (place, (field, offset)) in fields.enumerate() {
        let member = member(place, field);
        if let Some(place) = bytes.get_mut(offset..offset + member.len()) {
            place.copy_from_slice(&member);
        }
    }
    (!bytes.is_empty()).then_some(Argument::Value(bytes))
}

fn left<D: Scalar>(memory: &Memory, result: BufferId, outputs: &[UserOutput]) -> Left {
    let outputs = outputs.iter().map(|UserOutput { name, buffer, dtype }| {
        (name.clone(), numbers(*dtype, &memory.bytes(*buffer)))
    });
    Left { result: numbers(D::DTYPE, &memory.bytes(result)), outputs: outputs.collect() }
}

/// Numbers of a type as they lie in memory.
fn numbers(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    fn read<T: Scalar>(bytes: &[u8]) -> Vec<f64> {
        bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(Scalar::to_f64).collect()
    }
    with_scalar!(dtype, T => read::<T>(bytes))
}

/// Numbers as a type lies in memory.
pub(super) fn stored(dtype: Dtype, numbers: &[f64]) -> Vec<u8> {
    fn written<T: Scalar>(numbers: &[f64]) -> Vec<u8> {
        let numbers: Vec<T> = numbers.iter().map(|&number| T::from_f64(number)).collect();
        bytemuck::cast_slice(&numbers).to_vec()
    }
    with_scalar!(dtype, T => written::<T>(numbers))
}

pub(super) fn value(number: &impl bytemuck::NoUninit) -> Argument {
    Argument::Value(bytemuck::bytes_of(number).to_vec())
}
