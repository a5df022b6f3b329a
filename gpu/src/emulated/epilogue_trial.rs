//! Judging an epilogue by itself: at the rows and columns of a matrix of any size, by their true
//! numbers, and for products of all magnitudes.
//!
//! A kernel with its epilogue is judged on few rows, which are counted from 0. What the text does
//! in other rows, or with other products than those of small numbers, is found here: the epilogue
//! is launched by itself at [places] all over the result. The caller's arrays have as many elements
//! as they have for the matrix, and take memory where they are written only.

use std::cell::Cell;
use std::time::Instant;

use sparserl_core::codegen::{Epilogue, Extent, UserArray, UserField, UserKind};
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Verification};
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::finding::FindingKind;
use sparserl_emulator::launch::{Argument, Launch, Options, Sample};
use sparserl_emulator::machine::run_sample;
use sparserl_emulator::memory::{BufferId, MOST_BYTES, Memory};

use super::endings::{stored, user_argument, value};
use super::named_columns::{number, words};
use super::places::{magnitudes, named, places};
use super::{EmulatorError, EmulatorEvaluator, Judgement, not_compiled, verdict};

/// Launches, each with other products at every place.
const LAUNCHES: usize = 12;
/// Threads of a block.
const BLOCK: usize = 128;
/// Instructions of warps after which a launch begins no more blocks: some hundredths of a second.
/// Few epilogues take as many for all places.
const INSTRUCTIONS: u64 = 400_000;
/// Instructions after which a warp is taken not to end: all of a block have as many before its
/// launch is given up.
const OF_A_WARP: u64 = INSTRUCTIONS / 5;
/// What lies this far apart in the numbers is given to neighbouring places, and to one place in
/// launches that follow each other.
const STEPS: [usize; 2] = [5, 3];

/// Where an epilogue is tried, and on what.
struct EpilogueTrial<'a> {
    epilogue: &'a Epilogue,
    dense: Dtype,
    /// Rows and columns of the matrix, and columns of its dense operands.
    size: (usize, usize, usize),
    places: Vec<(u32, u32)>,
    numbers: Vec<f64>,
    /// Whether some places were left untried, since that would have taken too long.
    is_part: Cell<bool>,
}

/// Whether a value has an element for each of the result's.
fn is_of_result(field: &UserField) -> bool {
    let (UserKind::Input(array) | UserKind::Output(array)) = field.kind else { return false };
    array.extent == Extent::Result
}

impl EmulatorEvaluator {
    /// Judges an epilogue at places all over the result of a matrix of so many rows and columns.
    /// What depends on what the caller's own numbers and arrays hold is not found.
    ///
    /// # Errors
    /// When nothing can be said about it. Whatever it does is in the judgement.
    pub fn judge_epilogue(
        &self,
        epilogue: &Epilogue,
        task: Task,
        (rows, cols): (usize, usize),
    ) -> Result<Judgement, EmulatorError> {
        let source = epilogue.at_places(task)?;
        log::debug!("trying the epilogue by itself: {}", source.kernel);
        let kernel = match self.parsed(&source)? {
            Ok(kernel) => kernel,
            Err(reason) => return Ok(Judgement::unlaunched(not_compiled(reason))),
        };
        let dense = task.precision.dense();
        let columns = task.operation.columns() as usize;
        // Arrays as large as the result have no room in the emulator for more rows.
        let most = MOST_BYTES / size_of::<f64>() / columns;
        let rows = if epilogue.user.iter().any(is_of_result) { rows.min(most) } else { rows };
        let named = named(&epilogue.text);
        let trial = EpilogueTrial {
            epilogue,
            dense,
            size: (rows, cols, columns),
            places: places(rows, columns, &named),
            numbers: magnitudes(&named),
            is_part: Cell::new(false),
        };
        let found = with_scalar!(dense.accumulator(), S => trial.judge::<S>(&kernel, self.until()));
        let verified = Verification { checks: LAUNCHES as u32, worst_ratio: 0.0 };
        let outcome = found.unwrap_or(Outcome::Verified(verified));
        let ptx_instructions = Some(kernel.code.len());
        let left = "it takes so many instructions that it was not tried at all places";
        let remark = trial.is_part.get().then(|| left.to_owned());
        Ok(Judgement { ptx_instructions, remark, ..Judgement::unlaunched(outcome) })
    }
}

impl EpilogueTrial<'_> {
    /// What is wrong with it, if anything is.
    fn judge<S: Scalar>(&self, kernel: &Kernel, until: Option<Instant>) -> Option<Outcome> {
        (0..LAUNCHES as u64).find_map(|launch| self.launched::<S>(kernel, launch, until))
    }

    fn launched<S: Scalar>(
        &self,
        kernel: &Kernel,
        number: u64,
        until: Option<Instant>,
    ) -> Option<Outcome> {
        let mut memory = Memory::new();
        let [products, olds] = self.numbers_of::<S>(number as usize);
        let (rows, columns): (Vec<u32>, Vec<u32>) = self.places.iter().copied().unzip();
        let read = |memory: &mut Memory, name, bytes| Argument::Buffer(memory.input(name, bytes));
        let mut arguments = vec![
            read(&mut memory, "rows", bytemuck::cast_slice(&rows)),
            read(&mut memory, "columns", bytemuck::cast_slice(&columns)),
            read(&mut memory, "product", bytemuck::cast_slice(&products)),
            read(&mut memory, "old", bytemuck::cast_slice(&olds)),
            Argument::Buffer(memory.uninitialised("result", size_of_val(products.as_slice()))),
            value(&(self.places.len() as u32)),
        ];
        arguments.extend(self.user(&mut memory, number));
        let grid = self.places.len().div_ceil(BLOCK).max(1) as u32;
        let launch = Launch {
            grid: [grid, 1, 1],
            block: [BLOCK as u32, 1, 1],
            dynamic_shared: 0,
            arguments,
        };
        let blocks = (0..grid).map(|block| [block, 0, 0]).collect();
        let sample = Sample { blocks, instructions: INSTRUCTIONS };
        let options = Options { budget: OF_A_WARP, until, ..Options::default() };
        let mut report = match run_sample(kernel, &launch, &mut memory, &options, &sample) {
            Ok(report) => report,
            Err(error) => return Some(Outcome::LaunchFailed { reason: error.to_string() }),
        };
        // What takes many instructions without an end in sight is tried at fewer places.
        let all = report.findings.len();
        report.findings.retain(|finding| finding.kind != FindingKind::GivenUp);
        self.is_part.set(self.is_part.get() || report.findings.len() < all);
        let shown = verdict::shown(&report.findings)?;
        let element = shown.block[0] as usize * BLOCK + shown.thread[0] as usize;
        let outcome = verdict::of_findings(&report.findings)?;
        let Some((&(row, column), (product, old))) =
            self.places.get(element).zip(products.get(element).zip(olds.get(element)))
        else {
            return Some(outcome);
        };
        let column = if self.size.2 == 1 { String::new() } else { format!(", column {column}") };
        let what = format!("in row {row}{column}, of the product {product:e} and old {old:e}");
        Some(verdict::on(&what, outcome))
    }

    /// Products and old elements of all places, in one of the launches: ordinary ones in the first.
    fn numbers_of<S: Scalar>(&self, launch: usize) -> [Vec<S>; 2] {
        let mut random = fastrand::Rng::with_seed(launch as u64);
        [0, 1].map(|operand| {
            let number = |place: usize| {
                let at = place * STEPS[operand] + launch * STEPS[1 - operand] + operand;
                match launch {
                    0 => 2.0 * random.f64() - 1.0,
                    _ => self.numbers.get(at % self.numbers.len()).copied().unwrap_or_default(),
                }
            };
            (0..self.places.len()).map(number).map(S::from_f64).collect()
        })
    }

    /// The caller's values.
    fn user(&self, memory: &mut Memory, launch: u64) -> Option<Argument> {
        let (rows, cols, columns) = self.size;
        let bytes_of = |UserArray { element, extent }: UserArray| {
            extent.elements(rows, cols, columns) * element.dtype(self.dense).size()
        };
        let address =
            |memory: &Memory, buffer: BufferId| memory.address(buffer).to_le_bytes().to_vec();
        user_argument(self.epilogue, self.dense, |_, UserField { name, kind }| match *kind {
            UserKind::Number => stored(self.dense.accumulator(), &[number::<f64>(launch)]),
            UserKind::Input(array) => {
                let bytes = bytes_of(array);
                let buffer = with_scalar!(array.element.dtype(self.dense), T => {
                    memory.computed(name, bytes, words(number::<T>))
                });
                address(memory, buffer)
            }
            UserKind::Output(array) => {
                let buffer = memory.uninitialised_pages(name, bytes_of(array));
                address(memory, buffer)
            }
        })
    }
}
