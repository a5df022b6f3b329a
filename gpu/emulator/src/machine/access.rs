//! Accesses to memory: where they go, and who carries them out.

use super::core::Core;
use super::lanes::lanes_of;
use super::order::Log;
use super::request::{Request, Use};
use super::warp::Warp;
use crate::code::{
    Address, BulkStore, CLUSTER_WINDOW, Instruction, LOCAL_WINDOW, Op, Order, Register,
    SHARED_BITS, Scope, Space, WARP,
};
use crate::finding::FindingKind;

/// Elements of a vector, at most.
pub(super) const MOST_ELEMENTS: usize = 4;

/// What lanes read or write: by element and lane.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) values: [[u64; WARP]; MOST_ELEMENTS],
    /// A bit for each lane.
    pub(super) undefined: [u32; MOST_ELEMENTS],
    /// The instruction that read what is undefined, where that is known.
    pub(super) read_by: [Option<u32>; MOST_ELEMENTS],
}

impl Core<'_> {
    /// Whether an instruction is a strong access of device memory, or one of the shared memory of
    /// another block.
    pub(super) fn waits_for_turn(
        &self,
        warp: &Warp,
        instruction: &Instruction,
        lanes: u32,
    ) -> bool {
        let (address, order) = match &instruction.op {
            Op::Load { address, access, .. } | Op::Store { address, access, .. } => {
                (address, access.order)
            }
            Op::Atomic(atomic) => (&atomic.address, Order::Relaxed),
            Op::MBarrier(mbarrier) => (&mbarrier.address, Order::Weak),
            Op::CopyBulk(copy) => return self.copies_elsewhere(warp, copy, lanes),
            Op::BulkStore(store) => {
                return matches!(store, BulkStore::Issue { reduction: Some(_), .. });
            }
            _ => return false,
        };
        let is_strong = order != Order::Weak;
        match address.space {
            Space::Global => is_strong,
            Space::Generic | Space::Cluster if is_strong || self.grid.has_clusters() => {
                let addresses = addresses(warp, address);
                lanes_of(lanes).any(|lane| match self.resolve(address.space, addresses[lane]).0 {
                    Space::Global => is_strong,
                    space => space == Space::Cluster,
                })
            }
            _ => false,
        }
    }

    /// The space of a generic address or of one of the cluster's shared memory, and the address in
    /// that: the own block's memory is not the cluster's.
    pub(super) fn resolve(&self, space: Space, address: u64) -> (Space, u64) {
        let (space, address) = match space {
            Space::Generic => resolve(address),
            space => (space, address),
        };
        let rank = address >> SHARED_BITS;
        if space == Space::Cluster && (rank == 0 || rank == u64::from(self.membership.rank) + 1) {
            return (Space::Shared, address & ((1 << SHARED_BITS) - 1));
        }
        (space, address)
    }

    /// Executes a load, a store, an atomic, a copy or what waits for one for some lanes.
    pub(super) fn access(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let request = |bytes, order, scope| Request {
            counter,
            warp: warp.index,
            bytes,
            order,
            scope,
            read_only_path: false,
            early: warp.early,
        };
        match &instruction.op {
            Op::Load { address, access, destinations } => {
                let bytes = access.bytes * destinations.len() as u32;
                let request = request(bytes, access.order, access.scope);
                let request = Request { read_only_path: access.read_only_path, ..request };
                self.load(warp, request, *access, address, destinations, lanes, log);
            }
            Op::Store { address, access, sources } => {
                let bytes = access.bytes * sources.len() as u32;
                let request = request(bytes, access.order, access.scope);
                self.store(warp, request, *access, address, sources, lanes, log);
            }
            Op::Atomic(atomic) => self.atomic(warp, counter, atomic, lanes, log),
            Op::CopyAsync { destination, source, bytes, source_bytes } => {
                let request = request(*bytes, Order::Weak, Scope::Device);
                let of = [destination, source];
                self.issue_copies(warp, request, of, *source_bytes, lanes);
            }
            Op::CopyBulk(copy) => self.issue_bulk(warp, counter, copy, lanes, log),
            Op::BulkStore(store) => self.bulk_store(warp, counter, store, lanes),
            Op::MBarrier(mbarrier) => self.mbarrier(warp, counter, mbarrier, lanes, log),
            _ => {}
        }
    }

    /// The addresses of an access, by the space that they lie in, in which they are given. What
    /// they were computed from is checked.
    pub(super) fn places(
        &mut self,
        warp: &Warp,
        counter: u32,
        address: &Address,
        lanes: u32,
    ) -> ([u64; WARP], [(Space, u32); 4]) {
        if let Some(base) = address.base {
            let undefined = warp.registers.undefined(base) & lanes;
            if undefined != 0 {
                let lane = undefined.trailing_zeros() as usize;
                let at = Use { counter, warp: warp.index, lane, what: "the address" };
                self.report_undefined(at, warp.registers.read_by(base), || None);
            }
            let wrapped = warp.registers.wrapped(base) & lanes;
            if wrapped != 0 {
                let lane = wrapped.trailing_zeros() as usize;
                let at = addresses(warp, address)[lane];
                self.report(FindingKind::AddressOverflow, counter, warp.index, lane, || {
                    let place = self.grid.global.place(at);
                    (Some(place), "a number of 16 or 32 bits that it depends on wrapped".to_owned())
                });
            }
        }
        let mut addresses = addresses(warp, address);
        let none = (Space::Global, 0);
        if !matches!(address.space, Space::Generic | Space::Cluster) {
            return (addresses, [(address.space, lanes), none, none, none]);
        }
        let mut parts =
            [Space::Global, Space::Shared, Space::Cluster, Space::Local].map(|space| (space, 0));
        for lane in lanes_of(lanes) {
            let (space, at) = self.resolve(address.space, addresses[lane]);
            addresses[lane] = at;
            for part in &mut parts {
                if part.0 == space {
                    part.1 |= 1 << lane;
                }
            }
        }
        (addresses, parts)
    }
}

/// The addresses of all lanes, in the instruction's space.
pub(super) fn addresses(warp: &Warp, address: &Address) -> [u64; WARP] {
    match address.base {
        None => [address.offset.cast_unsigned(); WARP],
        // 32-bit addresses wrap around at 32 bits.
        Some(base @ Register::Word(_)) => {
            warp.word(base).map(|base| u64::from(base.wrapping_add(address.offset as u32)))
        }
        Some(base) => warp.long(base).map(|base| base.wrapping_add(address.offset.cast_unsigned())),
    }
}

/// The space of a generic address, and the address in that.
fn resolve(address: u64) -> (Space, u64) {
    if CLUSTER_WINDOW.contains(&address) {
        (Space::Cluster, address - CLUSTER_WINDOW.start)
    } else if LOCAL_WINDOW.contains(&address) {
        (Space::Local, address - LOCAL_WINDOW.start)
    } else {
        (Space::Global, address)
    }
}
