//! What the filter lets through, NVRTC reads no file for: random sources that try to make it read
//! one, which the kernel of the system watches. Needs NVRTC, no GPU.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestRunner};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::{CompileError, CompileOptions, Compilers, Nvrtc};
use tempfile::TempDir;

/// A file that nobody is to read.
struct Canary {
    _folder: TempDir,
    path: PathBuf,
    reads: OwnedFd,
}

impl Canary {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "#error canary\n").unwrap();
        let reads = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        add_watch(&reads, &path, WatchFlags::ACCESS).unwrap();
        Self { _folder: folder, path, reads }
    }

    /// Whether somebody has read it since this was asked before.
    fn was_read(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.reads, &mut buffer);
        let mut found = false;
        while reader.next().is_ok() {
            found = true;
        }
        found
    }
}

/// What begins a directive, more or less.
const MARKS: [&str; 12] =
    ["#", "# ", "%:", "%\\\n:", "??=", "#\\\n", "#/**/", "/**/#", "#\t", "#\r", "#\x0c", "%:%:"];

/// What reads a file in some compiler.
const WORDS: [&str; 18] = [
    "include",
    "include",
    "include",
    "include_next",
    "import",
    "embed",
    "in\\\nclude",
    "in\\\r\nclude",
    "in\\ \nclude",
    "in??/\nclude",
    "inc/**/lude",
    "\\u0069nclude",
    "INCLUDE",
    "pragma include",
    "pragma include_alias(\"a\",FILE)",
    "line 1",
    "if __has_include",
    "if __has_embed",
];

/// The file, in all ways to name it.
const FILES: [&str; 7] =
    [" \"FILE\"", "<FILE>", "(\"FILE\")", "(<FILE>)", " NAME", "\\\n\"FILE\"", "/**/\"FILE\"/*"];

/// What stands around.
const AROUND: [&str; 40] = [
    "\n",
    "\n",
    "\n",
    "\n#endif\n",
    " ",
    "/*",
    "*/",
    "//",
    "/\\\n/",
    "/\\\n*",
    "*\\\n/",
    "\"",
    "\\\"",
    "'",
    "R\"(",
    ")\"",
    "R\"x(",
    ")x\"",
    "u8R\\\n\"(",
    "\\\n",
    "\\ \n",
    "\\",
    "??/\n",
    "??/",
    "\r",
    "\r\n",
    "\\\r",
    "\x0b",
    "\x0c",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "1'0",
    "\n#define INCLUDE include\n",
    "\n#define NAME \"FILE\"\n",
    "\n#define HASH #\n",
    "\n#define D _Pragma(\"include\")\n",
    "_Pragma(\"include \\\"FILE\\\"\")",
    "_Pragma(\"once\")",
    "\nasm(\".include \\\"FILE\\\"\");\n",
];

fn source() -> impl Strategy<Value = String> {
    let around = || prop::collection::vec(select(&AROUND[..]), 0..5).prop_map(|all| all.concat());
    let directive = (select(&MARKS[..]), select(&WORDS[..]), select(&FILES[..]))
        .prop_map(|(mark, word, file)| [mark, word, file].concat());
    let piece = (around(), directive, around()).prop_map(|(a, b, c)| [a, b, c].concat());
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

/// Whether the filter lets it through; a failure where the file is read then.
fn passes(nvrtc: &Nvrtc, canary: &Canary, text: &str) -> Result<bool, TestCaseError> {
    let text = text.replace("FILE", canary.path.to_str().unwrap());
    let source = format!("{text}\nextern \"C\" __global__ void k() {{}}\n");
    let options = CompileOptions::default();
    let compiled = nvrtc.compile(&source, "k", Architecture::Sm90, &options);
    prop_assert!(!canary.was_read(), "NVRTC {} reads a file for {:?}", nvrtc.version(), source);
    if let Err(CompileError::Failed { log, .. }) = &compiled {
        prop_assert!(!log.contains("canary"), "{:?}: {log}", source);
    }
    Ok(!matches!(compiled, Err(CompileError::Include)))
}

#[test]
fn what_is_let_through_reads_no_file() {
    let canary = Canary::new();
    std::fs::read(Path::new(&canary.path)).unwrap();
    assert!(canary.was_read() && !canary.was_read(), "the test sees what is read");
    let compilers = Compilers::discover().unwrap();
    let (passed, all) = (Cell::new(0), Cell::new(0));
    // More where PROPTEST_CASES asks for them.
    let mut runner = TestRunner::new(ProptestConfig::default());
    let run = runner.run(&source(), |text| {
        for nvrtc in compilers.all() {
            all.set(all.get() + 1);
            passed.set(passed.get() + u32::from(passes(nvrtc, &canary, &text)?));
        }
        Ok(())
    });
    run.unwrap();
    assert!(passed.get() * 20 > all.get(), "{} of {} were let through", passed.get(), all.get());
}
