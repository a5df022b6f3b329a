//! CUDA kernels from anywhere: over plain CSR, or over the packed arrays of a program.
//!
//! ```text
//! source ─► source::kernels ─► parameters ─┐
//! launch comment or JSON ─► LaunchRule ────┼─► RawKernel ─► Prepared, for a matrix
//! program comment, if there is one ────────┘
//! ```
//!
//! The kernel computes y = α·A·x + β·y or C = α·A·B + β·C, with row-major B and C; without α and β
//! among its parameters, they are 1 and 0. It is one function like
//!
//! ```cuda
//! // launch: spmm<<<ceil(num_rows / 256), 256>>>(
//! //     row_offsets, columns, values, B, C, num_rows, dense_cols)
//! __global__ void spmm(const int* indptr, const int* indices, const float* data,
//!                      const float* in, float* out, int m, int n)
//! ```
//!
//! The [`launch`] says what each parameter is given. Where it lists no arguments the parameters
//! have to bear standard names, which are a convention, not a guess: `row_offsets`, `columns`,
//! `values`, `x` or `B`, `y` or `C`, `alpha`, `beta`, `num_rows`, `num_cols`, `nnz`, `dense_cols`;
//! besides, `row_ptr`, `col_idx`, `dense_matrix` and `output`, because with these names kernels are
//! commonly asked of language models, and what those answer is judged as it comes. There is no
//! workspace: nothing would watch what a foreign kernel keeps there from launch to launch.
//!
//! What `gen` writes is read back: the program in its comment says how the matrix is packed, and
//! the names in its launch are those of the packed arrays. It may be edited, unless it takes
//! workspace.

mod definitions;
mod expression;
mod headers;
pub mod launch;
mod listing;
mod namespaces;
mod packed;
mod parameter;
mod raw_error;
mod rewritten;
mod role;
mod rule_error;
mod source;
mod template;
mod words;

use std::collections::BTreeSet;

use sparserl_core::language::Program;
use sparserl_core::layout::ArrayData;
use sparserl_core::matrix::{CsrView, OffsetsView, Scalar};
use sparserl_core::task::{Dtype, Precision, Task};

use crate::candidate::executable::{self as given, Executable, Prepared};
use crate::compile::nvrtc::{Cubin, has_include};
use definitions::Definitions;
use expression::Size;
pub use expression::Sizes;
pub(crate) use headers::GRID_BARRIER;
use launch::LaunchRule;
pub(crate) use listing::Listing;
pub(crate) use rewritten::Rewritten;

use packed::PackedArguments;
pub use parameter::{Element, Kind, ParameterError};
use parameter::{Parameter, read_parameters};
pub use raw_error::RawError;
use role::Role;
pub use rule_error::RuleError;
use rule_error::{listed, shortened};
use source::{Code, Function};
use template::Instance;

/// A kernel's source, what its parameters are given, and how it is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct RawKernel {
    kernel: String,
    /// What it takes from headers, to be compiled before it.
    declared: String,
    /// As it was written, with `extern "C"` where it was missing, and without known headers.
    written: String,
    /// What to compile: the same under the name of its file, if it has one.
    source: String,
    parameters: Vec<Parameter>,
    arguments: Arguments,
    launch: LaunchRule,
    /// The line of its comment that says so.
    launch_line: Option<u32>,
    /// The numbers in its source, but for those that are in many.
    integers: BTreeSet<u64>,
}

/// Whether a number is in many sources, whatever a matrix's sizes are: lanes of a warp, threads of
/// a block.
fn is_common(number: u64) -> bool {
    number <= 32 || number <= 1024 && number.is_power_of_two()
}

/// A source behind what it takes from headers, as the lines of a file of some name.
fn under_name(declared: &str, file: &str, written: &str) -> String {
    let quoted = file.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{declared}#line 1 \"{quoted}\"\n{written}")
}

/// What parameters are given, in their order.
#[derive(Clone, Debug, PartialEq)]
enum Arguments {
    /// Plain arrays.
    Csr(Vec<Role>),
    /// A program's arrays and sizes.
    Packed(Box<PackedArguments>),
}

impl RawKernel {
    /// Reads a source. How to launch it is said by `sidecar`, JSON from a file beside it, or else
    /// by its `// launch:` comment.
    ///
    /// # Errors
    /// When the kernel, its parameters or its launch are not clear.
    pub fn parse(source: &str, sidecar: Option<&str>) -> Result<Self, RawError> {
        let code = Code::read(source);
        let functions = code.kernels();
        let definitions = Definitions::of(&code);
        let mut launch_line = None;
        let launch = match sidecar {
            Some(json) => Some(LaunchRule::from_json(json)?),
            None => {
                let of_comment = |(text, line): (String, u32)| {
                    launch_line = Some(line);
                    LaunchRule::from_comment(&definitions.in_launch(&text, &functions))
                };
                code.launch_comment()?.map(of_comment).transpose()?
            }
        };
        let named = launch.as_ref().and_then(LaunchRule::kernel);
        let function = choose(&functions, named)?;
        let given = launch.as_ref().and_then(LaunchRule::template);
        let instance = Instance::of(function, given, &functions)?;
        let parameters = read_parameters(&definitions.declarations(function, instance.as_ref()))?;
        let advice =
            |words: &[&str]| LaunchRule::advice(launch.as_ref(), &function.qualified(), words);
        let said = launch.as_ref().and_then(LaunchRule::arguments);
        let arguments = match code.program_comment() {
            Some(program) => {
                let program = Program::parse(&program)?;
                Arguments::Packed(Box::new(PackedArguments::new(program, &parameters, said)?))
            }
            None => Arguments::Csr(role::roles(&parameters, said, advice)?),
        };
        let Some(launch) = launch else {
            let line = match &arguments {
                Arguments::Csr(roles) => {
                    let words: Vec<String> = roles.iter().map(Role::name).collect();
                    advice(&words.iter().map(String::as_str).collect::<Vec<_>>())
                }
                Arguments::Packed(_) => {
                    format!("`// launch: {}<<<blocks, 256>>>`", function.qualified())
                }
            };
            return Err(RuleError::None { line }.into());
        };
        if matches!(arguments, Arguments::Csr(_)) && launch.depends_on(Size::Blocks) {
            return Err(RuleError::Blocks.into());
        }
        let linked = match &instance {
            Some(instance) => instance.written(&code, &functions, &parameters)?,
            None => code.with_c_linkage(&functions, function),
        };
        let written = headers::without(&linked);
        let declared = headers::sized_integers(&code.code) + &headers::declarations(&linked);
        // Those of what is compiled: of a template's arguments too, of headers none.
        let compiled = Code::read(&written);
        let integers = compiled.integers().filter(|&number| !is_common(number)).collect();
        let kernel = function.name.to_owned();
        let source = match declared.is_empty() {
            true => written.clone(),
            false => under_name(&declared, &format!("{kernel}.cu"), &written),
        };
        Ok(Self {
            kernel,
            declared,
            written,
            source,
            parameters,
            arguments,
            launch,
            launch_line,
            integers,
        })
    }

    /// Names the file of the kernel's source for compiler and emulator; without, it is `KERNEL.cu`.
    #[must_use]
    pub fn named(self, file: &str) -> Self {
        let file: String = file.chars().filter(|c| !c.is_control()).collect();
        let source = under_name(&self.declared, &file, &self.written);
        Self { source, ..self }
    }

    /// The line of the source, from 1, that says how it is launched, where one does.
    #[must_use]
    pub fn launch_line(&self) -> Option<u32> {
        self.launch_line
    }

    /// The kernel's name.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// What to compile: the source, with `extern "C"` (of a template, with a kernel that calls it)
    /// and integers of `<cstdint>` where they were missing, behind what it uses of `<cuda_fp16.h>`
    /// and `<cuda_bf16.h>`, and without CUDA's and C's own headers.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The source, line by line, as the lines that a compiler names are numbered.
    pub(crate) fn listing(&self) -> Listing<'_> {
        Listing::of(&self.written)
    }

    /// Whether it includes files of its own or of a library, which no compiler here reads: it may
    /// be right where they are.
    #[must_use]
    pub fn includes_files(&self) -> bool {
        has_include(&self.source)
    }

    /// Whether a compiler refuses it, for this reason, by what the declarations of CUDA's headers
    /// that it is given here do not have, those of the host's functions among them: it may be right
    /// with the headers themselves.
    #[must_use]
    pub fn lacks_declarations(&self, reason: &str) -> bool {
        headers::are_at_fault(&self.declared, reason)
    }

    /// Names of its parameters, in their order; empty where one has none.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// What it computes, where its comment has a program.
    #[must_use]
    pub fn task(&self) -> Option<Task> {
        match &self.arguments {
            Arguments::Csr(_) => None,
            Arguments::Packed(arguments) => Some(arguments.program().task),
        }
    }

    /// Whether it is told how many rows the matrix has, and how many columns, by an argument or by
    /// a grid of as many blocks: it may rely on what it is not told. Neither is told to what takes
    /// the arrays of a program, nor, as far as anybody knows, to what has a size of the matrix as a
    /// number in its source.
    pub(crate) fn is_told<T: Scalar>(&self, matrix: CsrView<'_, T>) -> [bool; 2] {
        let Arguments::Csr(roles) = &self.arguments else { return [false; 2] };
        let sizes = [matrix.rows(), matrix.cols(), matrix.nnz()].map(|size| size as u64);
        if sizes.iter().any(|size| self.integers.contains(size)) {
            return [false; 2];
        }
        [Size::NumRows, Size::NumCols].map(|size| {
            let is_of = |role: &Role| match role {
                Role::Number(expression) => expression.depends_on(size),
                _ => false,
            };
            self.launch.has_blocks_of(size) || roles.iter().any(is_of)
        })
    }

    /// The kernel for a matrix; `cubin` was compiled from [`source`](Self::source).
    ///
    /// # Errors
    /// When the element type is another than the kernel's, when a size does not fit an `int`, when
    /// its program does not fit the matrix, or when the launch is none for this matrix.
    pub fn executable<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        task: Task,
        cubin: Cubin,
    ) -> Result<Executable, RawError> {
        Ok(self.prepare(matrix, task)?.executable(cubin))
    }

    /// How the kernel is launched for a matrix.
    ///
    /// # Errors
    /// As [`executable`](Self::executable).
    pub fn prepare<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        task: Task,
    ) -> Result<Prepared, RawError> {
        if task.precision.matrix() != T::DTYPE {
            return Err(RawError::Matrix { task: task.precision, found: T::DTYPE });
        }
        let sizes = Sizes {
            num_rows: matrix.rows() as u64,
            num_cols: matrix.cols() as u64,
            nnz: matrix.nnz() as u64,
            dense_cols: task.operation.columns().into(),
            blocks: None,
        };
        let prepared = match &self.arguments {
            Arguments::Csr(roles) => self.over_csr(roles, matrix, task.precision, sizes)?,
            Arguments::Packed(arguments) => {
                let geometry = |blocks| self.launch.geometry(Sizes { blocks, ..sizes });
                arguments.prepare(matrix, task, &self.parameters, &self.written, geometry)?
            }
        };
        Ok(prepared.of_source(self.source()))
    }

    fn over_csr<T: Scalar>(
        &self,
        roles: &[Role],
        matrix: CsrView<'_, T>,
        precision: Precision,
        sizes: Sizes,
    ) -> Result<Prepared, RawError> {
        self.check_element_types(roles, precision)?;
        let geometry = self.launch.geometry(sizes)?;
        // Indices and offsets are read as `int`, whichever sizes are asked for.
        for (what, count) in [
            ("rows", sizes.num_rows),
            ("columns", sizes.num_cols),
            ("nonzeros", sizes.nnz),
            ("columns of the dense operand", sizes.dense_cols),
        ] {
            as_int(what, count)?;
        }
        let mut arrays = Vec::new();
        let mut array = |data: ArrayData| {
            arrays.push(data);
            given::Parameter::Array(arrays.len() - 1)
        };
        let mut parameters = Vec::new();
        for (parameter, role) in self.parameters.iter().zip(roles) {
            let what = match role {
                Role::RowOffsets if is_wide(parameter) => {
                    array(ArrayData::U64(wide(matrix.offsets()).into()))
                }
                Role::RowOffsets => array(ArrayData::U32(narrow(matrix.offsets()).into())),
                Role::Columns if is_wide(parameter) => {
                    array(ArrayData::U64(matrix.columns().iter().map(|&c| c.into()).collect()))
                }
                Role::Columns => array(ArrayData::U32(matrix.columns().to_vec().into())),
                Role::Values => array(values(matrix.values())),
                Role::Input => given::Parameter::Input,
                Role::Output => given::Parameter::Output,
                Role::Alpha => given::Parameter::Alpha,
                Role::Beta => given::Parameter::Beta,
                Role::Number(expression) => {
                    let value = expression.value(sizes).ok_or_else(|| RawError::NoNumber {
                        expression: shortened(&expression.to_string()),
                    })?;
                    match parameter.kind {
                        Kind::Number(Element::Integer { bytes: 8 }) => given::Parameter::U64(value),
                        _ => given::Parameter::I32(as_int("as an argument", value)?),
                    }
                }
            };
            let name = if parameter.name.is_empty() { role.name() } else { parameter.name.clone() };
            parameters.push((name, what));
        }
        Ok(Prepared::foreign(geometry, parameters, arrays))
    }

    /// All parameters with floating-point elements have those of the task.
    fn check_element_types(&self, roles: &[Role], task: Precision) -> Result<(), RawError> {
        for (index, (parameter, role)) in self.parameters.iter().zip(roles).enumerate() {
            let expected = match role {
                Role::Values => task.matrix(),
                Role::Alpha | Role::Beta => task.accumulator(),
                _ => task.dense(),
            };
            if let Some(found) = parameter.kind.dtype().filter(|found| *found != expected) {
                let parameter = parameter.quoted(index);
                return Err(RawError::ElementType { parameter, found, task });
            }
            let kind = parameter.kind;
            let is_bits = kind == Kind::Array(Element::Integer { bytes: 2 });
            if is_bits && expected.size() != 2 {
                let (parameter, role) = (parameter.quoted(index), role.name());
                return Err(ParameterError::Unsuitable { parameter, kind, role }.into());
            }
        }
        Ok(())
    }
}

/// The kernel of that name, which may be qualified by namespaces, or the only one.
fn choose<'a, 'f>(
    functions: &'f [Function<'a>],
    named: Option<&str>,
) -> Result<&'f Function<'a>, RawError> {
    let mut seen = BTreeSet::new();
    let mut names: Vec<String> = functions.iter().map(Function::qualified).collect();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        return Err(RawError::NoKernel);
    }
    let all = listed(&names);
    // Who is in a namespace need not name it.
    let is_named = |name: &&String| {
        named.is_none_or(|named| {
            let named = named.strip_prefix("::").unwrap_or(named);
            name.strip_suffix(named).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        })
    };
    let exact = names.iter().find(|name| named == Some(name.as_str()));
    let mut among = names.iter().filter(is_named);
    let name = match (exact, among.next(), among.next()) {
        (Some(name), ..) | (None, Some(name), None) => name,
        (None, Some(_), Some(_)) => return Err(RawError::Several { names: all }),
        (None, None, _) => {
            let kernel = shortened(named.unwrap_or_default());
            return Err(RawError::NoSuchKernel { kernel, names: all });
        }
    };
    let same: Vec<_> = functions.iter().filter(|one| one.qualified() == *name).collect();
    let defined = same.iter().find(|function| function.is_defined).or(same.first());
    let Some(&function) = defined else { return Err(RawError::NoKernel) };
    let differs =
        |other: &&Function<'_>| other.is_defined && other.parameters != function.parameters;
    if same.iter().copied().any(|other| differs(&other)) {
        return Err(RawError::Redefined { kernel: name.clone() });
    }
    Ok(function)
}

fn as_int(what: &'static str, count: u64) -> Result<i32, RawError> {
    i32::try_from(count).map_err(|_| RawError::TooLarge { what, count })
}

/// Whether a parameter takes integers of 64 bits.
fn is_wide(parameter: &Parameter) -> bool {
    matches!(parameter.kind, Kind::Array(Element::Integer { bytes: 8 }))
}

fn wide(offsets: OffsetsView<'_>) -> Vec<u64> {
    match offsets {
        OffsetsView::U32(offsets) => offsets.iter().map(|&offset| offset.into()).collect(),
        OffsetsView::U64(offsets) => offsets.to_vec(),
    }
}

/// Offsets of fewer than 2³¹ nonzeros.
fn narrow(offsets: OffsetsView<'_>) -> Vec<u32> {
    match offsets {
        OffsetsView::U32(offsets) => offsets.to_vec(),
        OffsetsView::U64(offsets) => offsets.iter().map(|&offset| offset as u32).collect(),
    }
}

fn values<T: Scalar>(values: &[T]) -> ArrayData {
    match T::DTYPE {
        Dtype::F32 => ArrayData::F32(bytemuck::cast_slice(values).to_vec().into()),
        Dtype::F64 => ArrayData::F64(bytemuck::cast_slice(values).to_vec().into()),
        Dtype::F16 => ArrayData::F16(bytemuck::cast_slice(values).to_vec().into()),
        Dtype::BF16 => ArrayData::BF16(bytemuck::cast_slice(values).to_vec().into()),
    }
}

#[cfg(test)]
mod tests;
