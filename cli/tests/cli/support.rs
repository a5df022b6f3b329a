//! Running the program in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// The matrices of `tests/matrices`.
pub(crate) const MATRICES: [&str; 4] =
    ["poisson2d.mtx", "beam.mtx", "rmat10.mtx.gz", "pruned.smtx"];

/// A program that any matrix of fewer than 65,536 columns can have.
pub(crate) const PROGRAM: &str = "sparserl 3\nspmv f32\nblock 256\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4\n";

/// The number of more devices than any machine has.
pub(crate) const NO_DEVICE: &str = "--device 4000";

pub(crate) fn matrix(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    folder.join(name).to_str().unwrap().to_owned()
}

/// A folder to run in, with a cubin cache beside it.
pub(crate) struct Place {
    folder: TempDir,
    cache: TempDir,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), cache: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sparserl-cli"));
        command
            .current_dir(self.folder.path())
            .env("SPARSERL_CACHE_DIR", self.cache.path())
            .env_remove("ORT_DYLIB_PATH")
            .args(arguments.split_whitespace());
        // Cargo sets it relative to the workspace, but tests run in the crate's folder.
        if let Some(folder) = std::env::var_os("SPARSERL_NVRTC") {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            command.env("SPARSERL_NVRTC", workspace.join(folder));
        }
        command
    }

    /// Under a limit of the shell's, such as `-v 1048576`.
    #[cfg(unix)]
    pub(crate) fn limited(&self, limit: &str, arguments: &str) -> Command {
        let program = self.command(arguments);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(program.get_program()).args(program.get_args());
        let set = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        shell.current_dir(self.folder.path()).envs(set);
        shell
    }

    /// With only an empty folder to look for NVRTC in; what the machine has installed stays.
    pub(crate) fn command_without_nvrtc(&self, arguments: &str) -> Command {
        fs::create_dir_all(self.path("nothing")).unwrap();
        let mut command = self.command(arguments);
        command.env("SPARSERL_NVRTC", self.path("nothing"));
        for variable in ["VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"] {
            command.env_remove(variable);
        }
        // Neither nvcc nor Python.
        command.env("PATH", self.path("nothing"));
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Run {
        run(&mut self.command(arguments))
    }

    /// Runs what must succeed without a word on standard error.
    pub(crate) fn succeed(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr, "", "{arguments}");
        run.stdout
    }

    /// Runs what cannot be done, which must give one line on standard error; gives that line.
    pub(crate) fn fail(&self, arguments: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(3), "{arguments}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{arguments}");
        assert!(run.stderr.starts_with("error: "), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{arguments}: {}", run.stderr);
        run.stderr.trim_end().to_owned()
    }

    /// Names of all files in the cubin cache, hidden ones included.
    pub(crate) fn kept(&self) -> Vec<String> {
        let folders = fs::read_dir(self.cache.path()).unwrap();
        let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).expect(name)
    }

    /// Sorted names in a folder, hidden ones included; `""` is the place itself.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).expect(folder);
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
