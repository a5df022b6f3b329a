//! CUDA sources of `tests/emulator`, run by the emulator. Comments in each say how it is launched,
//! on what data, and what must come of it:
//!
//! ```text
//! // launch: <<<dim3(4, 2), 128, 1024>>>          as CUDA has it, in the grammar of all launch comments
//! // matrix: rows=100 columns=90 mean=5 band=4  a random matrix, the same everywhere; `band` may be missing
//! // argument: row_ptr read-only i32 csr-offsets
//! // argument: x read-only f32 90 random        or `writable`; then elements, and what they hold
//! // argument: x input f32 90 random            read-only, but kernels before it may be writing it
//! // argument: y output f32 100                 nothing yet
//! // argument: rows i32 value 100               no buffer
//! // expect: y spmv x                           the result, a rule, what it is computed from
//! ```
//!
//! Elements hold `zero`, `value V`, `random` (fractions), `random N` (whole numbers below N), `iota
//! FIRST`, or an array of a layout of the matrix: see [`layouts`]. A line with a bug ends in `//
//! BUG: kind, kind`, one with what follows from it in `// ALSO: kind`, and one with both in `//
//! BUG: kind; ALSO: kind`.

pub mod data;
pub mod layouts;
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as WordError;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::finding::{Finding, FindingKind};
use sparserl_emulator::launch::{Argument, Launch, Options, Report};
use sparserl_emulator::machine;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::raw::Sizes;
use sparserl_gpu::candidate::raw::launch::LaunchRule;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers};
use sparserl_gpu::run::device::Geometry;

use data::{CaseArgument, Content};
use layouts::Matrix;

/// A kernel with all that a launch needs.
#[derive(Debug)]
pub struct Case {
    /// Name of the file, and of the kernel.
    pub name: String,
    source: String,
    geometry: Geometry,
    matrix: Option<Matrix>,
    arguments: Vec<CaseArgument>,
    expectation: Option<Vec<String>>,
    bugs: BTreeSet<(u32, FindingKind)>,
    consequences: BTreeSet<(u32, FindingKind)>,
}

/// Reads all cases of `tests/emulator/SET`, by name.
///
/// # Errors
/// When the folder or a case in it cannot be read.
pub fn load(set: &str) -> Result<Vec<Case>> {
    let folder = crate::root().join("tests/emulator").join(set);
    let files = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(|path| Case::read(path).with_context(|| path.display().to_string())).collect()
}

impl Case {
    fn read(path: &Path) -> Result<Self> {
        let source = std::fs::read_to_string(path)?;
        let name = path.file_stem().context("a file without name")?.to_string_lossy().into_owned();
        let header = |key: &str| {
            let key = format!("// {key}: ");
            source.lines().filter_map(move |line| line.strip_prefix(&key))
        };
        let launch = LaunchRule::from_comment(header("launch").next().context("no launch")?)?;
        let matrix =
            header("matrix").next().map(|text| Matrix::parse(&pairs(text)?)).transpose()?;
        let arguments = header("argument")
            .map(|text| CaseArgument::parse(text, matrix.as_ref()).with_context(|| text.to_owned()))
            .collect::<Result<_>>()?;
        let expectation =
            header("expect").next().map(|text| text.split(' ').map(str::to_owned).collect());
        let mut case = Self {
            // It does not depend on a matrix.
            geometry: launch.geometry(Sizes::default())?,
            name,
            matrix,
            arguments,
            expectation,
            bugs: BTreeSet::new(),
            consequences: BTreeSet::new(),
            source: String::new(),
        };
        for (number, line) in (1..).zip(source.lines()) {
            case.read_marks(number, line).with_context(|| format!("line {number}"))?;
        }
        case.source = source;
        Ok(case)
    }

    fn read_marks(&mut self, number: u32, line: &str) -> Result<()> {
        let Some((_, marks)) = ["// BUG: ", "// ALSO: "]
            .iter()
            .find_map(|mark| line.find(mark).map(|at| line.split_at(at + 3)))
        else {
            return Ok(());
        };
        for mark in marks.split("; ") {
            let (what, kinds) = mark.split_once(": ").context("a mark without kinds")?;
            let places = match what {
                "BUG" => &mut self.bugs,
                "ALSO" => &mut self.consequences,
                _ => bail!("no mark `{what}`"),
            };
            for kind in kinds.split(", ") {
                let deserializer = IntoDeserializer::<WordError>::into_deserializer(kind);
                places.insert((number, FindingKind::deserialize(deserializer)?));
            }
        }
        Ok(())
    }

    /// Compiles it for the emulator.
    ///
    /// # Errors
    /// When it does not compile, or uses what the emulator does not have.
    pub fn compile(&self, compilers: &Compilers) -> Result<Kernel> {
        let options = CompileOptions { line_information: true, ..CompileOptions::default() };
        let nvrtc = compilers.for_arch(Architecture::Sm80)?;
        let ptx = nvrtc.compile_ptx(&self.source, &self.name, Architecture::Sm80, &options)?;
        Ok(Module::parse(&ptx)?.kernel(&self.name)?)
    }

    /// Runs it once; what its buffers then hold is in the order of the arguments, empty for values.
    ///
    /// # Errors
    /// When it cannot be launched.
    pub fn run(&self, kernel: &Kernel, options: &Options) -> Result<(Report, Vec<Vec<u8>>)> {
        let mut memory = Memory::new();
        let mut arguments = Vec::new();
        for CaseArgument { name, element, content } in &self.arguments {
            arguments.push(match content {
                Content::Value(numbers) => Argument::Value(element.encode(numbers)),
                Content::ReadOnly(numbers) => {
                    Argument::Buffer(memory.read_only(name, &element.encode(numbers)))
                }
                Content::Input(numbers) => {
                    Argument::Buffer(memory.input(name, &element.encode(numbers)))
                }
                Content::Writable(numbers) => {
                    Argument::Buffer(memory.writable(name, &element.encode(numbers)))
                }
                Content::Output(bytes) => Argument::Buffer(memory.uninitialised(name, *bytes)),
            });
        }
        let launch = Launch {
            grid: self.geometry.grid,
            block: self.geometry.block,
            dynamic_shared: self.geometry.dynamic_shared,
            arguments: arguments.clone(),
        };
        let report = machine::run(kernel, &launch, &mut memory, options)?;
        let contents = arguments.iter().map(|argument| match argument {
            Argument::Buffer(buffer) => memory.bytes(*buffer),
            Argument::Value(_) => Vec::new(),
        });
        Ok((report, contents.collect()))
    }

    /// Whether the bug is among the findings, and nothing that does not follow from it.
    ///
    /// # Errors
    /// Says what is missing and what is too much.
    pub fn check_findings(&self, findings: &[Finding]) -> Result<()> {
        let place = |f: &Finding| f.source.as_ref().map(|source| (source.line, f.kind));
        let is_of =
            |places: &BTreeSet<_>, f: &Finding| place(f).is_some_and(|p| places.contains(&p));
        let mut complaints = Vec::new();
        if !self.bugs.is_empty() && !findings.iter().any(|f| is_of(&self.bugs, f)) {
            complaints.push(format!("not found: {:?}", self.bugs));
        }
        let unexpected =
            findings.iter().filter(|f| !is_of(&self.bugs, f) && !is_of(&self.consequences, f));
        complaints.extend(unexpected.map(|finding| format!("unexpected: {finding}")));
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        Ok(())
    }

    /// Whether the result is right, when the case says what it must be.
    ///
    /// # Errors
    /// Names the first wrong element.
    pub fn check_result(&self, contents: &[Vec<u8>]) -> Result<()> {
        let Some(words) = &self.expectation else { return Ok(()) };
        let [result, rule, source, rest @ ..] = words.as_slice() else { bail!("no rule") };
        let x = self.argument(source)?.1.content.numbers();
        let (index, result) = self.argument(result)?;
        let got = result.element.decode(contents.get(index).context("no result")?);
        let matrix = || self.matrix.as_ref().context("no matrix");
        let expected = match (rule.as_str(), rest) {
            ("spmv", []) => matrix()?.product(x, 1)?,
            ("spmm", [width]) => matrix()?.product(x, width.parse()?)?,
            ("sum", []) => vec![x.iter().sum()],
            ("max", []) => vec![x.iter().copied().fold(f64::MIN, f64::max)],
            ("prefix-sum", []) => x
                .iter()
                .scan(0.0, |sum, number| {
                    *sum += number;
                    Some(*sum)
                })
                .collect(),
            ("positive", []) => {
                let mut kept: Vec<_> = x.iter().copied().filter(|&number| number > 0.0).collect();
                kept.resize(got.len(), 0.0);
                kept
            }
            ("histogram", []) => (0..got.len())
                .map(|bin| x.iter().filter(|&&number| number == bin as f64).count() as f64)
                .collect(),
            _ => bail!("no rule `{rule}`"),
        };
        ensure!(got.len() == expected.len(), "{} elements, not {}", got.len(), expected.len());
        for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
            // Not `>`: NaN is wrong.
            let is_right = (got - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            ensure!(is_right, "element {i} is {got}, not {expected}");
        }
        Ok(())
    }

    /// A hash of all data.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut state = random::EMPTY_HASH;
        for CaseArgument { element, content, .. } in &self.arguments {
            let bytes = match content {
                Content::Output(bytes) => vec![0; *bytes],
                content => element.encode(content.numbers()),
            };
            state = random::hash(&bytes, state);
        }
        state
    }

    fn argument(&self, name: &str) -> Result<(usize, &CaseArgument)> {
        let mut arguments = self.arguments.iter().enumerate();
        arguments.find(|(_, a)| a.name == name).with_context(|| format!("no argument {name}"))
    }
}

/// `a=1 b=2`
fn pairs(text: &str) -> Result<BTreeMap<&str, &str>> {
    text.split(' ')
        .map(|word| word.split_once('=').ok_or_else(|| anyhow!("`{word}` is no `key=value`")))
        .collect()
}
