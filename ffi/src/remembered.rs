//! What the policy has chosen before, or what was measured to be fastest, kept on disk: for a
//! matrix of the same pattern it is not asked again, though every run of a program makes its plans
//! anew.
//!
//! An entry is named after the hash of all that choices depend on. It is written whole or not at
//! all, and one that cannot be read is made anew.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sparserl_core::decode::Choice;
use sparserl_core::language::{Program, grammar_hash};
use sparserl_core::regular_file;
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_gpu::store::whole_file::WholeFile;
use sparserl_onnx_models::{COST_VERSION, OpenedPolicy};

/// Changes whenever entries written before must not be read any more.
const FORMAT: u32 = 2;
/// Bytes of an entry, at most.
const MOST_KEPT: u64 = 1 << 20;

/// A folder of choices.
pub(crate) struct Remembered {
    folder: PathBuf,
}

/// All that choices depend on, besides the objective.
pub(crate) struct Case<'a> {
    /// Hash of the pattern.
    pub(crate) pattern: Cow<'a, str>,
    /// Distinct values, where they are few: the values themselves make no difference.
    pub(crate) distinct_values: Option<usize>,
    pub(crate) task: Task,
    pub(crate) target: Target,
    pub(crate) policy: &'a OpenedPolicy,
    /// What the choices have to be faster than, where they are not measured.
    pub(crate) beside: Option<&'a Program>,
    /// How many are asked for.
    pub(crate) count: usize,
}

impl Case<'_> {
    fn name(&self) -> String {
        let Self { pattern, distinct_values, task, target, policy, beside, count } = self;
        let beside = beside.map(Program::to_string);
        let (policy, grammar) = (policy.version(), grammar_hash());
        let text = format!(
            "{FORMAT} {grammar} {COST_VERSION} {policy} {pattern} {distinct_values:?} {task} {target:?} {count} {beside:?}"
        );
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

impl Remembered {
    /// Those in a folder, which is made when something is first kept in it.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What was chosen for a case before.
    pub(crate) fn find(&self, case: &Case<'_>) -> Option<Vec<Choice>> {
        read(&self.folder.join(case.name()), case.task)
    }

    /// What was chosen for a case before, or what `choose` chooses now. A folder that cannot be
    /// read or written is no error.
    pub(crate) fn fetch<E>(
        &self,
        case: &Case<'_>,
        choose: impl FnOnce() -> Result<Vec<Choice>, E>,
    ) -> Result<Vec<Choice>, E> {
        if let Some(choices) = self.find(case) {
            return Ok(choices);
        }
        let choices = choose()?;
        self.keep(case, &choices);
        Ok(choices)
    }

    /// Keeps what is known to be best for a case, in place of what was there.
    pub(crate) fn keep(&self, case: &Case<'_>, choices: &[Choice]) {
        // All is well without: the next time costs as much.
        drop(keep(&self.folder, &case.name(), choices));
    }
}

fn keep(folder: &Path, name: &str, choices: &[Choice]) -> io::Result<()> {
    let texts: Vec<(String, f64)> =
        choices.iter().map(|choice| (choice.program.to_string(), choice.score)).collect();
    fs::create_dir_all(folder)?;
    let mut file = WholeFile::begin(&folder.join(name))?;
    file.write_all(&serde_json::to_vec(&texts)?)?;
    file.finish()
}

/// The choices of an entry, if it has programs for the task and nothing else.
fn read(path: &Path, task: Task) -> Option<Vec<Choice>> {
    let bytes = regular_file::read(path, MOST_KEPT).ok()?;
    let texts: Vec<(String, f64)> = serde_json::from_slice(&bytes).ok()?;
    let choice = |(text, score): (String, f64)| {
        let program = Program::parse(&text).ok().filter(|program| program.task == task)?;
        Some(Choice { program, score })
    };
    texts.into_iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use sparserl_onnx_models::{Engine, PolicySource};

    use super::*;

    #[test]
    fn a_case_is_chosen_for_once_until_its_entry_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::at(folder.path().join("choices"));
        let policy = OpenedPolicy::open(&PolicySource::Cost, &Engine::Embedded).unwrap();
        let task: Task = "spmv f64".parse().unwrap();
        let case = |pattern: &'static str, count| Case {
            pattern: pattern.into(),
            distinct_values: Some(3),
            task,
            target: Target::H200,
            policy: &policy,
            beside: None,
            count,
        };
        let text = "keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=2";
        let text = format!("sparserl 7\nspmv f64\nblock 128\n{text}\n");
        let chosen = [Choice { program: Program::parse(&text).unwrap(), score: -0.1 }];
        let mut times = 0;
        let mut fetch = |case: &Case<'_>| {
            let choose = || {
                times += 1;
                Ok::<_, Infallible>(chosen.to_vec())
            };
            let Ok(found) = remembered.fetch(case, choose);
            assert_eq!(found, chosen);
            times
        };
        assert_eq!(fetch(&case("a", 4)), 1);
        assert_eq!(fetch(&case("a", 4)), 1);
        assert_eq!(fetch(&case("a", 5)), 2);
        assert_eq!(fetch(&case("b", 4)), 3);
        let beside = Some(&chosen[0].program);
        assert_eq!(fetch(&Case { beside, ..case("b", 4) }), 4);
        remembered.keep(&case("c", 4), &[]);
        assert_eq!(remembered.find(&case("c", 4)), Some(Vec::new()));
        let path = folder.path().join("choices").join(case("a", 4).name());
        let entry = fs::read_to_string(&path).unwrap();
        let damages = [&entry[1..], &entry.replace("f64", "f32"), "[]x", "[[\"sparserl 7\", 1.0]]"];
        for (damage, times) in damages.into_iter().zip(5..) {
            fs::write(&path, damage).unwrap();
            assert_eq!(fetch(&case("a", 4)), times, "{damage}");
            assert_eq!(fs::read_to_string(&path).unwrap(), entry);
        }
    }

    #[test]
    fn nothing_is_lost_where_nothing_can_be_kept() {
        let remembered = Remembered::at("/dev/null/choices".into());
        let policy = OpenedPolicy::open(&PolicySource::Cost, &Engine::Embedded).unwrap();
        let task = "spmv f64".parse().unwrap();
        let (pattern, target) = ("a".into(), Target::H200);
        let (policy, distinct_values, beside, count) = (&policy, None, None, 1);
        let case = Case { pattern, distinct_values, task, target, policy, beside, count };
        assert_eq!(remembered.fetch(&case, || Err::<Vec<Choice>, _>("why")), Err("why"));
        assert_eq!(remembered.fetch(&case, || Ok::<_, Infallible>(Vec::new())), Ok(Vec::new()));
    }
}
