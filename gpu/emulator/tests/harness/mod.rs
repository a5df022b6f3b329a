//! Launches of a kernel `k` of PTX text, whose one parameter is a buffer `y` of words.

use sparserl_emulator::finding::FindingKind;
use sparserl_emulator::launch::{Argument, Launch, Options, Report};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;

/// A launch of so many blocks of so many threads.
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    /// Words of `y`, which are zero at first.
    pub(crate) words: usize,
}

impl Case {
    /// Runs it with a seed; gives what `y` holds then.
    pub(crate) fn run(&self, seed: u64) -> (Vec<u32>, Report) {
        let kernel = Module::parse(&self.text).unwrap().kernel("k").unwrap();
        let mut memory = Memory::new();
        let y = memory.writable("y", &vec![0; self.words * 4]);
        let launch = Launch {
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            dynamic_shared: 0,
            arguments: vec![Argument::Buffer(y)],
        };
        let options = Options { seed, budget: 100_000, ..Options::default() };
        let report = run(&kernel, &launch, &mut memory, &options).unwrap();
        let words = memory.bytes(y);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        (words.chunks_exact(4).map(word).collect(), report)
    }

    /// Its results, which have to be the same with every seed, without findings.
    pub(crate) fn results(&self) -> Vec<u32> {
        let mut all = (0..6).map(|seed| {
            let (words, report) = self.run(seed);
            assert_eq!(report.findings, [], "seed {seed}");
            words
        });
        let first = all.next().unwrap();
        all.for_each(|words| assert_eq!(words, first));
        first
    }

    /// The kinds of its findings, which have to be the same with every seed.
    pub(crate) fn kinds(&self) -> Vec<FindingKind> {
        let mut all = (0..6).map(|seed| {
            let (_, report) = self.run(seed);
            let mut kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
            kinds.dedup();
            kinds
        });
        let first = all.next().unwrap();
        all.for_each(|kinds| assert_eq!(kinds, first));
        first
    }
}
