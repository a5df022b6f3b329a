//! Thread block clusters: shared memory of other blocks, and the barrier of a cluster's threads.
//!
//! While blocks run in parallel, each has its shared memory to itself. Whatever touches that of
//! another block of the cluster waits for its block's turn, as strong accesses of device memory do:
//! then all blocks have lent theirs to the machine, and the block that has its turn takes another's
//! in place of its own for as long as an access takes. A block's memory is there from the first
//! barrier of its cluster that it has come to, or from when the visitor knows otherwise that it has
//! begun, until it has ended. In kernels without clusters each block is one of its own, which has
//! the barrier and nothing to lend.

use super::block::Block;
use super::clock::Clock;
use super::core::Core;
use super::grid::Grid;
use super::lanes::{lanes_of, position};
use super::membership::Lanes;
use super::order::{Log, Neighbour, Releases};
use super::request::Request;
use super::touch::in_shared;
use super::warp::Warp;
use crate::code::{Op, SHARED_BITS};
use crate::finding::FindingKind;

/// A block whose shared memory stands in place of the own.
#[derive(Debug)]
pub(super) struct Visit {
    block: u32,
    /// The address there.
    pub(super) address: u64,
}

impl Grid<'_> {
    /// Blocks of a cluster.
    pub(crate) fn cluster_blocks(&self) -> usize {
        self.cluster.iter().product::<u32>() as usize
    }

    /// Whether clusters have several blocks.
    pub(crate) fn has_clusters(&self) -> bool {
        self.cluster != [1; 3]
    }

    /// The blocks of a cluster, in the order of their ranks.
    pub(crate) fn blocks_of_cluster(&self, number: u32) -> Vec<u32> {
        let clusters = std::array::from_fn(|i| self.size[i] / self.cluster[i]);
        let at = position(number, clusters);
        let first = std::array::from_fn(|i| at[i] * self.cluster[i]);
        (0..self.cluster_blocks() as u32).map(|rank| self.member(first, rank)).collect()
    }

    /// The number of a block of the cluster that begins with the block `first`.
    fn member(&self, first: [u32; 3], rank: u32) -> u32 {
        let within = position(rank, self.cluster);
        let [x, y, z]: [u32; 3] = std::array::from_fn(|i| first[i] + within[i]);
        x + self.size[0] * (y + self.size[1] * z)
    }

    /// The number of a block's cluster.
    pub(crate) fn cluster_of(&self, block: [u32; 3]) -> u32 {
        let [x, y, z]: [u32; 3] = std::array::from_fn(|i| block[i] / self.cluster[i]);
        let [width, height, _]: [u32; 3] = std::array::from_fn(|i| self.size[i] / self.cluster[i]);
        x + width * (y + height * z)
    }

    /// The rank of a block in its cluster.
    pub(crate) fn rank(&self, block: [u32; 3]) -> u32 {
        let [x, y, z]: [u32; 3] = std::array::from_fn(|i| block[i] % self.cluster[i]);
        x + self.cluster[0] * (y + self.cluster[1] * z)
    }
}

impl Core<'_> {
    /// Puts the shared memory that an address of the cluster's lies in in place of the own, until
    /// [`leave`](Self::leave). Reports addresses of blocks that there are not, or not any more.
    pub(super) fn visit(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
        log: &mut Log<'_>,
    ) -> Option<Visit> {
        let grid = self.grid;
        let rank = u32::try_from(address >> SHARED_BITS).unwrap_or(u32::MAX).saturating_sub(1);
        let address = address & ((1 << SHARED_BITS) - 1);
        let place = || in_shared(grid, address);
        let Request { counter, warp, .. } = request;
        if rank as usize >= grid.cluster_blocks() {
            let blocks = grid.cluster_blocks();
            self.report(FindingKind::OutOfBounds, counter, warp, lane, || {
                (Some(place()), format!("of block {rank} of a cluster of {blocks}"))
            });
            return None;
        }
        let Log::Turn(releases) = log else { return None };
        let first = std::array::from_fn(|i| self.position[i] / grid.cluster[i] * grid.cluster[i]);
        let block = grid.member(first, rank);
        let neighbour = releases.neighbours.get_mut(&block)?;
        let has_begun = self.membership.phases > 0 || self.order.has_heard_of(warp, lane, block);
        let absent = match (neighbour.has_ended, has_begun) {
            (true, _) => Some("has ended"),
            (false, false) => Some("may not have begun: nothing has waited for that"),
            (false, true) => None,
        };
        if let Some(why) = absent {
            let ended = neighbour.has_ended;
            self.report(FindingKind::AbsentBlock, counter, warp, lane, || {
                // Where threads can only end at one place, they have ended there.
                let mut ends = (0..).zip(&grid.kernel.code).filter(|(_, at)| at.op == Op::Exit);
                let at = match (ends.next(), ends.next()) {
                    (Some((end, _)), None) if ended => format!(" {}", grid.kernel.place(end)),
                    _ => String::new(),
                };
                (Some(place()), format!("block {rank} of the cluster {why}{at}"))
            });
        }
        if neighbour.has_ended {
            return None;
        }
        neighbour.is_visited = true;
        std::mem::swap(&mut self.shared, &mut neighbour.shared);
        std::mem::swap(&mut self.mbarriers, &mut neighbour.mbarriers);
        self.order.swap_shared(&mut neighbour.releases);
        Some(Visit { block, address })
    }

    /// Takes the own shared memory back.
    pub(super) fn leave(&mut self, visit: &Visit, log: &mut Log<'_>) {
        if let Log::Turn(releases) = log
            && let Some(neighbour) = releases.neighbours.get_mut(&visit.block)
        {
            std::mem::swap(&mut self.shared, &mut neighbour.shared);
            std::mem::swap(&mut self.mbarriers, &mut neighbour.mbarriers);
            self.order.swap_shared(&mut neighbour.releases);
        }
        // What was seen there is no place of the own memory that a warp could wait for.
        self.watched.clear();
    }

    /// `barrier.cluster.arrive` of some lanes.
    pub(super) fn arrive_at_cluster(
        &mut self,
        warp: &Warp,
        counter: u32,
        lanes: u32,
        releases: bool,
        aligned: bool,
    ) {
        let Some(&before) = self.membership.warps.get(warp.index) else { return };
        let again = lanes & (before.arrived | before.passed);
        if again != 0 {
            let lane = again.trailing_zeros() as usize;
            self.report(FindingKind::DivergentBarrier, counter, warp.index, lane, || {
                (None, "it arrives again without having waited for the others".to_owned())
            });
        }
        if before.arrived != 0 && before.counter != counter && before.aligned && aligned {
            let lane = lanes.trailing_zeros() as usize;
            let place = self.grid.kernel.place(before.counter);
            self.report(FindingKind::DivergentBarrier, counter, warp.index, lane, || {
                (None, format!("other lanes of the warp arrive {place}"))
            });
        }
        let has_others = self.grid.has_clusters();
        let [released, done] =
            self.order.release_to_cluster(warp.index, lanes, releases, has_others);
        self.membership.released.join(&released);
        self.membership.done.join(&done);
        if let Some(own) = self.membership.warps.get_mut(warp.index) {
            *own = Lanes { arrived: own.arrived | lanes, counter, aligned, ..*own };
        }
    }

    /// `barrier.cluster.wait` of some lanes, which have been sent past it.
    pub(super) fn wait_for_cluster(&mut self, warp: &mut Warp, counter: u32, lanes: u32) {
        let last = self.membership.last.clone();
        let Some(own) = self.membership.warps.get_mut(warp.index) else { return };
        let (passed, waiting) = (lanes & own.passed, lanes & own.arrived);
        let neither = lanes & !(passed | waiting);
        own.passed &= !passed;
        own.waiting |= waiting;
        own.waits_at = counter;
        warp.at_cluster |= waiting;
        warp.ready &= !waiting;
        self.order.acquire_of_cluster(warp.index, passed, warp.alive, &last);
        if neither != 0 {
            let lane = neither.trailing_zeros() as usize;
            self.report(FindingKind::DivergentBarrier, counter, warp.index, lane, || {
                (None, "it waits for the others of the cluster without having arrived".to_owned())
            });
        }
    }
}

impl Block<'_> {
    /// Lends its shared memory to the others of its cluster.
    pub(crate) fn lend(&mut self, releases: &mut Releases) {
        let has_ended = self.has_ended();
        let neighbour = Neighbour {
            shared: std::mem::take(&mut self.core.shared),
            mbarriers: std::mem::take(&mut self.core.mbarriers),
            releases: self.core.order.take_shared(),
            has_ended,
            is_visited: self.core.membership.is_visited,
        };
        releases.neighbours.insert(self.core.order.block(), neighbour);
    }

    /// Takes it back.
    pub(crate) fn take_back(&mut self, releases: &mut Releases) {
        if let Some(mut neighbour) = releases.neighbours.remove(&self.core.order.block()) {
            self.core.shared = neighbour.shared;
            self.core.mbarriers = neighbour.mbarriers;
            self.core.order.swap_shared(&mut neighbour.releases);
            self.core.membership.is_visited = neighbour.is_visited;
        }
    }

    /// Whether nothing in it can go on unless the cluster's barrier opens.
    fn only_waits(&self) -> bool {
        let waits = |warp: &Warp| warp.ready == 0 && warp.strong.is_none() && !warp.dozes;
        self.warps.iter().all(waits)
    }

    /// Reports accesses to its shared memory, which it no longer has, that nothing orders before
    /// its end.
    pub(crate) fn report_late_visits(&mut self) {
        let Core { grid, shared, order, membership, .. } = &mut self.core;
        if !membership.is_visited {
            return;
        }
        let mut late = Vec::new();
        for word in 0..shared.len().div_ceil(4) {
            for (stamp, instruction) in shared.cell(word).iter().flat_map(|cell| cell.accesses()) {
                if stamp.block() != order.block()
                    && !membership.outlived.covers(stamp)
                    && !order.has_acquired(stamp)
                {
                    late.push((stamp, instruction, word as u64 * 4));
                }
            }
        }
        let grid = *grid;
        for (stamp, instruction, address) in late {
            self.core.report_of(FindingKind::AbsentBlock, instruction, stamp, || {
                let place = in_shared(grid, address);
                (Some(place), "nothing makes the block wait for it before it ends".to_owned())
            });
        }
    }
}

/// Opens the barrier of a cluster if all of its threads have come that have not ended. Gives
/// whether it does.
pub(crate) fn open(blocks: &mut [Block<'_>]) -> bool {
    let lanes = |block: &Block<'_>| -> Vec<(u32, u32)> {
        let own = block.core.membership.warps.iter();
        block.warps.iter().zip(own).map(|(warp, own)| (warp.alive, own.arrived)).collect()
    };
    let all: Vec<(u32, u32)> = blocks.iter().flat_map(lanes).collect();
    let has_come = |&(alive, arrived): &(u32, u32)| alive & !arrived == 0;
    if !all.iter().all(has_come) || all.iter().all(|&(alive, arrived)| alive & arrived == 0) {
        return false;
    }
    let (mut released, mut done) = (Clock::default(), Clock::default());
    for block in blocks.iter_mut() {
        released.join(&std::mem::take(&mut block.core.membership.released));
        done.join(&std::mem::take(&mut block.core.membership.done));
    }
    for block in blocks {
        let Core { membership, order, .. } = &mut block.core;
        membership.last.clone_from(&released);
        membership.outlived.join(&done);
        membership.phases += 1;
        for (warp, own) in block.warps.iter_mut().zip(&mut membership.warps) {
            order.acquire_of_cluster(warp.index, own.waiting, warp.alive, &released);
            warp.at_cluster &= !own.waiting;
            warp.ready |= own.waiting & warp.alive;
            own.passed = own.arrived & !own.waiting;
            (own.arrived, own.waiting) = (0, 0);
        }
    }
    true
}

/// Reports what the threads of a cluster wait for that nothing can bring on.
pub(crate) fn report_deadlock(blocks: &mut [Block<'_>]) {
    let waits = |block: &Block<'_>| block.warps.iter().any(|warp| warp.at_cluster != 0);
    if !blocks.iter().any(waits) || !blocks.iter().all(Block::only_waits) {
        return;
    }
    let count = |of: fn(&Warp, &Lanes) -> u32| -> u32 {
        let lanes = |block: &Block<'_>| -> u32 {
            let own = &block.core.membership.warps;
            block.warps.iter().zip(own).map(|(warp, own)| of(warp, own).count_ones()).sum()
        };
        blocks.iter().map(lanes).sum()
    };
    let (alive, come) = (count(|warp, _| warp.alive), count(|warp, own| warp.alive & own.arrived));
    for block in blocks {
        if !block.has_ended() {
            block.report_deadlock();
        }
        for index in 0..block.warps.len() {
            let Some(&own) = block.core.membership.warps.get(index) else { continue };
            for lane in lanes_of(own.waiting).take(1) {
                let kind = FindingKind::DivergentBarrier;
                block.core.report(kind, own.waits_at, index, lane, || {
                    (None, format!("{come} of the cluster's {alive} threads come to the barrier"))
                });
            }
        }
    }
}
