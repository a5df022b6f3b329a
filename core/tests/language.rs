//! The kernel language: text and tokens round-trip, nothing panics on nonsense, and the mask leads
//! to programs only.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use sparserl_core::arbitrary::{
    Case, case, csr, free_program, mutated_tokens, random_bits, task, tokens,
};
use sparserl_core::language::{
    Derivation, Mask, Program, ProgramError, Space, TextError, Token, ValueCoding,
};
use sparserl_core::layout::{CostConstants, CostModel, PackError, pack};
use sparserl_core::matrix::{Csr, CsrView, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Precision, Task, Values};

fn any_task() -> impl Strategy<Value = Task> {
    proptest::sample::select(Precision::ALL.to_vec()).prop_flat_map(task)
}

fn round_trips(program: &Program) -> Result<(), TestCaseError> {
    let text = program.to_string();
    prop_assert_eq!(&Program::parse(&text).unwrap(), program);
    prop_assert_eq!(&Program::from_tokens(program.task, &program.tokens()).unwrap(), program);
    prop_assert_eq!(Program::parse(&text).unwrap().to_string(), text);
    Ok(())
}

/// The error is about the first token that no program goes on with.
fn is_first_misfit(
    task: Task,
    tokens: &[Token],
    error: &ProgramError,
) -> Result<(), TestCaseError> {
    let (ProgramError::Unexpected { position, .. }
    | ProgramError::Incomplete { position, .. }
    | ProgramError::Trailing { position, .. }) = *error;
    prop_assert!(position <= tokens.len());
    let mut derivation = Derivation::start(Mask::free(task));
    for &token in &tokens[..position] {
        prop_assert_eq!(derivation.push(token), Ok(()));
    }
    if let Some(&token) = tokens.get(position) {
        prop_assert!(derivation.push(token).is_err());
    } else {
        prop_assert!(!derivation.is_complete());
    }
    Ok(())
}

fn line_of(error: &TextError) -> usize {
    match *error {
        TextError::Version { line, .. }
        | TextError::Task { line, .. }
        | TextError::Block { line, .. }
        | TextError::Word { line, .. }
        | TextError::Field { line, .. }
        | TextError::Panel { line, .. }
        | TextError::Program { line, .. } => line,
    }
}

#[test]
fn errors_quote_no_more_than_a_few_words() {
    let long = "x".repeat(1_000_000);
    for text in [
        long.clone(),
        format!("sparserl 3\n{long}"),
        format!("sparserl 3\nspmv f32\n{long}"),
        format!("sparserl 3\nspmv f32\nblock 128\nkeep {long}"),
        format!("sparserl 3\nspmv f32\nblock 128\nkeep csr {long}"),
    ] {
        let error = Program::parse(&text).unwrap_err().to_string();
        assert!(error.len() < 250 && error.contains("xxxx…`"), "{error}");
    }
}

proptest! {
    #[test]
    fn free_programs_round_trip(task in any_task(), seed: u64) {
        round_trips(&free_program(task, seed))?;
    }

    #[test]
    fn random_tokens_are_a_program_or_an_error_in_place(task in any_task(), tokens in tokens(70)) {
        match Program::from_tokens(task, &tokens) {
            Ok(program) => prop_assert_eq!(program.tokens(), tokens),
            Err(error) => is_first_misfit(task, &tokens, &error)?,
        }
    }

    #[test]
    fn mutated_tokens_are_a_program_or_an_error_in_place(
        (task, tokens) in any_task().prop_flat_map(|task| (Just(task), mutated_tokens(task)))
    ) {
        match Program::from_tokens(task, &tokens) {
            Ok(program) => {
                prop_assert_eq!(program.tokens(), tokens);
                round_trips(&program)?;
            }
            Err(error) => is_first_misfit(task, &tokens, &error)?,
        }
    }

    #[test]
    fn mutated_text_is_a_program_or_an_error_with_its_line(
        task in any_task(),
        seed: u64,
        edits in proptest::collection::vec((any::<Index>(), any::<char>(), 0..3u8), 1..4),
    ) {
        let mut text: Vec<char> = free_program(task, seed).to_string().chars().collect();
        for (at, with, kind) in edits {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = with,
                1 => text.insert(at, with),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        match Program::parse(&text) {
            Ok(program) => round_trips(&program)?,
            Err(error) => {
                let line = line_of(&error);
                prop_assert!((1..=text.lines().count().max(1)).contains(&line), "{error}");
                prop_assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
                if let TextError::Word { found, .. } = &error {
                    // Bytes that no terminal should be given are question marks.
                    let shown = |byte: u8| if byte.is_ascii_graphic() { byte.into() } else { '?' };
                    let line: String = text.lines().nth(line - 1).unwrap().bytes().map(shown).collect();
                    prop_assert!(line.contains(found.trim_end_matches('…')), "{error}");
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_without_panic(text in "\\PC*", body in "(sparserl 3\n)?(spmv f32\n)?(block )?[a-z0-9#= \n-]{0,80}") {
        let _ = Program::parse(&text);
        let _ = Program::parse(&body);
    }

    #[test]
    fn words_may_stand_on_any_lines(task in any_task(), seed: u64, breaks in proptest::collection::vec(0..4u8, 60)) {
        let program = free_program(task, seed);
        let mut text = format!("# a comment\n\nsparserl 3 # version\n  {task}\n");
        let printed = program.to_string();
        let words = printed.lines().skip(2).flat_map(str::split_whitespace);
        for (word, gap) in words.zip(breaks.iter().cycle()) {
            text.push_str(word);
            text.push_str([" ", "\n", "\t \r\n\n", " # words of a comment, sell\n"][usize::from(*gap)]);
        }
        prop_assert_eq!(Program::parse(&text).unwrap(), program);
    }
}

#[test]
fn fields_are_named_and_in_order() {
    let error = |body: &str| {
        Program::parse(&format!("sparserl 3\nspmv f32\n{body}\n")).unwrap_err().to_string()
    };
    let csr = "index=u16 values=plain cache=cached vector=1 lanes=4";
    assert!(
        Program::parse(&format!("sparserl 3\nspmv f32\nblock 64\nkeep csr {csr} unroll=4")).is_ok()
    );
    let cases = [
        ("256\nkeep", "line 3: expected `block THREADS`, found `256`"),
        ("block 64\nkeep csr u16 plain", "line 4: expected `index=…`, found `u16`"),
        ("block 64\nkeep csr values=plain", "line 4: expected `index=…`, found `values=plain`"),
        ("block 64\nkeep csr index=u16 lanes=4", "line 4: expected `values=…`, found `lanes=4`"),
        ("block 64\nkeep csr height=4", "line 4: expected `index=…`, found `height=4`"),
        ("block 64\nsort\nkeep", "line 5: expected `window=…`, found `keep`"),
        ("block 64\nkeep csr index=", "line 4: `` is not a word or number of the language"),
        ("block 64\nkeep lanes=4", "line 4: `lanes=4` is not a word or number of the language"),
    ];
    for (body, expected) in cases {
        assert_eq!(error(body), expected);
    }
    let missing = format!("block 64\nkeep csr {csr}");
    assert_eq!(error(&missing), "line 4: expected `unroll=…`, found ``");
}

proptest! {
    // Statistics and counts of a space take milliseconds where tests are not optimised.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn legal_programs_round_trip_and_are_legal(case in case::<f32>(40, 60, 150)) {
        let Case { matrix, program } = case;
        round_trips(&program)?;
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let mut derivation = Derivation::start(Mask::legal(&stats, program.task));
        for token in program.tokens() {
            prop_assert_eq!(derivation.push(token), Ok(()));
        }
        prop_assert_eq!(derivation.finish().unwrap(), program.clone());
        let model = CostModel::new(stats.clone(), program.task, Target::H200);
        let (cost, parts) = (model.cost(&program), model.parts(&program));
        prop_assert!(cost.seconds.is_finite() && cost.seconds >= 0.0, "{cost:?}");
        prop_assert!(!parts.is_empty());
        prop_assert_eq!(cost.matrix_bytes, parts.iter().map(|part| part.matrix_bytes).sum::<u64>());
        // What is asked of the matrix once prices the program by any constants.
        let bandwidth = CostConstants::FITTED.attained_bandwidth / 3.0;
        let slower = CostConstants { attained_bandwidth: bandwidth, ..CostConstants::FITTED };
        for constants in [CostConstants::FITTED, slower] {
            let seconds = constants.time(&parts, &Target::H200).seconds();
            let model = model.clone().with_constants(constants);
            prop_assert_eq!(model.cost(&program).seconds, seconds);
        }
        let slower = slower.time(&parts, &Target::H200).seconds();
        prop_assert!(cost.matrix_bytes == 0 || slower > cost.seconds);
    }

    #[test]
    fn whatever_the_mask_offers_leads_to_a_program_that_packs(
        matrix in csr::<f64>(40, 60, 150),
        task in task(Dtype::F64),
        seed: u64,
    ) {
        every_offer_leads_to_a_program(&matrix, task, seed)?;
    }

    #[test]
    fn programs_for_variable_values_depend_on_the_pattern_only(
        matrix in csr::<f64>(12, 16, 40),
        task in task(Dtype::F64),
        seed: u64,
    ) {
        let task = task.with_values(Values::Variable);
        let ones = vec![1.0; matrix.nnz()];
        let view = matrix.view();
        let other = CsrView::new(view.rows(), view.cols(), view.offsets(), view.columns(), &ones);
        let other = other.unwrap();
        let (stats, others) = (MatrixStats::new(view), MatrixStats::new(other));
        let mut space = Space::new(Mask::legal(&stats, task));
        let mut others = Space::new(Mask::legal(&others, task));
        prop_assert_eq!(space.count(), others.count());
        let (mut random, mut again) = (random_bits(seed), random_bits(seed));
        for _ in 0..8 {
            let program = space.sample(&mut random);
            prop_assert_eq!(&program, &others.sample(&mut again));
            let codings = program.parts().into_iter().map(|part| part.layout.access().values);
            prop_assert!(codings.into_iter().all(|coding| coding == ValueCoding::Plain));
            prop_assert!(pack(view, &program).is_ok() && pack(other, &program).is_ok());
            round_trips(&program)?;
        }
    }

    #[test]
    fn packing_refuses_to_depend_on_variable_values(case in case::<f64>(12, 16, 40)) {
        let Case { matrix, mut program } = case;
        program.task.values = Values::Variable;
        let codings = program.parts().into_iter().map(|part| part.layout.access().values);
        let coded = codings.into_iter().find(|&coding| coding != ValueCoding::Plain);
        match (pack(matrix.view(), &program), coded) {
            (packed, None) => prop_assert!(packed.is_ok()),
            (packed, Some(coding)) => {
                prop_assert_eq!(packed, Err(PackError::DependsOnValues { coding }));
            }
        }
    }

    #[test]
    fn also_for_wide_matrices(
        matrix in csr::<f32>(30, 200_000, 60),
        task in task(Dtype::F32),
        seed: u64,
    ) {
        every_offer_leads_to_a_program(&matrix, task, seed)?;
    }
}

/// Walks one random derivation and, at each step, completes every alternative at random.
fn every_offer_leads_to_a_program<T: Scalar>(
    matrix: &Csr<T>,
    task: Task,
    seed: u64,
) -> Result<(), TestCaseError> {
    let stats = MatrixStats::new(matrix.view());
    let mut random = random_bits(seed);
    let mut walk = Derivation::start(Mask::legal(&stats, task));
    while !walk.is_complete() {
        let legal = walk.legal();
        prop_assert!(!legal.is_empty(), "nothing may follow {:?}", walk.tokens());
        for alternative in &legal {
            let mut branch = walk.clone();
            prop_assert_eq!(branch.push(alternative.token), Ok(()));
            let program = complete(branch, &mut random)?;
            let packed = pack(matrix.view(), &program);
            prop_assert!(packed.is_ok(), "{}\n{program}", packed.unwrap_err());
        }
        let chosen = &legal[random() as usize % legal.len()];
        prop_assert_eq!(walk.push(chosen.token), Ok(()));
    }
    Ok(())
}

fn complete(
    mut derivation: Derivation<'_>,
    random: &mut impl FnMut() -> u64,
) -> Result<Program, TestCaseError> {
    while !derivation.is_complete() {
        let legal = derivation.legal();
        prop_assert!(!legal.is_empty(), "nothing may follow {:?}", derivation.tokens());
        let token = legal[random() as usize % legal.len()].token;
        prop_assert_eq!(derivation.push(token), Ok(()));
    }
    Ok(derivation.finish().unwrap())
}

#[test]
fn programs_of_version_2_mean_what_they_meant() {
    let old = "sparserl 2\nspmv f32\nblock 128\nsplit-length threshold=8\n  keep dia values=plain \
               cache=cached vector=1 unroll=2\n  keep csr index=u16 values=plain cache=cached \
               vector=1 lanes=4 unroll=1\n";
    let new = old.replace("sparserl 2", "sparserl 7").replace("unroll=2", "rows=1 unroll=2");
    assert_eq!(Program::parse(old), Program::parse(&new));
    assert_eq!(Program::parse(old).unwrap().to_string(), new);
    let mixed = old.replace("sparserl 2", "sparserl 7");
    let error = Program::parse(&mixed).unwrap_err().to_string();
    assert!(error.contains("expected `rows=…`"), "{error}");
}

#[test]
fn version_task_and_block_may_share_a_line() {
    let spread = "sparserl 7\nspmm 32 f32\nblock 256\nkeep csr index=u16 values=plain cache=cached \
                  vector=1 lanes=4 unroll=1\n";
    let program = Program::parse(spread).unwrap();
    for joined in [
        "sparserl 7 spmm 32 f32 block 256 # so many\nkeep",
        "sparserl 7\nspmm 32 f32 block\n256 keep",
    ] {
        let joined = spread.replace("sparserl 7\nspmm 32 f32\nblock 256\nkeep", joined);
        assert_eq!(Program::parse(&joined), Ok(program.clone()), "{joined}");
    }
    let error = |text: &str| Program::parse(text).unwrap_err().to_string();
    assert!(error("sparserl 1 spmv f32").contains("line 1: expected `sparserl 7`"));
    assert!(error("sparserl 7 spmv f13 block 64").contains("found `spmv f13`"));
    assert!(error("sparserl 7\n\nspmv f32\nkeep").contains("line 4: expected `block THREADS`"));
}

#[test]
fn panels_are_written_where_they_are() {
    let text = |fields: &str, columns: u32| {
        format!(
            "sparserl 7\nspmm {columns} f32\nblock 256\nkeep csr index=u16 values=plain \
             cache=cached {fields} lanes=4 unroll=1\n"
        )
    };
    let panels = Program::parse(&text("panel=64 vector=4", 128)).unwrap();
    let plain = Program::parse(&text("vector=4", 128)).unwrap();
    assert_eq!(panels.to_string(), text("panel=64 vector=4", 128));
    assert_eq!(plain.to_string(), text("vector=4", 128));
    assert_eq!(panels.tokens().len(), plain.tokens().len() + 1);
    let error = |fields, columns| Program::parse(&text(fields, columns)).unwrap_err().to_string();
    assert!(error("vector=64", 128).contains("expected `vector=…`, found `vector=64`"));
    assert!(error("panel=4", 128).contains("expected `panel=64` or `panel=32`, found `panel=4`"));
    assert!(error("panel=64 panel=32 vector=4", 128).contains("`32`, expected 1, 2 or 4"));
    // A task of one panel has none, and neither has one whose last panel would be narrower.
    for columns in [64, 96] {
        assert!(error("panel=64 vector=4", columns).contains("`64`, expected 1, 2, 4"));
    }
}
