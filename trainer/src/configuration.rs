//! What a stage is asked to do, as TOML.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sparserl_core::language::{Layout, Program, Word};
use sparserl_core::regular_file;
use sparserl_core::task::Task;

use crate::corpus::{Corpus, Split, Step};

/// What to collect: so many programs on so many matrices of a corpus, for each task.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// The corpus.
    pub corpus: Corpus,
    /// Matrices: the first so many recipes of the corpus.
    pub matrices: u64,
    /// Tasks, as programs state them: `spmv f32`, `spmm 32 f32`.
    #[serde(deserialize_with = "tasks", serialize_with = "task_texts")]
    pub tasks: Vec<Task>,
    /// Programs that are drawn for a matrix and task.
    pub programs: usize,
    /// Programs of the pool that all matrices of a task share.
    pub pool: usize,
    /// Programs of each round that changes the fastest so far.
    pub mutations: usize,
    /// Such rounds.
    pub rounds_of_mutations: usize,
    /// Layouts by their words, of which each program has one; all layouts where none is named.
    /// Recordings of before a layout are completed so.
    /// Matrices should be measured with the others, too: `sft` imitates the best of what was
    /// measured of a matrix.
    #[serde(default, deserialize_with = "layouts", serialize_with = "layout_texts")]
    pub layouts: Vec<Word>,
    /// A list of programs, as `portfolio` writes it, relative to the file that names it: all that a
    /// matrix can have are measured on it, before what is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<PathBuf>,
}

/// Programs that are drawn at once, at most: nothing can be interrupted meanwhile.
const MOST_PROGRAMS: usize = 1_000_000;

impl Collection {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let drawn = [self.programs, self.pool, self.mutations, self.rounds_of_mutations];
        let many = drawn.into_iter().any(|programs| programs > MOST_PROGRAMS);
        self.corpus.wrong().or(many.then_some(
            "`programs`, `pool`, `mutations` and `rounds_of_mutations` must be at most 1000000",
        ))
    }

    /// Whether a program has one of the layouts.
    #[must_use]
    pub fn wants(&self, program: &Program) -> bool {
        let is_named = |layout: &Layout| self.layouts.contains(&layout.word());
        self.layouts.is_empty() || program.parts().iter().any(|part| is_named(&part.layout))
    }
}

/// How choosers of programs are compared.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Contests {
    /// Seed of the values of the matrices and of the search.
    pub seed: u64,
    /// Tasks, as programs state them.
    #[serde(deserialize_with = "tasks", serialize_with = "task_texts")]
    pub tasks: Vec<Task>,
    /// Programs that each chooser chooses.
    pub picks: usize,
    /// Programs of each generation of the search for the oracle, most of them changes of the
    /// fastest so far.
    pub mutations: usize,
    /// Such generations, besides the choosers' picks.
    pub rounds_of_mutations: usize,
    /// What is done to each real matrix before; nothing, if it is left out. How much a random order
    /// of rows costs, `steps = [{ permute_rows = { seed = 1 } }]` tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Matrices: all real ones and, up to this number, what a corpus of this seed makes of them.
    #[serde(default)]
    pub matrices: u64,
    /// Entries of the largest matrix that is made of real ones.
    #[serde(default = "largest_made")]
    pub largest_nnz: u64,
}

fn largest_made() -> u64 {
    Corpus::default().largest_nnz
}

impl Contests {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let grows = self.steps.iter().any(Step::may_add_entries);
        let drawn = [self.picks, self.mutations, self.rounds_of_mutations];
        let many = drawn.into_iter().any(|programs| programs > MOST_PROGRAMS);
        grows
            .then_some("`steps` must not add entries: the matrices are as large as they may be")
            .or(many.then_some(
                "`picks`, `mutations` and `rounds_of_mutations` must be at most 1000000",
            ))
    }
}

/// Which programs are drawn from policies, to find out how many are right.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// Tasks, as programs state them.
    #[serde(deserialize_with = "tasks", serialize_with = "task_texts")]
    pub tasks: Vec<Task>,
    /// Samples of each policy for a matrix and task, under the mask and as many free ones.
    pub samples: usize,
    /// Temperature of the sampler: 1 is as the policy says.
    pub temperature: f64,
    /// The numbers k of pass@k.
    pub tries: Vec<u32>,
    /// Matrices: the first so many recipes of the corpus. Where real ones are named, all of them
    /// and, up to this number, what the corpus makes of them.
    pub matrices: u64,
    /// The corpus; its share of real matrices is 1 where real ones are named.
    pub corpus: Corpus,
}

impl Samples {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let positive = self.temperature > 0.0 && self.temperature.is_finite();
        (!(1..=MOST_PROGRAMS).contains(&self.samples))
            .then_some("`samples` has to be from 1 to 1000000")
            .or((!positive).then_some("`temperature` has to be a positive number"))
            .or((!self.tries.iter().all(|&k| (1..=self.samples).contains(&(k as usize))))
                .then_some("`tries` have to be from 1 to `samples`"))
            .or(self.tasks.is_empty().then_some("`tasks` are none"))
            .or((self.matrices == 0).then_some("`matrices` has to be at least 1"))
            .or(self.corpus.wrong())
    }
}

/// Rounds of measuring what a policy writes and of training on it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// What is trained in each round: a [`Training`], relative to the file that names it.
    pub training: PathBuf,
    /// Matrices: the first so many recipes of the corpus.
    pub matrices: u64,
    /// Tasks, as programs state them.
    #[serde(deserialize_with = "tasks", serialize_with = "task_texts")]
    pub tasks: Vec<Task>,
    /// The policy's likeliest programs that are measured on each matrix for each task.
    pub likeliest: usize,
    /// Samples of the policy that are measured besides.
    pub samples: usize,
    /// Their temperature.
    pub temperature: f64,
    /// Rounds, at most.
    pub rounds: u32,
    /// A round that makes the fastest programs faster by less than this share is the last.
    pub least_gain: f64,
    /// The corpus.
    pub corpus: Corpus,
}

impl Rounds {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let positive = self.temperature > 0.0 && self.temperature.is_finite();
        (!positive)
            .then_some("`temperature` has to be a positive number")
            .or((self.likeliest == 0 && self.samples == 0).then_some("no programs are measured"))
            .or((self.likeliest.max(self.samples) > MOST_PROGRAMS)
                .then_some("`likeliest` and `samples` have to be at most 1000000"))
            .or((self.rounds == 0 || self.matrices == 0)
                .then_some("`rounds` and `matrices` have to be at least 1"))
            .or(self.tasks.is_empty().then_some("`tasks` are none"))
            .or((!self.least_gain.is_finite()).then_some("`least_gain` has to be a number"))
            .or(self.corpus.wrong())
    }
}

/// All that a policy is judged by. Paths are relative to the file that names them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tabulated {
    /// What parts of the training are compared: a configuration of
    /// [`Ablations`](crate::ablation::Ablations). The networks of its first variant, and what is
    /// improved of the first of them, are evaluated.
    pub ablations: PathBuf,
    /// What they are compared on beside a search: [`Contests`].
    pub evaluation: PathBuf,
    /// What is drawn from them: each a configuration of [`Samples`].
    pub samples: Vec<PathBuf>,
}

impl Tabulated {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        self.samples.is_empty().then_some("`samples` names no configuration of `pass-at-k`")
    }
}

/// How a policy is trained from recordings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// What the policy is called.
    pub name: String,
    /// Which matrices are trained on, whatever the stages say.
    pub split: Split,
    /// The stages, each from the network of the one before.
    pub stages: Vec<TrainingStage>,
    /// How the last stage's network is improved by what becomes of the programs that it writes: a
    /// configuration of a [`ReinforcementConfig`](crate::reinforcement::ReinforcementConfig),
    /// relative to the file that names it.
    #[serde(default)]
    pub reinforcement: Option<PathBuf>,
}

/// A stage of a [`Training`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingStage {
    /// What is learned.
    pub stage: Stage,
    /// How: a configuration of the stage, relative to the file that names it.
    pub configuration: PathBuf,
}

/// What is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To write any program, and what the cost model says of it.
    Pretrain,
    /// To write the programs that are near the best of their case (supervised fine-tuning).
    Sft,
    /// How fast programs are.
    Value,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pretrain => "pretrain",
            Self::Sft => "sft",
            Self::Value => "value",
        })
    }
}

/// Bytes of a configuration, at most: nobody writes so many.
const MOST_BYTES: u64 = 1 << 20;

/// A configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It cannot be read.
    #[error("cannot read the configuration `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is not one.
    #[error("{}:{line}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong, in one line.
        reason: String,
    },
    /// It is one, but what it asks for means nothing.
    #[error("{}: {reason}", path.display())]
    Meaning {
        /// The file.
        path: PathBuf,
        /// What is wrong, in one line.
        reason: String,
    },
}

/// Reads a configuration.
///
/// # Errors
/// When the file cannot be read, or lacks something, or has something that means nothing.
pub fn read<C: DeserializeOwned>(path: &Path) -> Result<C, ConfigurationError> {
    let text = regular_file::read(path, MOST_BYTES)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .map_err(|source| ConfigurationError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(start).filter(|&byte| byte == b'\n').count();
        let reason = error.message().replace('\n', "; ");
        ConfigurationError::Parse { path: path.to_owned(), line, reason }
    })
}

/// Reads a configuration, of which `wrong` says what means nothing, if anything.
///
/// # Errors
/// As [`read`], and when something means nothing.
pub fn read_checked<C: DeserializeOwned>(
    path: &Path,
    wrong: impl FnOnce(&C) -> Option<&'static str>,
) -> Result<C, ConfigurationError> {
    let config = read(path)?;
    match wrong(&config) {
        Some(reason) => {
            let reason = reason.to_owned();
            Err(ConfigurationError::Meaning { path: path.to_owned(), reason })
        }
        None => Ok(config),
    }
}

fn task_texts<S: Serializer>(tasks: &[Task], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tasks.iter().map(ToString::to_string))
}

fn layout_texts<S: Serializer>(layouts: &[Word], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(layouts.iter().map(|word| word.text()))
}

fn layouts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Word>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let layout = |text: &String| {
        let word = Layout::WORDS.iter().copied().find(|word| word.text() == text);
        word.ok_or_else(|| {
            let known: Vec<&str> = Layout::WORDS.iter().map(|word| word.text()).collect();
            serde::de::Error::custom(format!("`{text}` is no layout: {}", known.join(", ")))
        })
    };
    texts.iter().map(layout).collect()
}

fn tasks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Task>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let task = |text: &String| {
        text.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "`{text}` is no task; one is `spmv f32` or `spmm 32 f32`"
            ))
        })
    };
    texts.iter().map(task).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TEXT: &str = "matrices = 4\ntasks = [\"spmv f32\", \"spmm 32 f64 variable\"]\n\
        programs = 40\npool = 100\nmutations = 8\nrounds_of_mutations = 1\n\
        [corpus]\nseed = 3\nshare_of_real = 0.5\nlargest_nnz = 1000000\n";

    fn read_text(text: &str) -> Result<Collection, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("collect.toml");
        fs::write(&path, text).unwrap();
        read_checked(&path, Collection::wrong).map_err(|error| error.to_string())
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_no_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long.toml");
        fs::write(&long, " ".repeat(MOST_BYTES as usize + 1)).unwrap();
        for (path, why) in [
            (Path::new("/dev/zero"), "it is no regular file"),
            (long.as_path(), "it has more than 1048576 bytes"),
        ] {
            let error = read::<Collection>(path).unwrap_err().to_string();
            assert!(error.contains(why) && error.lines().count() == 1, "{error}");
        }
    }

    /// The configurations that come with the trainer, each of which is one of these.
    fn check_all(path: &Path) -> Result<(), String> {
        let errors = [
            read_checked(path, Collection::wrong).err(),
            read_checked(path, Contests::wrong).err(),
            read_checked(path, Samples::wrong).err(),
            read_checked(path, Rounds::wrong).err(),
            read_checked(path, Tabulated::wrong).err(),
            read_checked(path, |_: &Training| None).err(),
        ];
        let lines = errors.into_iter().flatten().map(|error| error.to_string());
        lines.filter(|line| line.lines().count() != 1).try_for_each(Err)
    }

    proptest::proptest! {
        #[test]
        fn a_changed_configuration_is_read_or_refused_in_a_line(
            which in proptest::prelude::any::<proptest::sample::Index>(),
            edits in proptest::collection::vec((
                proptest::prelude::any::<proptest::sample::Index>(),
                0_usize..12,
                "[-+.0-9a-z_\"'\\[\\]{}=,#\n\r\t é]{0,12}|-1|1e999|nan|18446744073709551616",
            ), 1..5),
        ) {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let folders = [root.to_owned(), root.join("configurations")];
            let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
            paths.sort();
            let text = fs::read_to_string(which.get(&paths)).unwrap();
            let mut text: Vec<char> = text.chars().collect();
            for (at, length, by) in edits {
                let from = at.index(text.len() + 1);
                let to = text.len().min(from + length);
                text.splice(from..to, by.chars());
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("changed.toml");
            fs::write(&path, text.into_iter().collect::<String>()).unwrap();
            proptest::prop_assert_eq!(check_all(&path), Ok(()));
        }
    }

    #[test]
    fn a_configuration_is_read_and_errors_say_where() {
        let collection = read_text(TEXT).unwrap();
        assert_eq!(collection.corpus.largest_nnz, 1_000_000);
        let tasks: Vec<String> = collection.tasks.iter().map(ToString::to_string).collect();
        assert_eq!(tasks, ["spmv f32", "spmm 32 f64 variable"]);
        let some = read_text(&format!("layouts = [\"chunk\", \"csr\"]\n{TEXT}")).unwrap();
        assert_eq!(some.layouts, [Word::Chunk, Word::Csr]);
        for (wrong, why) in [
            ("matrices = 4", "missing field"),
            ("extra = 1", "unknown field"),
            ("spmv f32", "is no task"),
            ("layouts = [\"coo\"]", "`coo` is no layout: csr, "),
        ] {
            let text = match wrong {
                "spmv f32" => TEXT.replace(wrong, "spmv f33"),
                added if !TEXT.contains(added) => format!("{added}\n{TEXT}"),
                _ => TEXT.replace(wrong, ""),
            };
            let error = read_text(&text).unwrap_err();
            assert!(error.contains(why) && error.contains("collect.toml:"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused_by_their_keys() {
        for (from, to, key) in [
            ("share_of_real = 0.5", "share_of_real = 1.5", "`corpus.share_of_real`"),
            ("share_of_real = 0.5", "share_of_real = -0.1", "`corpus.share_of_real`"),
            ("share_of_real = 0.5", "share_of_real = nan", "`corpus.share_of_real`"),
            ("seed = 3", "seed = 3\nshare_of_large = 2.0", "`corpus.share_of_large`"),
            ("seed = 3", "seed = 3\nsmallest_nnz = 0", "`corpus.smallest_nnz`"),
            ("largest_nnz = 1000000", "largest_nnz = 0", "`corpus.largest_nnz`"),
            ("pool = 100", "pool = 9000000000000000000", "`pool`"),
            ("mutations = 8", "mutations = 9000000000000000000", "`mutations`"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = read_text(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(key) && error.contains("collect.toml: "), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
