//! The golden programs: what they generate, and that they use the whole language.
//!
//! `INSTA_UPDATE=always cargo test -p sparserl-tests --test golden` writes the sources anew.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use sparserl_core::kernel::Kernel;
use sparserl_core::language::grammar::expand;
use sparserl_core::language::{Derivation, Mask, Panel, Program, Slot, Token, Word};
use sparserl_core::layout::pack;
use sparserl_core::matrix::Scalar;
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_core::with_scalar;
use sparserl_tests::golden::{self, Golden};
use sparserl_tests::matrices;

#[test]
fn sources_are_as_committed() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(golden::folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for golden in golden::load().unwrap() {
            insta::assert_snapshot!(golden.name.as_str(), golden.excerpt().unwrap());
        }
    });
}

/// The most common kernels are to be read in two minutes, whatever their codings are: what `gen`
/// writes as `kernel.cu` of CSR and ELLPACK for SpMV has at most 120 lines, and two more only where
/// sorted rows meet the longest codings.
#[test]
fn kernels_of_one_layout_are_short() {
    let graded = "graded 45 200 values few 9";
    let banded = "banded 300 4 1 values few 9";
    // Lines at most for SpMV, and for SpMM.
    let layouts = [
        ("keep csr", "lanes=LANES unroll=UNROLL", graded, [120, 195]),
        ("sort window=32 csr", "lanes=LANES unroll=UNROLL", graded, [122, 195]),
        ("keep ell", "lanes=LANES unroll=UNROLL", "banded 300 6 1 values few 9", [120, 195]),
        ("keep sell height=8", "lanes=LANES unroll=UNROLL", graded, [123, 200]),
        ("sort window=32 sell height=8", "lanes=LANES unroll=UNROLL", graded, [128, 202]),
        ("keep dia", "rows=1 unroll=UNROLL", banded, [116, 174]),
        ("keep dia", "rows=4 unroll=UNROLL", banded, [116, 174]),
        ("keep bcsr side=4", "lanes=LANES", banded, [105, 192]),
    ];
    let variants = combinations(&[
        &["f32", "f64"],
        &["u16", "u32", "d8", "d16"],
        &["plain", "constant", "dictionary"],
        &["1", "4", "block"],
        &["1", "2", "4", "8"],
    ]);
    let mut longest = BTreeMap::new();
    let mut seen = 0;
    for (layout, mapping, matrix, [most_spmv, most_spmm]) in layouts {
        for (task, vector, most) in [("spmv", 1, most_spmv), ("spmm 32", 2, most_spmm)] {
            for variant in &variants {
                let [precision, index, values, lanes, unroll] = variant[..] else { continue };
                let index = match layout {
                    "keep dia" => String::new(),
                    _ => format!(" index={index}"),
                };
                let text = format!(
                    "sparserl 7\n{task} {precision}\nblock 256\n{layout}{index} values={values} \
                     cache=streamed vector={vector} {mapping}",
                );
                let text = text.replace("LANES", lanes).replace("UNROLL", unroll);
                let Ok(program) = Program::parse(&text) else { continue };
                let dtype = program.task.precision.matrix();
                let file = with_scalar!(dtype, T => file::<T>(matrix, &program));
                let Some(file) = file else { continue };
                seen += 1;
                let known = longest.entry((task, layout)).or_insert((0, most));
                known.0 = known.0.max(file.lines().count());
                let wide = file.lines().find(|line| line.len() > 100);
                assert_eq!(wide, None, "{program}");
            }
        }
    }
    assert!(seen > 500, "{seen}");
    let long: Vec<_> = longest.iter().filter(|(_, (lines, most))| lines > most).collect();
    assert_eq!(long, [], "of {longest:#?}");
}

/// All combinations of one choice of each.
fn combinations(choices: &[&[&'static str]]) -> Vec<Vec<&'static str>> {
    choices.iter().fold(vec![Vec::new()], |known, choices| {
        let longer = |known: &Vec<_>| {
            choices.iter().map(|choice| [known.as_slice(), &[*choice]].concat()).collect::<Vec<_>>()
        };
        known.iter().flat_map(longer).collect()
    })
}

/// What `gen` writes for a matrix, if the program fits it.
fn file<T: Scalar>(matrix: &str, program: &Program) -> Option<String> {
    let matrix = matrices::build::<T>(matrix).unwrap();
    let packed = Arc::new(pack(matrix.view(), program).ok()?);
    Some(Kernel::<()>::written(packed, None, Duration::ZERO).unwrap().source_file())
}

#[test]
fn lines_have_room() {
    for golden in golden::load().unwrap() {
        let text = golden.emit().unwrap().text;
        let long: Vec<_> = text.lines().filter(|line| line.len() > 100).collect();
        assert_eq!(long, [""; 0], "{}", golden.name);
    }
}

#[test]
fn every_source_has_a_program() {
    let programs: HashSet<String> = golden::load().unwrap().into_iter().map(|g| g.name).collect();
    for file in fs::read_dir(golden::folder()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "snap") {
            let name = path.file_stem().unwrap().to_string_lossy();
            assert!(programs.contains(name.as_ref()), "{name}.snap has no {name}.skl");
        }
    }
}

/// A use of the grammar that some golden program has to make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    slot: &'static str,
    /// For slots where each operation has code of its own.
    operation: Option<&'static str>,
    /// For slots where each layout has code of its own.
    layout: Option<Word>,
    token: Token,
}

impl Use {
    /// `layout` is the one that the slot stands in.
    fn new(slot: Slot, task: Task, layout: Option<Word>, token: Token) -> Self {
        let operation = match task.operation {
            Operation::SpMV => "spmv",
            Operation::SpMM { .. } => "spmm",
        };
        let is_panel = matches!(token, Token::Number(n) if Panel::of(n).is_some());
        let (slot, by_operation, by_layout) = match slot {
            Slot::Block => ("block", false, false),
            Slot::Rows { .. } => ("rows", true, false),
            Slot::Threshold { .. } => ("threshold", false, false),
            Slot::Share { .. } => ("share", false, false),
            Slot::Window { .. } => ("window", false, false),
            Slot::Layout(_) => ("layout", true, false),
            // Merge tiles have device code of their own for each operation.
            Slot::Field(field) => (field.name, field.layout == Word::Merge, false),
            Slot::Index(..) => ("index", false, true),
            Slot::Values { .. } => ("values", false, true),
            Slot::Cache => ("cache", true, true),
            // Which blocks come first has nothing to do with the layout.
            Slot::Vector if is_panel => ("panel", false, false),
            Slot::Vector | Slot::VectorOf(_) => ("vector", false, true),
            Slot::Lanes { .. } => ("lanes", false, true),
            Slot::Unroll => ("unroll", false, false),
        };
        let operation = by_operation.then_some(operation);
        Self { slot, operation, layout: layout.filter(|_| by_layout), token }
    }
}

/// The layout that the slots which a token opens stand in.
fn layout_after(slot: Slot, layout: Option<Word>, token: Token) -> Option<Word> {
    match (slot, token) {
        (Slot::Layout(_), Token::Word(word)) => Some(word),
        _ => layout,
    }
}

/// All uses that the language offers in a task.
fn offered(task: Task, uses: &mut BTreeSet<Use>) {
    let mask = Mask::free(task);
    let mut seen = HashSet::new();
    let mut open = vec![(Slot::Block, None)];
    while let Some((slot, layout)) = open.pop() {
        if !seen.insert((slot, layout)) {
            continue;
        }
        for alternative in expand(slot, mask) {
            let inner = layout_after(slot, layout, alternative.token);
            uses.insert(Use::new(slot, task, layout, alternative.token));
            open.extend(alternative.opens.into_iter().map(|slot| (slot, inner)));
        }
    }
}

/// The uses that a golden program makes; also checks that it is legal for its matrix.
fn made<T: Scalar>(golden: &Golden, uses: &mut BTreeSet<Use>) {
    let matrix = golden.build::<T>().unwrap();
    let task = golden.program.task;
    let stats = MatrixStats::new(matrix.view());
    let mut derivation = Derivation::start(Mask::legal(&stats, task));
    let mut layout = None;
    for token in golden.program.tokens() {
        let slot = *derivation.open().last().unwrap();
        if matches!(slot, Slot::Rows { .. }) {
            layout = None;
        }
        uses.insert(Use::new(slot, task, layout, token));
        layout = layout_after(slot, layout, token);
        derivation.push(token).unwrap_or_else(|e| panic!("{}: {e}", golden.name));
    }
    assert_eq!(derivation.finish().unwrap(), golden.program);
}

#[test]
fn programs_are_legal_and_use_the_whole_language() {
    let mut made_uses = BTreeSet::new();
    for golden in golden::load().unwrap() {
        let dtype = golden.program.task.precision.matrix();
        with_scalar!(dtype, T => made::<T>(&golden, &mut made_uses));
    }
    let mut offered_uses = BTreeSet::new();
    for dtype in [Dtype::F32, Dtype::F64] {
        offered(Task::new(Operation::SpMV, dtype), &mut offered_uses);
        let columns = 128.try_into().unwrap();
        offered(Task::new(Operation::SpMM { columns }, dtype), &mut offered_uses);
    }
    let missing: Vec<_> = offered_uses.difference(&made_uses).collect();
    assert!(
        missing.is_empty(),
        "{} of {} uses of the grammar are in no golden program: {missing:#?}",
        missing.len(),
        offered_uses.len()
    );

    let tokens: HashSet<Token> = offered_uses.iter().map(|offered| offered.token).collect();
    let unused: Vec<_> = Token::all().filter(|token| !tokens.contains(token)).collect();
    assert_eq!(unused, [], "tokens that no slot offers");
}
