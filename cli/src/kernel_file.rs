//! Kernels in files: programs and CUDA sources.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{io, str};

use serde::{Deserialize, Serialize};
use sparserl_core::language::{Program, TextError};
use sparserl_core::regular_file;
use sparserl_core::task::Task;
use sparserl_gpu::candidate::raw::{RawError, RawKernel};

use crate::file_names;
use crate::output_folder::is_edited;

/// What a kernel is written in; the file's extension tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The kernel language: `.skl`.
    Program,
    /// CUDA over plain CSR, or over a program's packed arrays: `.cu`.
    Cuda,
}

impl Kind {
    /// Of a file with this name; absent for files that are no kernels.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(OsStr::to_str) {
            Some("skl") => Some(Self::Program),
            Some("cu") => Some(Self::Cuda),
            _ => None,
        }
    }
}

/// The files of a kernel, as they are.
#[derive(Debug)]
pub(crate) struct KernelFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    source: Vec<u8>,
    /// What the `.json` file beside a CUDA source holds.
    sidecar: Option<Vec<u8>>,
}

/// A kernel that can be judged.
#[derive(Debug)]
pub(crate) enum Kernel {
    Program(Program),
    Cuda(Box<RawKernel>),
}

/// A file that cannot be judged as a kernel. Where it lies is not said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelError {
    #[error("cannot read the file")]
    Read(#[from] io::Error),
    #[error("neither a program (.skl), CUDA (.cu) nor a folder that `gen` wrote")]
    Extension,
    #[error("the folder holds no kernel.cu; give the kernel's file")]
    Folder,
    #[error("the folder holds several kernels; give that of one, such as {0}/1")]
    Several(String),
    #[error("is longer than 64 MiB, which no compiler reads in time")]
    TooLong,
    #[error("is for {0} columns; expected at most {MOST_COLUMNS}")]
    Columns(u32),
    #[error("is not UTF-8 text, from byte {0} on")]
    NotText(usize),
    #[error("the .json file beside it is not UTF-8 text, from byte {0} on")]
    SidecarNotText(usize),
    #[error(transparent)]
    Program(#[from] TextError),
    #[error(transparent)]
    Cuda(#[from] RawError),
}

/// Columns of B and C, at most: more than they have in practice.
pub(crate) const MOST_COLUMNS: i64 = 65_536;
/// Bytes of a source, at most: compilers need a hundred times as much memory.
const MOST_TEXT: u64 = 64 << 20;

fn read_text(path: &Path) -> Result<Vec<u8>, KernelError> {
    regular_file::read(path, MOST_TEXT).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => KernelError::TooLong,
        _ => KernelError::Read(error),
    })
}

impl KernelFile {
    /// Reads the files of a kernel; the extension of `path` tells the kind. Of a folder that `gen`
    /// wrote it is the CUDA source, edited or not.
    ///
    /// # Errors
    /// When a file cannot be read, or the extension is no kernel's.
    pub(crate) fn read(path: PathBuf) -> Result<Self, KernelError> {
        let path = if path.is_dir() { in_folder(&path)? } else { path };
        let kind = Kind::of(&path).ok_or(KernelError::Extension)?;
        let source = read_text(&path)?;
        let sidecar = match kind {
            Kind::Program => None,
            Kind::Cuda => match read_text(&path.with_extension("json")) {
                Err(KernelError::Read(error)) if error.kind() == io::ErrorKind::NotFound => None,
                read => Some(read?),
            },
        };
        Ok(Self { path, kind, source, sidecar })
    }

    /// Reads the text.
    ///
    /// # Errors
    /// When it is no kernel.
    pub(crate) fn parse(&self) -> Result<Kernel, KernelError> {
        let text = str::from_utf8(&self.source)
            .map_err(|error| KernelError::NotText(error.valid_up_to()))?;
        // As some editors write it before all else.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let sidecar = self.sidecar.as_deref().map(str::from_utf8).transpose();
        let sidecar = sidecar.map_err(|error| KernelError::SidecarNotText(error.valid_up_to()))?;
        match self.kind {
            Kind::Program => {
                let program = Program::parse(text)?;
                match program.task.operation.columns() {
                    columns if i64::from(columns) > MOST_COLUMNS => {
                        Err(KernelError::Columns(columns))
                    }
                    _ => Ok(Kernel::Program(program)),
                }
            }
            Kind::Cuda => {
                let name = self.path.file_name().unwrap_or_default().to_string_lossy();
                Ok(Kernel::Cuda(Box::new(RawKernel::parse(text, sidecar)?.named(&name))))
            }
        }
    }

    /// Of all that it is made of, hexadecimal.
    pub(crate) fn blake3(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [Some(&self.source), self.sidecar.as_ref()].into_iter().flatten() {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The kernel in a folder.
fn in_folder(folder: &Path) -> Result<PathBuf, KernelError> {
    let source = folder.join(file_names::SOURCE);
    if source.exists() {
        return Ok(source);
    }
    Err(match folder.join(file_names::CANDIDATES).exists() {
        true => KernelError::Several(folder.display().to_string()),
        false => KernelError::Folder,
    })
}

/// Whether a CUDA source is what `gen` wrote for the program in the same folder.
pub(crate) fn is_generated(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(file_names::SOURCE))
        && [file_names::PROGRAM, file_names::PLAN]
            .iter()
            .all(|name| path.with_file_name(name).exists())
        && path.parent().is_none_or(|folder| !is_edited(folder))
}

impl Kernel {
    /// What it computes; absent for CUDA without a program, which does not say.
    pub(crate) fn task(&self) -> Option<Task> {
        match self {
            Self::Program(program) => Some(program.task),
            Self::Cuda(kernel) => kernel.task(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(files: &[(&str, &[u8])]) -> Result<KernelFile, KernelError> {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        KernelFile::read(folder.path().join(files[0].0))
    }

    fn error(files: &[(&str, &[u8])]) -> String {
        read(files).and_then(|file| file.parse()).unwrap_err().to_string()
    }

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cu");
        fs::File::create(&path).unwrap().set_len(MOST_TEXT + 1).unwrap();
        assert!(matches!(KernelFile::read(path), Err(KernelError::TooLong)));
    }

    #[test]
    fn what_is_no_kernel_is_told_apart() {
        assert_eq!(
            error(&[("a.txt", b"")]),
            "neither a program (.skl), CUDA (.cu) nor a folder that `gen` wrote"
        );
        assert_eq!(error(&[("a.skl", b"ab\xff")]), "is not UTF-8 text, from byte 2 on");
        assert!(error(&[("a.skl", b"sparserl 3\nspmv f8")]).starts_with("line 2: "));
        let wide = b"sparserl 3\nspmm 65537 f32\nblock 128\nkeep csr index=u32 values=plain cache=cached vector=1 lanes=1 unroll=1";
        assert_eq!(error(&[("a.skl", wide)]), "is for 65537 columns; expected at most 65536");
        let marked =
            "\u{feff}// launch: k<<<1, 64>>>(x, y)\n__global__ void k(const float* x, float* y) {}";
        assert!(read(&[("a.cu", marked.as_bytes())]).unwrap().parse().is_ok());
        assert_eq!(
            error(&[("a.cu", b""), ("a.json", b"\xff")]),
            "the .json file beside it is not UTF-8 text, from byte 0 on"
        );
    }

    #[test]
    fn the_hash_covers_source_and_sidecar() {
        let hash = |files: &[(&str, &[u8])]| read(files).unwrap().blake3();
        let hashes = [
            hash(&[("a.cu", b"xy")]),
            hash(&[("a.cu", b"xz")]),
            hash(&[("a.cu", b"x"), ("a.json", b"y")]),
            hash(&[("a.cu", b"xy"), ("a.json", b"")]),
        ];
        for (i, one) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(one));
        }
        assert_eq!(hash(&[("b.cu", b"xy"), ("other.json", b"y")]), hashes[0]);
    }
}
