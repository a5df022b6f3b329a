//! All blocks of a launch, in rounds.

use std::collections::VecDeque;

use fastrand::Rng;
use rayon::prelude::*;

use super::block::Block;
use super::cluster;
use super::findings::Findings;
use super::grid::{Grid, RESIDENT};
use super::order::Releases;
use crate::counters::Counters;
use crate::launch::Report;

/// Into so many tries a budget is divided for those that wait for nothing that still comes.
const MOST_TRIES: usize = 500;
/// Rounds in which a launch goes on that is wrong already: what follows from its fault is found by
/// then, and lanes that take up what nobody gave them may go on until their budget ends.
const ROUNDS_AFTER_FAULT: u32 = 5_000;

impl<'l> Grid<'l> {
    /// Runs all blocks.
    pub(crate) fn run(&self) -> Report {
        let size = self.cluster_blocks();
        let mut waiting: VecDeque<u32> = (0..self.blocks() / size as u32).collect();
        if self.options.seed != 0 && self.sample.is_none() {
            Rng::with_seed(self.options.seed).shuffle(waiting.make_contiguous());
        }
        let mut releases = Releases::default();
        let mut findings = Findings::default();
        let mut counters = Counters::default();
        let mut resident: Vec<Block<'_>> = Vec::new();
        let (mut is_over, mut rounds_after_fault) = (false, 0);
        let most = self.most_resident();
        let mut at_once = most.min(RESIDENT).max(size);
        while !is_over {
            let ended = counters.warps / self.warps() as u64;
            let free = self.most_at_once(at_once, ended).saturating_sub(resident.len()) / size;
            let next = waiting.drain(..free.min(waiting.len()));
            let next: Vec<u32> = next.flat_map(|number| self.blocks_of_cluster(number)).collect();
            resident.par_extend(next.into_par_iter().map(|index| Block::new(self, index)));
            if resident.is_empty() {
                break;
            }
            releases.past.time += 2;
            let time = releases.past.time - 1;
            resident.par_iter_mut().for_each(|block| block.run(time));
            let mut gets_further =
                self.in_turn(&mut resident, &mut releases, Block::access_strongly);
            if self.has_cluster_barriers {
                for blocks in resident.chunks_mut(size) {
                    gets_further |= cluster::open(blocks);
                }
            }
            // The others of a cluster may still look for a block that has ended.
            let have_ended = |blocks: &[Block<'_>]| blocks.iter().all(Block::has_ended);
            gets_further |= resident.iter().any(Block::is_stuck);
            gets_further |= resident.chunks(size).any(have_ended);
            if !gets_further {
                // They may wait for blocks that have not begun, if a device has room for more.
                if at_once < most && !waiting.is_empty() {
                    at_once = most.min(at_once + RESIDENT);
                    continue;
                }
                if self.has_cluster_barriers {
                    resident.chunks_mut(size).for_each(cluster::report_deadlock);
                }
                // The more wait, the fewer tries of each show that nobody comes.
                let tries = (MOST_TRIES * RESIDENT / resident.len().max(RESIDENT)).max(1);
                let charge = self.options.budget / tries as u64 + 1;
                self.in_turn(&mut resident, &mut releases, |block, all| block.wake(all, charge));
            }
            // What cannot go on would only be found again by the blocks after it.
            is_over = resident.iter().any(Block::is_stuck);
            is_over |= self.options.until_fault && resident.iter().any(Block::has_more_than_wraps);
            if findings.has_fault() || resident.iter().any(Block::has_fault) {
                rounds_after_fault += 1;
                is_over |= rounds_after_fault > ROUNDS_AFTER_FAULT;
            }
            let mut ended: VecDeque<bool> = resident
                .chunks(size)
                .flat_map(|blocks| std::iter::repeat_n(have_ended(blocks), blocks.len()))
                .collect();
            let ended = |_: &mut Block<'_>| ended.pop_front().is_some_and(|ended| ended || is_over);
            for mut block in resident.extract_if(.., ended) {
                if !is_over {
                    block.report_late_visits();
                }
                let (block_findings, block_counters) = block.into_results();
                findings.extend(block_findings);
                counters.add(&block_counters);
            }
        }
        let (remarks, findings) =
            findings.into_vec().into_iter().partition(|finding| finding.kind.is_remark());
        Report { findings, remarks, counters }
    }

    /// Lets each block do something while it is its turn. Gives whether any says that it does.
    fn in_turn(
        &self,
        resident: &mut [Block<'l>],
        releases: &mut Releases,
        act: impl Fn(&mut Block<'l>, &mut Releases) -> bool,
    ) -> bool {
        let mut any = false;
        if self.has_clusters() {
            resident.iter_mut().for_each(|block| block.lend(releases));
        }
        for block in resident.iter_mut() {
            if self.has_clusters() {
                block.take_back(releases);
            }
            any |= act(block, releases);
            if self.has_clusters() {
                block.lend(releases);
            }
        }
        if self.has_clusters() {
            resident.iter_mut().for_each(|block| block.take_back(releases));
        }
        any
    }
}
