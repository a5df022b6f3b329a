//! A plan as one file.
//!
//! It holds programs and machine code, and no matrix: whoever loads it has the matrix, and it is
//! packed anew. A line that says what it is, a line of JSON, machine code, a checksum.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sparserl_core::codegen::{Epilogue, UserField};
use sparserl_core::kernel::Kernel;
use sparserl_core::language::{LANGUAGE_VERSION, Program, grammar_hash};
use sparserl_core::layout::pack;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::regular_file;
use sparserl_core::task::{Operation, Task, Values};
use sparserl_gpu::compile::cache::{decode, encode};
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::store::whole_file::WholeFile;

use crate::code::{Code, Compiled, Recipe};
use crate::context::Context;
use crate::copies::{copies_bytes, limit_left};
use crate::kernel::{Known, PlanKernel};
use crate::matrix::{Matrix, with_view};
use crate::op::Op;
use crate::options::{DenseForm, PlanOptions};
use crate::plan::Plan;
use crate::side::{Side, entries, origins};
use crate::status::{Failure, Status};
use crate::verbose;

/// What a file begins with; the number changes with the meaning of what follows.
const MAGIC: &str = "sparserl plan file 4\n";
/// What those of all versions begin with.
const ANY_MAGIC: &str = "sparserl plan file ";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    language: u32,
    grammar: u64,
    architecture: String,
    pattern: String,
    task: Task,
    expected_calls: u64,
    dense: DenseForm,
    sides: Vec<SideHeader>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EpilogueText {
    text: String,
    /// Declarations as callers write them.
    user: String,
}

impl EpilogueText {
    fn of(epilogue: &Epilogue) -> Self {
        Self { text: epilogue.text.clone(), user: epilogue.declarations() }
    }

    fn parse(self) -> Option<Epilogue> {
        let user = UserField::parse_all(&self.user).ok()?;
        Some(Epilogue { text: self.text, user })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SideHeader {
    program: String,
    epilogue: Option<EpilogueText>,
    known: Known,
    /// Bytes of the plain kernel's code, 0 where there is none, of those for leading dimensions,
    /// and of the other's.
    code: Vec<usize>,
}

impl Plan {
    /// Writes the plan, once nothing is searched for any more. The file appears whole or not at
    /// all.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        self.progress.wait();
        let failed = |error: io::Error| {
            Failure::new(
                Status::File,
                format_args!("{}: cannot be written: {error}", path.display()),
            )
        };
        let (mut sides, mut code) = (Vec::new(), Vec::new());
        for side in self.sides() {
            let kernel = side.best();
            let Code { plain, strided, ending } = &kernel.code;
            let encoded = |code: &Compiled| encode(&code.cubin).map_err(failed);
            let mut own = vec![plain.as_ref().map_or(Ok(Vec::new()), encoded)?];
            for code in strided.iter().chain([ending]) {
                own.push(encoded(code)?);
            }
            sides.push(SideHeader {
                program: kernel.packed.program.to_string(),
                epilogue: side.epilogue.as_ref().map(EpilogueText::of),
                known: kernel.known(),
                code: own.iter().map(Vec::len).collect(),
            });
            code.extend(own);
        }
        let header = Header {
            language: LANGUAGE_VERSION,
            grammar: grammar_hash(),
            architecture: self.context.target.architecture.to_string(),
            pattern: self.pattern.hash().to_owned(),
            task: self.task,
            expected_calls: self.options.expected_calls,
            dense: self.options.dense,
            sides,
        };
        let header = serde_json::to_string(&header).map_err(|error| failed(error.into()))?;
        let mut bytes = format!("{MAGIC}{header}\n").into_bytes();
        bytes.extend(code.concat());
        bytes.extend(blake3::hash(&bytes).as_bytes());
        let write = || {
            let mut file = WholeFile::begin(path)?;
            file.write_all(&bytes)?;
            file.finish()
        };
        write().map_err(failed)
    }

    /// Reads a plan for a matrix, with what `given` says of memory and pointers: files do not.
    pub(crate) fn load(
        context: &Arc<Context>,
        matrix: &Matrix,
        path: &Path,
        given: &PlanOptions,
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        let shown = path.display();
        let bytes = regular_file::read(path, u64::MAX).map_err(|error| {
            Failure::new(Status::File, format_args!("{shown}: cannot be read: {error}"))
        })?;
        let (header, code) = parse(&bytes)
            .map_err(|why| Failure::new(Status::File, format_args!("{shown}: {why}")))?;
        let mismatch =
            |what: String| Failure::new(Status::Mismatch, format_args!("{shown}: {what}"));
        let architecture = context.target.architecture.to_string();
        if (header.language, header.grammar) != (LANGUAGE_VERSION, grammar_hash()) {
            return Err(mismatch("is a plan of another version: plan anew".to_owned()));
        }
        if header.architecture != architecture {
            let other = &header.architecture;
            return Err(mismatch(format!(
                "is a plan for {other}, and the context's is {architecture}"
            )));
        }
        let (other, own) = (header.task.precision.matrix(), matrix.entries.dtype());
        if other != own {
            return Err(mismatch(format!("is a plan for {other}, and the matrix holds {own}")));
        }
        if header.pattern != matrix.pattern() {
            return Err(mismatch("is a plan for a matrix with another pattern".to_owned()));
        }
        let damaged = || Failure::new(Status::File, format_args!("{shown}: is damaged"));
        let options = PlanOptions {
            expected_calls: header.expected_calls,
            values_variable: header.task.values == Values::Variable,
            columns: match header.task.operation {
                Operation::SpMV => None,
                Operation::SpMM { columns } => Some(columns),
            },
            transpose_too: header.sides.len() > 1,
            dense: header.dense,
            memory_limit: given.memory_limit,
            check_pointers: given.check_pointers,
            ..PlanOptions::default()
        };
        let size = (matrix.entries.rows(), matrix.entries.cols());
        let copies = copies_bytes(options.dense, header.task, size);
        let mut memory_limit = limit_left(options.memory_limit, copies)?;
        let mut rest = code;
        let mut sides = Vec::new();
        for (side, op) in header.sides.into_iter().zip([Op::None, Op::Transpose]) {
            let mut cubins = Vec::new();
            for length in side.code {
                let (own, others) = rest.split_at_checked(length).ok_or_else(damaged)?;
                rest = others;
                cubins.push(if length == 0 {
                    None
                } else {
                    Some(decode(own).ok_or_else(damaged)?)
                });
            }
            let program = Program::parse(&side.program).map_err(|_| damaged())?;
            let epilogue = side.epilogue.map(|text| text.parse().ok_or_else(damaged));
            let epilogue = epilogue.transpose()?;
            let origins = options.values_variable.then(|| origins(matrix, op));
            let recipe = Recipe {
                context,
                epilogue: epilogue.as_ref(),
                dense: options.dense,
                origins,
                memory_limit,
            };
            let ending = cubins.pop().flatten().ok_or_else(damaged)?;
            let mut cubins = cubins.into_iter();
            let plain = cubins.next().flatten();
            let strided = cubins.collect::<Option<_>>().ok_or_else(damaged)?;
            let cubins = Cubins { plain, strided, ending };
            let kernel = with_view!(
                entries(matrix, op),
                view => restore(&recipe, view, &program, cubins, side.known)
            );
            let kernel = kernel.map_err(|Failure { status, text }| {
                Failure::new(status, format_args!("{shown}: {text}"))
            })?;
            // The one may take what the other leaves.
            memory_limit = memory_limit.map(|limit| limit.saturating_sub(kernel.device_bytes()));
            sides.push(Side::new(kernel, epilogue));
        }
        if let (true, Ok(gpu)) = (options.values_variable, &context.gpu) {
            context.scatter.prepare(&context.compiler, &gpu.device, matrix.entries.dtype())?;
        }
        let mut sides = sides.into_iter();
        let forward = sides.next().ok_or_else(damaged)?;
        verbose::note();
        Self::new(context, matrix, options, forward, sides.next(), start)
    }
}

/// Header and code of a file; else what is wrong with it.
fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), &'static str> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or_else(|| {
        match bytes.starts_with(ANY_MAGIC.as_bytes()) {
            true => "is a plan of another version: plan anew",
            false => "is no plan of SparseRL",
        }
    })?;
    let (body, checksum) = bytes.split_last_chunk::<{ blake3::OUT_LEN }>().ok_or("is damaged")?;
    if blake3::hash(body) != *checksum {
        return Err("is damaged");
    }
    let rest = &rest[..rest.len() - checksum.len()];
    let end = rest.iter().position(|&byte| byte == b'\n').ok_or("is damaged")?;
    let (header, code) = rest.split_at(end);
    let header =
        serde_json::from_slice(header).map_err(|_| "is a plan of another version: plan anew")?;
    Ok((header, &code[1..]))
}

/// Machine code of a kernel, as in [`Code`].
struct Cubins {
    plain: Option<Cubin>,
    strided: Vec<Cubin>,
    ending: Cubin,
}

/// The kernel of a program whose code is there.
fn restore<T: Scalar>(
    recipe: &Recipe<'_>,
    matrix: CsrView<'_, T>,
    program: &Program,
    Cubins { plain, strided, ending }: Cubins,
    known: Known,
) -> Result<PlanKernel, Failure> {
    let packed = pack(matrix, program).map_err(|error| {
        let text = format!(
            "the values do not fit the plan: {error}; plan anew, or make the plan \
                            with SPARSERL_OPTION_VALUES_VARIABLE = 1"
        );
        Failure::new(Status::Mismatch, text)
    })?;
    let packed = Arc::new(packed);
    let matching = |kernel: Kernel<Cubin>, cubin: Cubin| match kernel {
        Kernel { source, launch, .. } if cubin.kernel() == source.kernel => {
            Ok(Compiled { source, launch, cubin })
        }
        _ => Err(Failure::new(Status::Mismatch, "is a plan of another version: plan anew")),
    };
    let written = recipe.written(&packed)?;
    let ending = matching(written.ending, ending)?;
    let plain = written.plain.zip(plain).map(|(kernel, cubin)| matching(kernel, cubin));
    let (plain, kernels) = (plain.transpose()?, written.strided);
    if kernels.len() != strided.len() {
        return Err(Failure::new(Status::File, "is damaged"));
    }
    let strided = kernels.into_iter().zip(strided).map(|(kernel, cubin)| matching(kernel, cubin));
    let strided = strided.collect::<Result<_, _>>()?;
    recipe.restore(matrix, packed, Code { plain, ending, strided }, known)
}
