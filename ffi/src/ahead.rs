//! Compiling what plans begin with before there is a matrix: all of plain CSR.
//!
//! A source depends on its program, on how it ends, and on whether 32 bits number the entries of
//! the matrix; sizes are arguments, and nothing else of a matrix gets into it. So there are few for
//! given options, and they are those that `make` writes: programs come from the list that it
//! chooses from, endings from the recipe that it follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use sparserl_core::codegen::CudaSource;
use sparserl_core::language::Program;
use sparserl_core::layout::{ArrayData, Packed, pack};
use sparserl_core::matrix::{Csr, Offsets, Scalar};
use sparserl_core::task::Dtype;
use sparserl_core::with_scalar;
use sparserl_gpu::compile::cache::Origin;
use sparserl_gpu::compile::nvrtc::CompileOptions;
use sparserl_gpu::compile::pool::CompileRequest;

use crate::code::Recipe;
use crate::context::Context;
use crate::epilogue::Epilogues;
use crate::op::Op;
use crate::options::{DenseForm, PlanOptions};
use crate::plain::all_plain_csr;
use crate::plan::task;
use crate::status::{Failure, Status};
use crate::trial::{epilogue_failure, misfit, try_ahead};
use crate::{copies, scatter};

/// Kernels to compile, by their sources: whatever is written twice is compiled once.
type Sources = BTreeMap<String, Kernel>;

/// The kernel of a source.
struct Kernel {
    name: String,
    /// The side whose epilogue is fused into it, if it has one.
    fused: Option<Op>,
}

/// Compiles every kernel that plans with these options can begin with, for matrices of a type, into
/// the cache folder, and tries the options' epilogues in them. Says how many kernels there are.
pub(crate) fn compile_ahead(
    context: &Context,
    dtype: Dtype,
    options: &PlanOptions,
) -> Result<usize, Failure> {
    if !context.keeps_kernels() {
        let text = "there is no folder to keep kernels in: set SPARSERL_OPTION_CACHE_FOLDER";
        return Err(Failure::new(Status::File, text));
    }
    with_scalar!(dtype, T => of_type::<T>(context, options))
}

fn of_type<T: Scalar>(context: &Context, options: &PlanOptions) -> Result<usize, Failure> {
    let task = task(options, T::DTYPE);
    let epilogues = Epilogues::of(options, task.operation)?;
    let programs: Vec<Program> = all_plain_csr(task).collect();
    let mut sources = Sources::new();
    let dense = options.dense;
    for program in &programs {
        for packed in packings::<T>(program)?.map(Arc::new) {
            for (op, epilogue) in epilogues.distinct() {
                let recipe = Recipe { context, epilogue, dense, origins: None, memory_limit: None };
                let written = recipe.written(&packed)?.sources();
                let fused = epilogue.map(|_| op);
                sources.extend(written.map(|source| with_kernel(source, fused)));
            }
        }
    }
    if let (DenseForm::ColumnMajor, Some(columns)) = (dense, options.columns) {
        let copies = copies::sources(task, columns).into_iter();
        sources.extend(copies.map(|source| with_kernel(source, None)));
    }
    if options.values_variable {
        let (text, kernel) = scatter::source(T::DTYPE);
        sources.insert(text, Kernel { name: kernel.to_owned(), fused: None });
    }
    let count = sources.len();
    sources.into_par_iter().try_for_each(|(text, kernel)| {
        context.check_open()?;
        keep(context, &text, &kernel)
    })?;
    for (op, epilogue) in epilogues.distinct() {
        let Some(epilogue) = epilogue else { continue };
        programs.par_iter().try_for_each(|program| {
            context.check_open()?;
            try_ahead::<T>(context, program, epilogue).map_err(|failure| op.naming_side(failure))
        })?;
    }
    Ok(count)
}

/// The packings of a program that differ in what its sources depend on: that of a matrix of one
/// entry, and that of one whose entries are too many for 32 bits, as far as sources go by it.
fn packings<T: Scalar>(program: &Program) -> Result<[Packed; 2], Failure> {
    let (offsets, values) = (Offsets::U64(vec![0, 1]), vec![T::from_f64(1.0)]);
    let matrix: Csr<T> = Csr::new(1, 1, offsets, vec![0], values).map_err(Failure::internal)?;
    let narrow = pack(matrix.view(), program).map_err(|error| misfit(&error))?;
    let mut wide = narrow.clone();
    for part in &mut wide.parts {
        // Numbers of entries, and of entries and rows together, are as wide as this needs.
        part.nnz = u32::MAX as usize;
        let offsets = part.arrays.iter_mut().filter(|array| array.name == "row_offsets");
        for array in offsets {
            if let ArrayData::U32(narrow) = &array.data {
                array.data = ArrayData::U64(narrow.iter().map(|&offset| offset.into()).collect());
            }
        }
    }
    Ok([narrow, wide])
}

/// The text of a source, and its kernel.
fn with_kernel(source: CudaSource, fused: Option<Op>) -> (String, Kernel) {
    (source.text, Kernel { name: source.kernel, fused })
}

/// Compiles a kernel into the cache folder, unless it is there.
fn keep(context: &Context, text: &str, Kernel { name, fused }: &Kernel) -> Result<(), Failure> {
    let options = CompileOptions::generated();
    let compiler = &context.compiler;
    let request = CompileRequest::new(text, name, compiler.target(), &options);
    match compiler.pool().compile(request) {
        Ok(fetched) => match fetched.origin {
            Origin::Cache | Origin::Compiled => Ok(()),
            Origin::NotKept(error) => Err(Failure::new(Status::File, error)),
        },
        Err(error) if !error.is_sources_fault() => Err(Failure::new(Status::NoCompiler, error)),
        Err(error) => Err(match fused {
            Some(op) => op.naming_side(epilogue_failure(&error.to_string())),
            None => Failure::internal(error),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use sparserl_core::codegen::ArgumentKind;
    use sparserl_core::kernel::Kernel;
    use sparserl_core::layout::ElementType;
    use sparserl_core::matrix::generate;
    use sparserl_core::task::Task;

    use super::*;

    fn written(packed: Packed) -> Kernel<()> {
        Kernel::written(Arc::new(packed), None, Duration::ZERO).unwrap()
    }

    #[test]
    fn each_program_has_a_source_for_32_and_one_for_64_bits_whatever_the_matrix() {
        let matrices = [
            generate::hyper_sparse(900, 700, 30, 1),
            generate::one_dense_row(500, 5_000, 1),
            generate::stencil5(30, 30),
        ];
        for task in ["spmv f64", "spmm 8 f64 variable", "spmm 3 f64"] {
            let task: Task = task.parse().unwrap();
            let programs: Vec<_> = all_plain_csr(task).collect();
            assert!(programs.len() >= 14, "{task}: {}", programs.len());
            let mut sources = HashSet::new();
            for program in &programs {
                let [narrow, wide] = packings::<f64>(program).unwrap().map(written);
                for matrix in &matrices {
                    let own = written(pack(matrix.view(), program).unwrap());
                    assert_eq!(own.source.text, narrow.source.text, "{program}");
                }
                let is_wide = |kernel: &Kernel<()>| {
                    kernel.launch.arguments.iter().any(|argument| {
                        let is_matrix = matches!(argument.kind, ArgumentKind::Matrix);
                        let is_size = matches!(argument.kind, ArgumentKind::Size(_));
                        (is_matrix || is_size) && argument.element == ElementType::U64
                    })
                };
                assert!(!is_wide(&narrow) && is_wide(&wide), "{program}");
                sources.extend([narrow.source.text, wide.source.text]);
            }
            assert_eq!(sources.len(), 2 * programs.len(), "{task}");
        }
    }
}
