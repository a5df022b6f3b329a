//! Finds the NVRTC libraries of this machine.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::places::{self, LOADER_NAMES, SEARCH_VARIABLE, sorted};
use super::{Looked, Nvrtc, NvrtcError};
use sparserl_core::target::Architecture;

/// What the names of its files begin with.
const NAMES: &str = if cfg!(windows) { "nvrtc64_" } else { "libnvrtc.so" };

/// The end of messages.
const HOW_TO_GET_IT: &str = "run `sparserl-cli setup` or `pip install nvidia-cuda-nvrtc-cu12`, or \
                             name its folder in SPARSERL_NVRTC";

/// The NVRTC libraries found, newest first, one of each version.
#[derive(Debug)]
pub struct Compilers {
    found: Vec<Nvrtc>,
    rejected: Vec<Rejected>,
    /// What was looked at; none where something else decided, too.
    looked: Option<Vec<Looked>>,
}

impl Compilers {
    /// Opens every `libnvrtc.so*` in the folders that [`SEARCH_VARIABLE`] names and one level below
    /// them; in the active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`), where NVIDIA's
    /// wheels and conda put it; in the loader's search path; and in CUDA toolkits: those that
    /// `CUDA_HOME` and `CUDA_PATH` name, that of the `nvcc` in `PATH`, and the usual
    /// `/usr/local/cuda*`. Where there is none in all of these, in NVIDIA's wheels in the folders
    /// that `python3` looks for packages in. Of several with the same version the first in this
    /// order stays.
    ///
    /// Where the variable is not set, the first folders are those called `.nvrtc` beside this
    /// program, in the folder that it was started in, and in all above them, then
    /// [`data_folder`](super::data_folder). Of these a folder that belongs to neither the user nor
    /// root is left out: a library runs code as soon as it is opened.
    ///
    /// # Errors
    /// When there is none, or none that works.
    pub fn discover() -> Result<Self, NoCompiler> {
        match env::var_os(SEARCH_VARIABLE) {
            Some(chosen) => Self::in_folders(env::split_paths(&chosen), true),
            None => Self::in_folders(places::local(), true),
        }
    }

    /// Like [`discover`](Self::discover), looking nowhere but in `folders` and one level below
    /// them.
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
        let looked = Some(Vec::new());
        let mut compilers = Self { found: Vec::new(), rejected: Vec::new(), looked };
        let mut seen = BTreeSet::new();
        for folder in folders.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
            compilers.open_folder(&folder, &mut seen);
            for below in subfolders(&folder) {
                compilers.open_folder(&below, &mut seen);
            }
        }
        if system {
            compilers.look(places::deciding());
            for folder in places::environments() {
                compilers.open_folder(&folder, &mut seen);
            }
            for name in LOADER_NAMES {
                // That the loader knows no such name is the usual case, no finding.
                if let Ok(nvrtc) = Nvrtc::open(name) {
                    match nvrtc.file() {
                        Some(file) => compilers.look([file]),
                        None => compilers.looked = None,
                    }
                    compilers.add(nvrtc);
                }
            }
            for folder in places::toolkits() {
                compilers.open_folder(&folder, &mut seen);
            }
            // Last, because it takes a process.
            if compilers.found.is_empty() {
                let packages = places::python_path();
                // Packages of others may be added to its path by files in these folders.
                compilers.look(packages.iter().cloned());
                for folder in packages.iter().flat_map(|folder| places::wheel_folders(folder)) {
                    compilers.open_folder(&folder, &mut seen);
                }
            }
        }
        compilers.found.sort_by_key(|nvrtc| std::cmp::Reverse(nvrtc.version()));
        if compilers.found.is_empty() {
            return Err(NoCompiler { rejected: compilers.rejected });
        }
        Ok(compilers)
    }

    /// Notes what decides what is found, before it is looked at.
    fn look(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            match &mut self.looked {
                // One that is no text could not be told to whoever asks.
                Some(looked) if path.to_str().is_some() => looked.push(Looked::at(path)),
                looked => *looked = None,
            }
        }
    }

    fn open_folder(&mut self, folder: &Path, seen: &mut BTreeSet<PathBuf>) {
        self.look([folder.to_owned()]);
        let libraries = libraries(folder);
        self.look(libraries.iter().cloned());
        for path in libraries {
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

    /// What was looked at to find them, if that is all that decides.
    pub(crate) fn looked(&self) -> Option<&[Looked]> {
        self.looked.as_deref()
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
        self.choose(architecture, None)
    }

    /// The newest that compiles for `architecture` and whose cubins a driver of CUDA `driver_major`
    /// loads.
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
        self.choose(architecture, Some(driver_major))
    }

    /// The compiler that is taken, whoever asks and whatever for: the newest that compiles for
    /// `architecture` and, where the driver of a device has to load the machine code, whose cubins
    /// a driver of CUDA `driver_major` loads.
    pub(crate) fn choose(
        &self,
        architecture: Architecture,
        driver_major: Option<u32>,
    ) -> Result<&Nvrtc, UnsupportedByAll> {
        let most = driver_major.unwrap_or(u32::MAX);
        self.found
            .iter()
            .find(|n| n.version().major <= most && n.architectures().contains(&architecture))
            .ok_or_else(|| UnsupportedByAll {
                architecture,
                driver_major,
                versions: self.found.iter().map(|n| n.version().to_string()).collect(),
            })
    }
}

/// The files of NVRTC in a folder, sorted; none when it cannot be read.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let is_nvrtc = |name: &OsStr| name.to_string_lossy().starts_with(NAMES);
    sorted(folder, |path| path.is_file() && path.file_name().is_some_and(is_nvrtc))
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    sorted(folder, Path::is_dir)
}

/// A file that is called like NVRTC but cannot be used.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Rejected {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub error: NvrtcError,
}

/// No usable NVRTC was found.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error(
    "no usable CUDA compiler (libnvrtc) found{}: {HOW_TO_GET_IT}",
    rejected.first().map(|r| format!(" ({})", r.error)).unwrap_or_default()
)]
pub struct NoCompiler {
    /// Files that are called like NVRTC but cannot be used.
    pub rejected: Vec<Rejected>,
}

/// None of the compilers found suits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error(
    "no NVRTC for {architecture}{}: found {}; NVRTC 12.9 knows sm_70 to sm_121 ({HOW_TO_GET_IT}), 13.x sm_75 and later",
    driver_major.map(|major| format!(" whose code a driver of CUDA {major} loads")).unwrap_or_default(),
    versions.join(", ")
)]
pub struct UnsupportedByAll {
    /// The target.
    pub architecture: Architecture,
    /// The driver's major CUDA version, where the code is for a device.
    pub driver_major: Option<u32>,
    /// The versions found.
    pub versions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nothing_found_says_how_to_get_it_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let error = Compilers::discover_in([folder.path().to_path_buf()]).unwrap_err().to_string();
        assert!(error.contains("pip install") && error.contains(SEARCH_VARIABLE), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn an_unknown_architecture_speaks_of_a_driver_only_where_there_is_one() {
        let error = |driver_major| {
            let versions = vec!["13.0".to_owned()];
            UnsupportedByAll { architecture: Architecture::Sm70, driver_major, versions }
                .to_string()
        };
        assert!(!error(None).contains("driver") && error(None).contains("pip install"));
        assert!(error(Some(12)).contains("a driver of CUDA 12"));
        assert!(HOW_TO_GET_IT.contains(SEARCH_VARIABLE));
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
