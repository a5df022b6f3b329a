//! Finds the NVRTC libraries of this machine.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Nvrtc, NvrtcError};
use crate::Architecture;

/// Environment variable with the folders to look in first, separated as in `PATH`.
pub const SEARCH_VARIABLE: &str = "SPARSERL_NVRTC";

/// Names in the loader's search path, newest first.
const LOADER_NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Where NVIDIA's installer puts the toolkit, which is often not in the loader's search path.
const TOOLKIT_FOLDERS: [&str; 2] =
    ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"];

/// The NVRTC libraries found, newest first, one of each version.
#[derive(Debug)]
pub struct Compilers {
    found: Vec<Nvrtc>,
    rejected: Vec<Rejected>,
}

impl Compilers {
    /// Opens every `libnvrtc.so*` in the folders that [`SEARCH_VARIABLE`] names and one level below them, in the
    /// loader's search path, and in `/usr/local/cuda`. Of several with the same version the first in this order stays.
    ///
    /// # Errors
    /// When there is none, or none that works.
    pub fn discover() -> Result<Self, NoCompiler> {
        let searched = env::var_os(SEARCH_VARIABLE).unwrap_or_default();
        Self::in_folders(env::split_paths(&searched), true)
    }

    /// Like [`discover`](Self::discover), looking nowhere but in `folders` and one level below them.
    ///
    /// # Errors
    /// When there is none, or none that works.
    pub fn discover_in(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self, NoCompiler> {
        Self::in_folders(folders, false)
    }

    fn in_folders(
        folders: impl IntoIterator<Item = PathBuf>,
        system: bool,
    ) -> Result<Self, NoCompiler> {
        let mut compilers = Self { found: Vec::new(), rejected: Vec::new() };
        let mut seen = BTreeSet::new();
        for folder in folders.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
            compilers.open_folder(&folder, &mut seen);
            for below in subfolders(&folder) {
                compilers.open_folder(&below, &mut seen);
            }
        }
        if system {
            for name in LOADER_NAMES {
                // That the loader knows no such name is the usual case, no finding.
                if let Ok(nvrtc) = Nvrtc::open(name) {
                    compilers.add(nvrtc);
                }
            }
            for folder in TOOLKIT_FOLDERS {
                compilers.open_folder(Path::new(folder), &mut seen);
            }
        }
        compilers.found.sort_by_key(|nvrtc| std::cmp::Reverse(nvrtc.version()));
        if compilers.found.is_empty() {
            return Err(NoCompiler { rejected: compilers.rejected });
        }
        Ok(compilers)
    }

    fn open_folder(&mut self, folder: &Path, seen: &mut BTreeSet<PathBuf>) {
        for path in libraries(folder) {
            // `libnvrtc.so` and `libnvrtc.so.13` are usually links to one file.
            if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                continue;
            }
            match Nvrtc::open(&path) {
                Ok(nvrtc) => self.add(nvrtc),
                Err(error) => self.rejected.push(Rejected { path, error }),
            }
        }
    }

    fn add(&mut self, nvrtc: Nvrtc) {
        if self.found.iter().all(|known| known.version() != nvrtc.version()) {
            self.found.push(nvrtc);
        }
    }

    /// Every usable library, newest first.
    #[must_use]
    pub fn all(&self) -> &[Nvrtc] {
        &self.found
    }

    /// Files that are called like NVRTC but cannot be used.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// The newest that compiles for `architecture`.
    ///
    /// # Errors
    /// When none does. The error says which versions there are.
    pub fn for_arch(&self, architecture: Architecture) -> Result<&Nvrtc, UnsupportedByAll> {
        self.newest(architecture, u32::MAX)
    }

    /// The newest that compiles for `architecture` and whose cubins a driver of CUDA `driver_major` loads.
    ///
    /// A driver runs cubins of its own major CUDA version and of earlier ones.
    ///
    /// # Errors
    /// When none does. The error says which versions there are.
    pub fn for_device(
        &self,
        architecture: Architecture,
        driver_major: u32,
    ) -> Result<&Nvrtc, UnsupportedByAll> {
        self.newest(architecture, driver_major)
    }

    fn newest(&self, architecture: Architecture, major: u32) -> Result<&Nvrtc, UnsupportedByAll> {
        self.found
            .iter()
            .find(|n| n.version().major <= major && n.architectures().contains(&architecture))
            .ok_or_else(|| UnsupportedByAll {
                architecture,
                versions: self.found.iter().map(|n| n.version().to_string()).collect(),
            })
    }
}

/// The `libnvrtc.so*` in a folder, sorted; none when it cannot be read.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let is_nvrtc = |name: &OsStr| name.to_string_lossy().starts_with("libnvrtc.so");
    sorted(folder, |path| path.is_file() && path.file_name().is_some_and(is_nvrtc))
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    sorted(folder, Path::is_dir)
}

fn sorted(folder: &Path, keep: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| keep(path)).collect();
    paths.sort();
    paths
}

/// A file that is called like NVRTC but cannot be used.
#[derive(Debug)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub error: NvrtcError,
}

/// No usable NVRTC was found.
#[derive(Debug, thiserror::Error)]
#[error(
    "no usable CUDA compiler (libnvrtc) found{}: run `pip install nvidia-cuda-nvrtc-cu12` and set {SEARCH_VARIABLE} to \
     the folder of its libnvrtc.so.12",
    rejected.first().map(|r| format!(" ({})", r.error)).unwrap_or_default()
)]
pub struct NoCompiler {
    /// Files that are called like NVRTC but cannot be used.
    pub rejected: Vec<Rejected>,
}

/// None of the compilers found suits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no NVRTC for {architecture} that the driver can use: found {}; NVRTC 12.9 knows sm_70 to sm_120, 13.x sm_75 and later",
    versions.join(", ")
)]
pub struct UnsupportedByAll {
    /// The target.
    pub architecture: Architecture,
    /// The versions found.
    pub versions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_found_says_how_to_get_it_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let error = Compilers::discover_in([folder.path().to_path_buf()]).unwrap_err().to_string();
        assert!(error.contains("pip install") && error.contains(SEARCH_VARIABLE), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn unusable_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("12");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("libnvrtc.so.12"), "no library").unwrap();
        let error = Compilers::discover_in([folder.path().to_path_buf()]).unwrap_err();
        assert_eq!(error.rejected.len(), 1);
        assert!(error.to_string().contains("12/libnvrtc.so.12"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
