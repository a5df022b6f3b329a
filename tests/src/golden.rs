//! The programs of `tests/golden`, each beside the CUDA source that it gives.
//!
//! A case is a file `NAME.skl`. Its first line says which matrix the program is for,
//! `# matrix: DESCRIPTION` (see [`crate::matrices`]), and the second may be `# sizes: constants`,
//! for a kernel of the sizes of this matrix alone; beside it lies `NAME.snap`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use sparserl_core::codegen::{self, Argument, ArgumentKind, CudaSource, Ending};
use sparserl_core::language::Program;
use sparserl_core::layout;
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::with_scalar;

use crate::matrices;

/// A golden program.
#[derive(Clone, Debug)]
pub struct Golden {
    /// Name of its files, without extension.
    pub name: String,
    /// Description of its matrix.
    pub matrix: String,
    /// The program.
    pub program: Program,
    /// Whether the kernel is for the sizes of the matrix alone.
    pub is_special: bool,
}

/// The folder of golden programs.
#[must_use]
pub fn folder() -> PathBuf {
    crate::root().join("tests/golden")
}

/// All golden programs, by name.
///
/// # Errors
/// When a file cannot be read, or is not of the form above.
pub fn load() -> Result<Vec<Golden>> {
    let folder = folder();
    let files = fs::read_dir(&folder)
        .with_context(|| format!("{} (is {} set?)", folder.display(), crate::ROOT_VARIABLE))?;
    let paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    let mut paths: Vec<_> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "skl")).collect();
    paths.sort();
    ensure!(!paths.is_empty(), "no programs in {}", folder.display());
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            read(name, &fs::read_to_string(&path)?).with_context(|| path.display().to_string())
        })
        .collect()
}

fn read(name: String, text: &str) -> Result<Golden> {
    let matrix = text.lines().next().and_then(|line| line.strip_prefix("# matrix: "));
    let matrix = matrix.context("the first line is not `# matrix: DESCRIPTION`")?.to_owned();
    let is_special = text.lines().nth(1) == Some("# sizes: constants");
    Ok(Golden { name, matrix, program: Program::parse(text)?, is_special })
}

impl Golden {
    /// The matrix. `T` must be the element type of the program's task.
    ///
    /// # Errors
    /// When the description is not one.
    pub fn build<T: Scalar>(&self) -> Result<Csr<T>> {
        matrices::build(&self.matrix)
    }

    /// The CUDA source.
    ///
    /// # Errors
    /// When the program does not fit its matrix.
    pub fn emit(&self) -> Result<CudaSource> {
        Ok(self.emit_with_arguments()?.0)
    }

    /// The kernel of the program that ends otherwise, for its matrix.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_ending(&self, ending: &Ending) -> Result<CudaSource> {
        fn emit<T: Scalar>(golden: &Golden, ending: &Ending) -> Result<CudaSource> {
            let packed = layout::pack(golden.build::<T>()?.view(), &golden.program)?;
            Ok(codegen::emit_ending(&packed.program, &packed.signature(), ending)?)
        }
        with_scalar!(self.program.task.precision.matrix(), T => emit::<T>(self, ending))
            .with_context(|| format!("golden program {}", self.name))
    }

    /// What the generator writes anew for each program: header, mappings and kernel, with the names
    /// of the library's definitions in place of their text, and the sizes that its matrix has.
    ///
    /// # Errors
    /// When the program does not fit its matrix.
    pub fn excerpt(&self) -> Result<String> {
        let (source, arguments) = self.emit_with_arguments()?;
        let CudaSource { text, kernel, constants, .. } = source;
        let (_, hash) = kernel.rsplit_once('_').context("no hash")?;
        let opening = format!("namespace sparserl_{hash} {{\n");
        let (header, code) = text.split_once(&opening).context("no namespace")?;
        let first = "// Mapping: ";
        let (library, code) = code.split_once(first).context("no first part")?;
        let openings = ["struct ", "using ", "constexpr ", "__device__ "];
        let is_opening = |line: &&str| openings.iter().any(|word| line.starts_with(word));
        let defined = |line: &str| {
            let name = match line.split_once('(') {
                Some((before, _)) if !line.starts_with("struct") => before,
                _ => {
                    line.split(" = ").next().and_then(|l| l.split(" {").next()).unwrap_or_default()
                }
            };
            name.rsplit(' ').next().unwrap_or_default().to_owned()
        };
        let names: Vec<String> = library.lines().filter(is_opening).map(defined).collect();
        let sizes = arguments.iter().filter_map(|argument| match argument.kind {
            ArgumentKind::Size(size) => Some(format!("{} = {size}", argument.name)),
            _ => None,
        });
        let constants = constants.iter().map(|size| format!("{} is {}", size.name, size.value));
        let sizes = sizes.chain(constants).collect::<Vec<_>>().join("\n");
        let library = names.join(", ");
        let text = format!("{header}{opening}\n[{library}]\n\n{first}{code}\n{sizes}\n");
        // The hash follows every change of the library.
        Ok(text.replace(hash, "HASH"))
    }

    fn emit_with_arguments(&self) -> Result<(CudaSource, Vec<Argument>)> {
        fn emit<T: Scalar>(golden: &Golden) -> Result<(CudaSource, Vec<Argument>)> {
            let packed = layout::pack(golden.build::<T>()?.view(), &golden.program)?;
            let source = match golden.is_special {
                false => codegen::emit(&packed.program, &packed.signature())?,
                true => codegen::emit_for(&packed)?,
            };
            let arguments = source.launch(&packed)?.arguments;
            Ok((source, arguments))
        }
        with_scalar!(self.program.task.precision.matrix(), T => emit::<T>(self))
            .with_context(|| format!("golden program {}", self.name))
    }
}
