//! `cp.async.bulk` to shared memory: of the block, of another block of the cluster, or of several.
//!
//! What it reads is read when it is issued; it comes when somebody asks the mbarrier that counts
//! its bytes. Until then nobody can tell what is in its destination.

use super::access::addresses;
use super::core::Core;
use super::groups::Payload;
use super::lanes::lanes_of;
use super::order::Log;
use super::request::Request;
use super::touch::in_shared;
use super::warp::Warp;
use crate::code::{BulkCopy, Order, SHARED_BITS, Scope, Space};
use crate::finding::FindingKind;

/// Bytes of a part of a copy.
const PART: u32 = 16;

impl Core<'_> {
    /// Whether copies are to the shared memory of other blocks of the cluster.
    pub(super) fn copies_elsewhere(&self, warp: &Warp, copy: &BulkCopy, lanes: u32) -> bool {
        let own = self.membership.rank;
        self.grid.has_clusters()
            && lanes_of(lanes).any(|lane| match copy.blocks {
                Some(blocks) => warp.word(blocks)[lane] & !(1 << own) & 0xFFFF != 0,
                None => {
                    let address = addresses(warp, &copy.destination)[lane];
                    self.resolve(Space::Cluster, address).0 == Space::Cluster
                }
            })
    }

    /// Issues bulk copies, whose bytes an mbarrier counts.
    pub(super) fn issue_bulk(
        &mut self,
        warp: &Warp,
        counter: u32,
        copy: &BulkCopy,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        // What addresses are computed from is checked.
        for address in [&copy.destination, &copy.barrier] {
            self.places(warp, counter, address, lanes);
        }
        let (sources, _) = self.places(warp, counter, &copy.source, lanes);
        let counts = warp.word(copy.bytes);
        let request = Request {
            counter,
            warp: warp.index,
            bytes: PART,
            order: Order::Weak,
            scope: Scope::Device,
            read_only_path: false,
            early: warp.early,
        };
        let is_from_shared = copy.source.space == Space::Shared;
        self.counters.global_loads += u64::from(!is_from_shared);
        for lane in lanes_of(lanes) {
            let count = counts[lane];
            let targets = self.targets(warp, copy, lane);
            if !count.is_multiple_of(PART) {
                self.report(FindingKind::Misaligned, counter, warp.index, lane, || {
                    let detail = format!("a bulk copy of {count} bytes, no multiple of 16");
                    (targets.first().map(|&(target, _)| in_shared(grid, within(target))), detail)
                });
                continue;
            }
            let mut read = Vec::new();
            for at in (0..u64::from(count)).step_by(PART as usize) {
                let source = sources[lane] + at;
                let part = match is_from_shared {
                    true => self.read_from_shared(request, lane, source),
                    false => self.read_from_global(request, lane, source),
                };
                let Some(part) = part else { break };
                read.push(part);
            }
            if !is_from_shared {
                self.counters.global_load_sectors += u64::from(count.div_ceil(32));
            }
            for (target, barrier) in targets {
                self.begin_bulk(request, lane, [target, barrier], &read, log);
            }
        }
    }

    /// Where a lane's copies go, and where their mbarriers are: in the own block's shared memory,
    /// or with the rank of another block.
    fn targets(&self, warp: &Warp, copy: &BulkCopy, lane: usize) -> Vec<(u64, u64)> {
        let address = |of| addresses(warp, of)[lane];
        let own = |address: u64| self.resolve(Space::Cluster, address).1;
        let (target, barrier) = (address(&copy.destination), address(&copy.barrier));
        let Some(blocks) = copy.blocks else { return vec![(own(target), own(barrier))] };
        let blocks = warp.word(blocks)[lane];
        let ranks = (0..16_u64).filter(|rank| blocks >> rank & 1 != 0);
        let of = |rank: u64, address: u64| own(within(address) | (rank + 1) << SHARED_BITS);
        ranks.map(|rank| (of(rank, target), of(rank, barrier))).collect()
    }

    fn read_from_global(&mut self, request: Request, lane: usize, at: u64) -> Option<Payload> {
        let read = self.read_source(request, lane, at, PART)?;
        self.report_unfenced_global(request, lane, at);
        Some(read)
    }

    fn read_from_shared(&mut self, request: Request, lane: usize, at: u64) -> Option<Payload> {
        let offset = self.within_shared(request, lane, at)?;
        let (data, defined) = self.read_shared_source(request, lane, offset);
        Some(Payload { data, defined, source: (0, 0) })
    }

    /// Begins a copy of what was read to one block.
    fn begin_bulk(
        &mut self,
        request: Request,
        lane: usize,
        [target, barrier]: [u64; 2],
        read: &[Payload],
        log: &mut Log<'_>,
    ) {
        let (grid, Request { counter, warp, .. }) = (self.grid, request);
        if target >> SHARED_BITS != barrier >> SHARED_BITS {
            self.report(FindingKind::OutOfBounds, counter, warp, lane, || {
                let detail = "the mbarrier is in another block than what the copy writes";
                (Some(in_shared(grid, within(barrier))), detail.to_owned())
            });
            return;
        }
        let is_elsewhere = target >> SHARED_BITS != 0;
        let visit = match is_elsewhere {
            true => match self.visit(request, lane, target, log) {
                Some(visit) => Some(visit),
                None => return,
            },
            false => None,
        };
        let mut parts = Vec::with_capacity(read.len());
        for (index, &part) in read.iter().enumerate() {
            let target = within(target) + index as u64 * u64::from(PART);
            let Some(copy) = self.begin_copy(request, lane, target, part, is_elsewhere) else {
                break;
            };
            parts.push(copy);
        }
        let place = || in_shared(grid, within(barrier));
        match self.mbarriers.get_mut(&within(barrier)) {
            Some(state) => {
                let (is_fenced, by) = (state.is_fenced, state.initialised_at);
                state.expects((!is_elsewhere).then_some(warp), parts);
                if !is_fenced {
                    let at = grid.kernel.place(by);
                    self.report(FindingKind::Race, counter, warp, lane, || {
                        let detail = format!(
                            "initialised {at}, without `fence.mbarrier_init` or \
                             `fence.proxy.async` between that and the copy"
                        );
                        (Some(place()), detail)
                    });
                }
            }
            None => self.report(FindingKind::Uninitialised, counter, warp, lane, || {
                (Some(place()), "there is no mbarrier that was initialised".to_owned())
            }),
        }
        if let Some(visit) = visit {
            self.leave(&visit, log);
        }
    }
}

/// An address in a block, of one in the cluster's shared memory.
fn within(address: u64) -> u64 {
    address & ((1 << SHARED_BITS) - 1)
}
