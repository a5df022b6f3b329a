//! The folders that NVRTC may be in.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etcetera::BaseStrategy;

/// Environment variable with the folders to look in first, separated as in `PATH`. Where it is set,
/// even to nothing, they take the place of folders called `.nvrtc` and of the user's data folder.
pub const SEARCH_VARIABLE: &str = "SPARSERL_NVRTC";

/// Names in the loader's search path, newest first.
#[cfg(not(windows))]
pub(super) const LOADER_NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
#[cfg(windows)]
pub(super) const LOADER_NAMES: [&str; 2] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];

/// Where NVIDIA's installer puts toolkits, which are often not in the loader's search path.
const TOOLKITS_PARENT: &str = "/usr/local";
/// Where distributions put theirs.
const OTHER_TOOLKITS: [&str; 2] = ["/opt/cuda", "/usr/lib/cuda"];

/// Where the loader looks without being told, and the file that tells it where else.
const LOADER_FOLDERS: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// The variables on which it depends what is found.
pub(crate) const SEARCH_VARIABLES: [&str; 14] = [
    SEARCH_VARIABLE,
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "HOME",
    "XDG_DATA_HOME",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONNOUSERSITE",
];

/// Variables with the folder of a toolkit.
const TOOLKIT_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];

/// Folders of a Python environment that hold NVRTC where NVIDIA's wheels are installed.
#[cfg(not(windows))]
const WHEEL_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];
#[cfg(windows)]
const WHEEL_FOLDERS: [&str; 2] = ["nvidia/cu13/bin/x86_64", "nvidia/cuda_nvrtc/bin"];

/// Variables with the folder of a Python environment.
const ENVIRONMENT_VARIABLES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// What a folder with NVRTC libraries is called that lies beside the program or above it, or where
/// the user works.
const LOCAL_FOLDER: &str = ".nvrtc";

/// Where a user's data folder has NVRTC libraries.
const DATA_FOLDER: &str = "sparserl/nvrtc";

/// Python's program.
const PYTHON: &str = "python3";
/// Prints where modules are looked for, a folder a line.
const PYTHON_PATH: &str = "import sys; print(*sys.path, sep='\\n')";

/// The folder among the user's data in which NVRTC libraries are looked for, one level below it
/// too: `sparserl/nvrtc` in `~/.local/share`, unless `XDG_DATA_HOME` names another folder. Absent
/// where the user has no home.
#[must_use]
pub fn data_folder() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join(DATA_FOLDER))
}

/// Paths on which it depends, beside the folders that are looked in themselves, what is found:
/// those that may come to be, and those of the loader.
pub(super) fn deciding() -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        starts().iter().flat_map(|start| above(start).collect::<Vec<_>>()).collect();
    paths.extend(env::current_exe());
    paths.extend(data_folder());
    for environment in ENVIRONMENT_VARIABLES.iter().filter_map(|name| set(name)) {
        paths.push(environment.join("lib"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = |folder: PathBuf| ["nvcc", PYTHON].map(|program| folder.join(program));
    paths.extend(env::split_paths(&path).flat_map(programs));
    paths.push(TOOLKITS_PARENT.into());
    let roots = toolkit_roots();
    paths.extend(roots.iter().flat_map(|root| [root.clone(), root.join("targets")]));
    let searched = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let searched = env::split_paths(&searched).chain(LOADER_FOLDERS.map(PathBuf::from));
    paths.extend(searched.flat_map(|folder| LOADER_NAMES.map(|name| folder.join(name))));
    paths.push(LOADER_CACHE.into());
    paths
}

/// The folders of this program and of the user's work.
fn starts() -> Vec<PathBuf> {
    let program = env::current_exe().ok();
    let program = program.as_deref().and_then(Path::parent).map(Path::to_owned);
    program.into_iter().chain(env::current_dir().ok()).collect()
}

/// Where NVRTC is without being asked for, nearest first.
pub(super) fn local() -> Vec<PathBuf> {
    let mut folders: Vec<_> = starts().iter().flat_map(|start| upwards(start)).collect();
    folders.extend(data_folder().filter(|folder| is_trusted(folder)));
    folders
}

/// The `.nvrtc` in a folder and in all above it, where nobody else can have put it.
fn upwards(start: &Path) -> Vec<PathBuf> {
    above(start).filter(|folder| is_trusted(folder)).collect()
}

/// The same, whoever put it there and whether it is there.
fn above(start: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    start.ancestors().map(|folder| folder.join(LOCAL_FOLDER))
}

/// Whether it is a folder of the user's or of root's.
#[cfg(unix)]
fn is_trusted(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let owners = [rustix::process::geteuid().as_raw(), 0];
    folder.metadata().is_ok_and(|found| found.is_dir() && owners.contains(&found.uid()))
}

/// Whether it is the user's data folder: whose others are is not known.
#[cfg(not(unix))]
fn is_trusted(folder: &Path) -> bool {
    data_folder().is_some_and(|own| own == folder) && folder.is_dir()
}

/// Where the active Python environments have it.
pub(super) fn environments() -> Vec<PathBuf> {
    let named = ENVIRONMENT_VARIABLES.iter().filter_map(|name| set(name));
    named.flat_map(|environment| environment_folders(&environment)).collect()
}

/// Where NVIDIA's wheels in a Python environment have their libraries, and where conda has them.
fn environment_folders(environment: &Path) -> Vec<PathBuf> {
    let is_python =
        |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3"));
    let pythons = sorted(&environment.join("lib"), is_python);
    let packages = pythons.into_iter().map(|python| python.join("site-packages"));
    packages
        .flat_map(|packages| wheel_folders(&packages))
        .chain(libraries_of(environment))
        .collect()
}

pub(super) fn wheel_folders(packages: &Path) -> [PathBuf; 2] {
    WHEEL_FOLDERS.map(|folder| packages.join(folder))
}

/// The folders in which Python looks for packages, which it takes a process to know.
pub(super) fn python_path() -> Vec<PathBuf> {
    let mut python = Command::new(PYTHON);
    python.args(["-c", PYTHON_PATH]).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(output) = python.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(PathBuf::from).filter(|folder| folder.is_absolute()).collect()
}

/// Where CUDA toolkits have it.
pub(super) fn toolkits() -> Vec<PathBuf> {
    toolkit_roots().iter().flat_map(|root| libraries_of(root)).collect()
}

/// The folders of CUDA toolkits.
fn toolkit_roots() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = TOOLKIT_VARIABLES.iter().filter_map(|name| set(name)).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let nvcc =
        env::split_paths(&path).map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file());
    let nvcc = nvcc.and_then(|nvcc| nvcc.canonicalize().ok());
    roots.extend(nvcc.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned));
    // With `cuda`, a link to one of the others, first.
    let is_cuda =
        |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cuda"));
    roots.extend(sorted(Path::new(TOOLKITS_PARENT), is_cuda));
    roots.extend(OTHER_TOOLKITS.map(PathBuf::from));
    roots
}

/// Where a toolkit has its libraries, for whichever machine.
fn libraries_of(root: &Path) -> Vec<PathBuf> {
    let targets = sorted(&root.join("targets"), Path::is_dir);
    let folders = targets.into_iter().map(|target| target.join("lib"));
    [root.join("lib64"), root.join("lib")].into_iter().chain(folders).collect()
}

/// The folder in a variable that is set.
fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(super) fn sorted(folder: &Path, keep: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| keep(path)).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_looked_for_from_a_place_upwards() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("target/release");
        fs::create_dir_all(below.join(LOCAL_FOLDER)).unwrap();
        fs::create_dir(folder.path().join(LOCAL_FOLDER)).unwrap();
        fs::write(folder.path().join("target").join(LOCAL_FOLDER), "no folder").unwrap();
        let found = upwards(&below);
        let expected = [below.join(LOCAL_FOLDER), folder.path().join(LOCAL_FOLDER)];
        assert_eq!(found[..2], expected);
    }

    #[test]
    fn wheels_and_condas_libraries_in_an_environment_are_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/python3.12")).unwrap();
        fs::create_dir_all(folder.path().join("lib/pkgconfig")).unwrap();
        let packages = folder.path().join("lib/python3.12/site-packages/nvidia");
        let expected = [
            packages.join("cu13/lib"),
            packages.join("cuda_nvrtc/lib"),
            folder.path().join("lib64"),
            folder.path().join("lib"),
        ];
        assert_eq!(environment_folders(folder.path()), expected);
    }

    #[test]
    fn a_toolkit_has_libraries_for_any_machine() {
        let folder = tempfile::tempdir().unwrap();
        for target in ["sbsa-linux", "x86_64-linux"] {
            fs::create_dir_all(folder.path().join("targets").join(target)).unwrap();
        }
        let expected = ["lib64", "lib", "targets/sbsa-linux/lib", "targets/x86_64-linux/lib"];
        assert_eq!(libraries_of(folder.path()), expected.map(|name| folder.path().join(name)));
    }
}
