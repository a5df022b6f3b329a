use proptest::prelude::*;

use super::*;
use crate::arbitrary;
use crate::language::{Fnv, Token};
use crate::matrix::{Csr, generate};
use crate::task::{Dtype, Operation};

/// Seconds of a program in a world where each token, and each with the one before it, has a price
/// of its own: near each other in the language is near in time, with traps.
fn seconds(program: &Program, world: u64) -> f64 {
    let price = |tokens: &[Token], strength: f64| {
        let mut text = alloc::format!("{world}");
        tokens.iter().for_each(|token| text += &alloc::format!(" {token}"));
        let mut hash = Fnv::new();
        hash.add(format_args!("{text}"));
        strength * SplitMix64::new(hash.0).uniform()
    };
    let tokens = program.tokens();
    let alone: f64 = tokens.windows(1).map(|tokens| price(tokens, 0.3)).sum();
    let pairs: f64 = tokens.windows(2).map(|tokens| price(tokens, 0.2)).sum();
    1e-6 * libm::exp(alone + pairs)
}

fn matrix() -> Csr<f32> {
    generate::rmat(9, 8, 1).cast().unwrap()
}

fn task() -> Task {
    Task::new(Operation::SpMV, Dtype::F32)
}

/// Goes on until so many programs were measured, each round by `measure`; gives all rounds.
fn run(
    search: &mut Search<'_>,
    programs: usize,
    mut measure: impl FnMut(&Round) -> Vec<Option<f64>>,
) -> Vec<Round> {
    let mut rounds = Vec::new();
    while search.measured() < programs
        && let Some(round) = search.ask()
    {
        let seconds = measure(&round);
        search.tell(&round.programs, &seconds);
        rounds.push(round);
    }
    rounds
}

fn exact(world: u64) -> impl FnMut(&Round) -> Vec<Option<f64>> {
    move |round| round.programs.iter().map(|program| Some(seconds(program, world))).collect()
}

#[test]
fn it_finds_faster_programs_than_chance_does_in_as_many_measurements() {
    let matrix = matrix();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let mask = Mask::legal(&stats, task());
    let (mut wins, mut gain) = (0, 0.0);
    for world in 0..10 {
        let mut search = Search::new(stats.clone(), task(), [], SearchSettings::default(), world);
        let mut spent = 0;
        let mut measure = exact(world);
        run(&mut search, 300, |round| {
            spent += round.programs.len();
            measure(round)
        });
        let mut random = SplitMix64::new(world);
        let walks = (0..spent).filter_map(|_| random_walk(mask, &mut random));
        let chance = walks.map(|walk| seconds(&walk, world)).fold(f64::INFINITY, f64::min);
        let found = seconds(search.best(1)[0].1, world);
        wins += usize::from(found < chance);
        gain += libm::log(chance / found) / 10.0;
    }
    assert!(wins >= 9 && libm::exp(gain) > 1.07, "{wins} wins of 10, {:.3}×", libm::exp(gain));
}

#[test]
fn luck_when_screened_does_not_win() {
    const WORLDS: u64 = 40;
    let matrix = matrix();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let (mut loss, mut naive_loss) = (0.0, 0.0);
    for world in 0..WORLDS {
        let mut noise = SplitMix64::new(world + 100);
        let mut luckiest: Option<(f64, Program)> = None;
        let mut search = Search::new(stats.clone(), task(), [], SearchSettings::default(), world);
        run(&mut search, 500, |round| {
            let programs = round.programs.iter();
            let measured = programs.map(|program| {
                // The fewer samples the more of it, on average a fifth when screened.
                let spread = 0.8 / libm::sqrt(f64::from(round.effort));
                let seen = seconds(program, world) * (1.0 + spread * (noise.uniform() - 0.5));
                if luckiest.as_ref().is_none_or(|(best, _)| seen < *best) {
                    luckiest = Some((seen, program.clone()));
                }
                Some(seen)
            });
            measured.collect()
        });
        let right = search.known.keys().map(|program| seconds(program, world));
        let fastest = right.fold(f64::INFINITY, f64::min);
        loss += seconds(search.best(1)[0].1, world) / fastest / WORLDS as f64;
        naive_loss += seconds(&luckiest.unwrap().1, world) / fastest / WORLDS as f64;
        let finalists = search.finalists(8);
        let best = finalists.iter().map(|program| seconds(program, world));
        assert!(best.fold(f64::INFINITY, f64::min) < 1.1 * fastest);
    }
    assert!(loss < 1.03 && loss < naive_loss, "{loss} where the luckiest is {naive_loss}");
}

#[test]
fn parents_are_of_several_families() {
    let matrix = matrix();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let mut search = Search::new(stats, task(), [], SearchSettings::default(), 1);
    run(&mut search, 600, exact(3));
    let parents = search.parents();
    assert_eq!(parents.len(), PARENTS);
    let families: BTreeSet<_> = parents.iter().map(|program| family(program)).collect();
    assert!(families.len() >= PARENTS / OF_ONE_FAMILY);
    assert_eq!(parents[0], search.best(1)[0].1);
}

#[test]
fn wrong_programs_are_neither_best_nor_asked_for_again() {
    let matrix = matrix();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let mut search = Search::new(stats, task(), [], SearchSettings::default(), 4);
    let is_wrong = |program: &Program| program.block.threads() == 256;
    let rounds = run(&mut search, 200, |round| {
        let time = |program: &Program| (!is_wrong(program)).then(|| seconds(program, 5));
        round.programs.iter().map(time).collect()
    });
    assert!(search.right() < search.measured());
    assert!(search.best(500).iter().all(|(_, program)| !is_wrong(program)));
    let again = rounds.iter().filter(|round| round.rung > 0);
    assert!(again.flat_map(|round| &round.programs).all(|program| !is_wrong(program)));
    let fastest = search.best(1)[0].1.clone();
    search.refuse(&fastest);
    assert!(search.best(500).iter().all(|(_, program)| **program != fastest));
    assert!(!search.finalists(8).contains(&fastest));
    assert!(!search.ask().unwrap().programs.contains(&fastest));
}

#[test]
fn a_matrix_with_few_programs_is_searched_to_its_end() {
    let matrix = generate::stencil5(1, 1).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let columns = 3.try_into().unwrap();
    let task = Task::new(Operation::SpMM { columns }, Dtype::F32);
    let count = crate::language::Space::new(Mask::legal(&stats, task)).count();
    let mut search = Search::new(stats, task, [], SearchSettings::default(), 1);
    run(&mut search, usize::MAX, exact(1));
    assert!(search.ask().is_none());
    assert!(search.measured() as u128 > count / 2, "{} of {count}", search.measured());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_asked_for_is_legal_and_screened_once(
        matrix in arbitrary::csr::<f32>(40, 40, 200),
        task in arbitrary::task(Dtype::F32),
        seed: u64,
    ) {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let mask = Mask::legal(&stats, task);
        let settings = SearchSettings { generation: 10, ..SearchSettings::default() };
        let mut random = SplitMix64::new(seed);
        let first: Vec<Program> = (0..13).filter_map(|_| random_walk(mask, &mut random)).collect();
        let mut search = Search::new(stats.clone(), task, first.clone(), settings, seed);
        let rounds = run(&mut search, 60, exact(seed));
        let mut screened = BTreeSet::new();
        for round in &rounds {
            let mut of_round = BTreeSet::new();
            for program in &round.programs {
                prop_assert!(is_offered(mask, program));
                prop_assert!(of_round.insert(program));
                prop_assert_eq!(screened.insert(program), round.rung == 0);
            }
        }
        let begun: Vec<&Program> = rounds.iter().flat_map(|round| &round.programs).collect();
        prop_assert_eq!(begun.first().copied(), first.first());
        prop_assert!(first.iter().all(|program| begun.contains(&program)));
    }

    #[test]
    fn told_again_it_goes_on_as_if_it_had_never_stopped(
        seed: u64,
        world in 0..100_u64,
        stop in 0..20_usize,
    ) {
        let matrix = matrix();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let settings = SearchSettings { generation: 12, ..SearchSettings::default() };
        let new = || Search::new(stats.clone(), task(), [], settings, seed);
        let mut whole = new();
        let all = run(&mut whole, 100, exact(world));
        let stop = stop.min(all.len());
        let mut resumed = new();
        let mut measure = exact(world);
        for round in &all[..stop] {
            let seconds = measure(round);
            resumed.tell(&round.programs, &seconds);
        }
        let rest = run(&mut resumed, 100, exact(world));
        prop_assert_eq!(&all[stop..], &rest[..]);
        prop_assert_eq!(whole.best(5), resumed.best(5));
    }
}
