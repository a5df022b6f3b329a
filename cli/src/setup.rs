//! `setup`: installs NVRTC, which compiling and emulating need, into the user's data folder.
//!
//! It is NVIDIA's wheel, fetched by `python3 -m pip`, which knows proxies and mirrors, and checked
//! against the hash that is written down here.

mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use sparserl_gpu::compile::nvrtc::data_folder;

use crate::args::{CudaArg, SetupArgs};
use crate::interrupt::{self, Pending};
use crate::text;
use crate::{console, gpu, whole_file};

/// Names the version in an installed folder, as `tests/install-nvrtc.sh` does.
const VERSION_FILE: &str = "version";
/// What to do where that is missing.
const WITH_PIP: &str = "install python3 with pip (Debian's python3-pip)";

/// A version of NVRTC.
struct Release {
    /// Name on PyPI.
    package: &'static str,
    version: &'static str,
    /// What its folder is called.
    folder: &'static str,
    wheels: [Wheel; 2],
}

/// The wheel for one kind of machine.
struct Wheel {
    /// As [`std::env::consts::ARCH`] has it.
    machine: &'static str,
    sha256: &'static str,
}

/// The versions that `tests/install-nvrtc.sh` installs.
static RELEASES: [(CudaArg, Release); 2] = [
    (
        CudaArg::Cuda12,
        Release {
            package: "nvidia-cuda-nvrtc-cu12",
            version: "12.9.86",
            folder: "12",
            wheels: [
                Wheel {
                    machine: "x86_64",
                    sha256: "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4",
                },
                Wheel {
                    machine: "aarch64",
                    sha256: "096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead",
                },
            ],
        },
    ),
    (
        CudaArg::Cuda13,
        Release {
            package: "nvidia-cuda-nvrtc",
            version: "13.0.88",
            folder: "13",
            wheels: [
                Wheel {
                    machine: "x86_64",
                    sha256: "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
                },
                Wheel {
                    machine: "aarch64",
                    sha256: "d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b",
                },
            ],
        },
    ),
];

pub(crate) fn run(args: &SetupArgs) -> anyhow::Result<()> {
    let release = RELEASES.iter().find(|(cuda, _)| *cuda == args.cuda);
    let (_, release) = release.ok_or_else(|| anyhow!("there is no such version"))?;
    let machine = std::env::consts::ARCH;
    let wheel = release.wheels.iter().find(|wheel| wheel.machine == machine);
    let wheel = wheel.filter(|_| cfg!(target_os = "linux")).ok_or_else(|| {
        anyhow!("there is no NVRTC for {machine} and {}: it runs on Linux", std::env::consts::OS)
    })?;
    let data = data_folder().context("no folder to install into: set HOME or XDG_DATA_HOME")?;
    let target = data.join(release.folder);
    let shown = target.display();
    let is_installed = fs::read_to_string(target.join(VERSION_FILE))
        .is_ok_and(|version| version.trim() == release.version);
    if is_installed && !args.force {
        let found = Installed { nvrtc: release.version, folder: &target, is_new: false };
        return found.report(args);
    }

    let unfinished = Unfinished::begin(&data)?;
    let file = match &args.wheel {
        Some(file) => file.clone(),
        None => {
            if !args.quiet && !args.json {
                let Release { package, version, .. } = release;
                console::say(&format!("fetching {package} {version} (45 to 90 MB) with pip"));
            }
            fetch(release, unfinished.path())?
        }
    };
    let bytes =
        whole_file::read(&file).with_context(|| format!("{}: cannot read", file.display()))?;
    let at = || file.display().to_string();
    let installed = unfinished.path().join("nvrtc");
    wheel::check(&bytes, wheel.sha256).with_context(at)?;
    wheel::unpack(bytes, &installed).with_context(at)?;
    fs::write(installed.join(VERSION_FILE), format!("{}\n", release.version))
        .and_then(|()| put(&installed, &target))
        .with_context(|| format!("{shown}: cannot install"))?;
    drop(unfinished);
    // That it is of use here shows when it is opened, which is left to a process of its own.
    gpu::pool().with_context(|| format!("{shown}: installed, but it cannot be used"))?;
    Installed { nvrtc: release.version, folder: &target, is_new: true }.report(args)
}

/// What is there at the end; its serde form is the document of `--json`.
#[derive(Serialize)]
struct Installed<'a> {
    /// The version.
    nvrtc: &'static str,
    folder: &'a Path,
    /// Whether it was installed now.
    #[serde(rename = "new")]
    is_new: bool,
}

impl Installed<'_> {
    fn report(&self, args: &SetupArgs) -> anyhow::Result<()> {
        let Self { nvrtc, folder, is_new } = self;
        let folder = folder.display();
        if args.quiet {
            return Ok(());
        }
        console::print(&match is_new {
            _ if args.json => text::json(self)?,
            true => format!("installed NVRTC {nvrtc} into {folder}\n"),
            false => format!("NVRTC {nvrtc} is in {folder} already\n"),
        })
    }
}

/// Has pip fetch the wheel into a folder.
fn fetch(release: &Release, folder: &Path) -> anyhow::Result<PathBuf> {
    let Release { package, version, .. } = release;
    let place = folder.join("wheel");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--no-input", "--only-binary=:all:", "--dest"]).arg(&place);
    pip.arg(format!("{package}=={version}")).stdin(Stdio::null());
    let why = match pip.output() {
        Err(error) => format!("cannot start python3 ({error}); {WITH_PIP}"),
        Ok(output) if output.status.success() => {
            let mut files = fs::read_dir(&place).into_iter().flatten().filter_map(Result::ok);
            match files.next() {
                Some(file) => return Ok(file.path()),
                None => "pip wrote no file".to_owned(),
            }
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
            match last.unwrap_or("pip gives no reason") {
                missing if missing.ends_with("No module named pip") => {
                    format!("{missing}; {WITH_PIP}")
                }
                reason => reason.to_owned(),
            }
        }
    };
    bail!(
        "cannot fetch {package} {version}: {why}; or download its wheel on another machine, from \
         https://pypi.org/project/{package}/{version}/#files, and run `sparserl-cli setup --wheel FILE.whl` here"
    )
}

/// Gives a finished folder its name, in the place of an older one.
fn put(finished: &Path, target: &Path) -> std::io::Result<()> {
    let _uninterrupted = interrupt::watch();
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(finished, target)
}

/// A folder for what is not finished, beside what is.
struct Unfinished(Pending);

impl Unfinished {
    fn begin(data: &Path) -> anyhow::Result<Self> {
        let mut pending = interrupt::watch();
        let made = interrupt::missing(data);
        let folder = fs::create_dir_all(data)
            .and_then(|()| tempfile::Builder::new().prefix(".new-").tempdir_in(data))
            .with_context(|| format!("{}: cannot create the folder", data.display()))?;
        let unfinished = Pending { folder: folder.keep(), made };
        *pending = Some(unfinished.clone());
        Ok(Self(unfinished))
    }

    fn path(&self) -> &Path {
        &self.0.folder
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut pending = interrupt::watch();
        self.0.remove();
        *pending = None;
    }
}
