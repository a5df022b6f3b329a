//! What is ordered before what: happens-before, after the PTX ISA's chapter "Memory Consistency
//! Model".
//!
//! An access is stamped with its thread and the *epoch* of its warp, which grows at every operation
//! of the warp that orders memory. What is known of other threads is a [`Clock`]: the epoch up to
//! which their accesses come before what is done next, which is the model's *causality order*. It
//! grows where threads *synchronise*:
//!
//! - `bar.warp.sync` orders the lanes that it names; shuffles and votes order nothing. Barriers
//!   order all accesses of the warps that arrive before those of the warps that wait.
//! - A *release pattern* on a place (a fence and then a strong write, or a write that releases)
//!   synchronises with an *acquire pattern* (a strong read and then a fence, or a read that
//!   acquires) that observes the write, directly or through atomics that came between. A plain
//!   strong store starts anew: nothing is handed on from before it.
//! - Both have to be *morally strong* to each other: a fence or an access of the scope of the block
//!   or the cluster reaches nobody outside of it.
//! - `fence.sc`, which `__threadfence()` is, synchronises with every `fence.sc` after it in one
//!   order of them all. Where one comes before a write and another after a read that observes it,
//!   in causality order, the first has to be first in that order: otherwise the read would come
//!   before the write. So it is enough that all threads write and fence, and one counts behind a
//!   barrier; or that one counts, and all fence behind a barrier before they read.
//!
//! Strong accesses of one place race with weak ones only, unless their scopes or sizes differ. A
//! strong write is ordered before what follows the strong read that observes it, which is
//! *observation order*: the stamps of strong accesses lie half an epoch before those of weak ones.
//! A fence thus seems to release the strong writes between it and a release pattern to another
//! place, too, and a race of these with weak accesses is missed. Strong reads are told exactly: of
//! the last strong write of each place is known who has observed it ([`Past`]), and its stamp lies
//! in its full epoch there.

mod cluster;
mod known;

use std::collections::HashMap;
use std::sync::Arc;

use self::known::{Knowledge, Spread};
use super::clock::{Clock, WarpClock, levels};
use super::lanes::lanes_of;
use super::past::Past;
use super::phases::MBarriers;
use super::shared::SharedMemory;
use super::stamp::Stamp;
use crate::code::{Scope, WARP};

/// Lanes of a warp as an index.
type Lane = usize;

/// What a lane had fenced at its last fence of a scope: its knowledge then.
#[derive(Clone, Debug)]
struct Fenced {
    knowledge: Arc<Knowledge>,
    acquired: Clock,
}

/// What is released at a place.
#[derive(Clone, Debug, Default)]
struct Release {
    /// By release patterns for the device, or in shared memory.
    patterns: Clock,
    /// By sequentially consistent fences before the writes.
    fences: Clock,
    /// By release patterns that reach their own block only, or further, by block, and those that
    /// reach their own cluster only, or further, by cluster. Only in kernels with operations of
    /// such a scope.
    near: Option<HashMap<Near, Clock>>,
    /// The thread that stored here last.
    storer: Stamp,
}

/// The threads of a scope that does not reach all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Near {
    Block(u32),
    Cluster(u32),
}

/// What a strong write releases.
#[derive(Clone, Debug, Default)]
struct Released {
    /// By release patterns, as far as their scope at least.
    patterns: [Clock; SCOPES],
    /// By sequentially consistent fences of others.
    fences: Clock,
}

/// Scopes, and their numbers as places in an array.
const SCOPES: usize = 3;
const BLOCK: usize = Scope::Block as usize;
const CLUSTER: usize = Scope::Cluster as usize;
const DEVICE: usize = Scope::Device as usize;

/// Everything that was released, by place.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    places: HashMap<u64, Release>,
    /// In device memory, except in the plain order.
    pub(crate) past: Past,
    /// Blocks that share clusters.
    pub(crate) neighbours: Neighbours,
}

/// The blocks of a launch that share clusters, by number, while one of them has its turn.
pub(crate) type Neighbours = HashMap<u32, Neighbour>;

/// What a block lends to the others of its cluster.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(super) shared: SharedMemory,
    pub(super) mbarriers: MBarriers,
    /// What is released in it.
    pub(super) releases: Releases,
    pub(super) has_ended: bool,
    /// Whether another block has touched it.
    pub(super) is_visited: bool,
}

/// A place where something is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// In the block's shared memory.
    Shared(u64),
    /// In device memory.
    Global(u64),
}

/// The releases in device memory, as the machine lends them to a block.
#[derive(Debug)]
pub(crate) enum Log<'r> {
    /// Not at all, while blocks run in parallel.
    Parallel,
    /// While it is the block's turn.
    Turn(&'r mut Releases),
}

/// The order within a block, and what it knows of others.
#[derive(Debug)]
pub(crate) struct BlockOrder {
    block: u32,
    cluster: u32,
    levels: u32,
    warps: Vec<WarpOrder>,
    /// Releases in shared memory.
    shared: Releases,
    /// Whether anything of the kernel has the scope of the block or the cluster.
    has_near: bool,
    /// Whether others than its own threads may access its shared memory.
    has_clusters: bool,
    has_fenced: bool,
    has_acquired: bool,
    /// The round, doubled.
    pub(crate) time: u64,
    /// When any thread of the block last executed a sequentially consistent fence.
    last_fence: u64,
}

#[derive(Debug)]
struct WarpOrder {
    knowledge: Knowledge,
    /// At each lane's last fence of each scope or a wider one.
    fenced: [[Option<Fenced>; SCOPES]; WARP],
    /// What was released where strong reads have observed it since the last fence: acquired at the
    /// next one of each scope or a wider one.
    seen: [[Clock; SCOPES]; WARP],
    /// The same of sequentially consistent fences. Who comes later in causality order has seen it
    /// as well.
    seen_fences: Spread,
    acquired: Spread,
    /// What sequentially consistent fences before this have fenced: of the own block, of others.
    fences: Option<Arc<[WarpClock]>>,
    fences_elsewhere: Clock,
    /// Changes with all of this.
    version: u32,
    /// What each lane releases, as long as the version is the same.
    released: [Option<(u32, Released)>; WARP],
}

impl BlockOrder {
    /// Nothing is known to a block of a cluster. `blocks` are those of the grid, `has_near` says
    /// whether the kernel has any operation of the scope of the block or the cluster, and
    /// `has_clusters` whether clusters have several blocks.
    pub(crate) fn new(
        (block, cluster): (u32, u32),
        blocks: u32,
        warps: usize,
        [has_near, has_clusters]: [bool; 2],
    ) -> Self {
        let warp = || WarpOrder {
            knowledge: Knowledge {
                epoch: 2,
                together: 0,
                lanes: None,
                warps: vec![0; warps].into_boxed_slice(),
            },
            fenced: [const { [const { None }; SCOPES] }; WARP],
            seen: std::array::from_fn(|_| Default::default()),
            seen_fences: Spread::default(),
            acquired: Spread::default(),
            fences: None,
            fences_elsewhere: Clock::default(),
            version: 0,
            released: [const { None }; WARP],
        };
        Self {
            block,
            cluster,
            levels: levels(blocks),
            warps: (0..warps).map(|_| warp()).collect(),
            shared: Releases::default(),
            has_near,
            has_clusters,
            has_fenced: false,
            has_acquired: false,
            time: 0,
            last_fence: 0,
        }
    }

    /// Tells others when the block has last fenced.
    pub(crate) fn tell_fence(&self, past: &mut Past) {
        if self.last_fence > 0 {
            past.fence(self.block, self.last_fence);
        }
    }

    /// When the block has last fenced.
    pub(crate) fn last_fence(&self) -> u64 {
        self.last_fence
    }

    /// The stamp of what a lane of a warp does now.
    #[inline]
    pub(crate) fn stamp(&self, warp: usize, lane: Lane, strong: bool) -> Stamp {
        let epoch = self.warps.get(warp).map_or(0, |warp| warp.knowledge.epoch);
        let thread = (warp * WARP + lane) as u32;
        Stamp::new(self.block, thread, epoch - u32::from(strong), strong)
    }

    /// Whether an access is ordered before what a lane does now.
    #[inline]
    pub(crate) fn is_before(&self, access: Stamp, warp: usize, lane: Lane) -> bool {
        let Some(own) = self.warps.get(warp) else { return true };
        if access.block() == self.block {
            if access.thread() as usize == warp * WARP + lane {
                return !access.is_under_way();
            }
            if own.knowledge.covers(warp, lane, access) {
                return true;
            }
        }
        // Epochs that can no longer be told apart condemn nobody.
        self.has_acquired && own.acquired.covers(lane, access) || access.is_past_telling()
    }

    /// `bar.warp.sync` of some lanes.
    pub(crate) fn warp_barrier(&mut self, warp: usize, lanes: u32, all_lanes: u32) {
        let has_acquired = self.has_acquired;
        let Some(own) = self.warps.get_mut(warp) else { return };
        own.version += 1;
        if has_acquired || own.seen_fences.lanes.is_some() {
            own.acquired.meet(lanes, lanes == all_lanes);
            own.seen_fences.meet(lanes, lanes == all_lanes);
        }
        let knowledge = &mut own.knowledge;
        let known = knowledge.advance();
        if lanes == all_lanes {
            knowledge.together = known;
            knowledge.lanes = None;
            return;
        }
        let together = knowledge.together;
        let table = knowledge.lanes.get_or_insert_with(|| Box::new([[together; WARP]; WARP]));
        let mut joined = [together; WARP];
        for lane in lanes_of(lanes) {
            for (joined, known) in joined.iter_mut().zip(table[lane]) {
                *joined = known.max(*joined);
            }
        }
        for lane in lanes_of(lanes) {
            joined[lane] = known;
        }
        for lane in lanes_of(lanes) {
            table[lane] = joined;
        }
    }

    /// A warp arrives at a barrier. Gives the epoch below which its accesses came before.
    pub(crate) fn arrive(&mut self, warp: usize) -> u32 {
        let Some(own) = self.warps.get_mut(warp) else { return 0 };
        own.version += 1;
        own.knowledge.advance()
    }

    /// A barrier opens: what those that arrived did before is known to those that waited. With each
    /// warp comes the epoch of its arrival.
    pub(crate) fn open_barrier(&mut self, arrived: &[(usize, u32)], waited: &[(usize, u32)]) {
        let mut joined = vec![0; self.warps.len()];
        let [mut acquired, mut seen_fences, mut elsewhere] = [const { None }; 3];
        let mut fences: Option<Arc<[WarpClock]>> = None;
        for &(warp, epoch) in arrived {
            let Some(own) = self.warps.get(warp) else { continue };
            for (joined, &known) in joined.iter_mut().zip(&own.knowledge.warps) {
                *joined = known.max(*joined);
            }
            if let Some(slot) = joined.get_mut(warp) {
                *slot = epoch.max(*slot);
            }
            let add = |to: &mut Option<Clock>, clock: Clock| {
                if !clock.is_empty() {
                    to.get_or_insert_default().join(&clock);
                }
            };
            add(&mut seen_fences, own.seen_fences.joined());
            if self.has_acquired {
                add(&mut acquired, own.acquired.joined());
            }
            if self.has_fenced {
                add(&mut elsewhere, own.fences_elsewhere.clone());
                join_leaves(&mut fences, own.fences.as_ref());
            }
        }
        for &(warp, epoch) in waited {
            let Some(own) = self.warps.get_mut(warp) else { continue };
            own.version += 1;
            for (known, &joined) in own.knowledge.warps.iter_mut().zip(&joined) {
                *known = joined.max(*known);
            }
            own.knowledge.together = epoch;
            own.knowledge.lanes = None;
            for (to, joined) in
                [(&mut own.acquired, &acquired), (&mut own.seen_fences, &seen_fences)]
            {
                if let Some(joined) = joined {
                    to.all.join(joined);
                    to.lanes = None;
                }
            }
            if let Some(elsewhere) = &elsewhere {
                own.fences_elsewhere.join(elsewhere);
            }
            if fences.is_some() {
                own.fences.clone_from(&fences);
            }
        }
    }

    /// Some lanes of a warp execute a fence.
    pub(crate) fn fence(&mut self, warp: usize, lanes: u32, scope: Scope, sequential: bool) {
        let Some(own) = self.warps.get_mut(warp) else { return };
        self.has_fenced = true;
        if scope == Scope::Device && sequential {
            self.last_fence = self.time;
        }
        own.version += 1;
        own.knowledge.advance();
        for lane in lanes_of(lanes) {
            let mut gained = Clock::default();
            for seen in &mut own.seen[lane][..=scope as usize] {
                gained.join(&std::mem::take(seen));
            }
            if scope == Scope::Device && sequential {
                gained.join(&own.seen_fences.of(lane));
            }
            if !gained.is_empty() {
                self.has_acquired = true;
                own.acquired.add(lane, &gained);
            }
        }
        let knowledge = Arc::new(own.knowledge.clone());
        for lane in lanes_of(lanes) {
            let acquired = own.acquired.of(lane);
            let fenced = Fenced { knowledge: Arc::clone(&knowledge), acquired };
            if scope == Scope::Device && sequential {
                own.fences_elsewhere.join(&fenced.acquired);
            }
            own.fenced[lane][..=scope as usize].fill(Some(fenced));
        }
        if scope == Scope::Device && sequential {
            let leaf: Arc<[WarpClock]> = own.knowledge.leaf(warp, lanes).into();
            join_leaves(&mut own.fences, Some(&leaf));
        }
    }

    /// A lane makes a strong access: it sees what was released there, and releases what it has
    /// fenced. It has to be the block's turn for places in device memory.
    pub(crate) fn strong_access(
        &mut self,
        warp: usize,
        lane: Lane,
        place: Place,
        effect: Effect,
        log: &mut Log<'_>,
    ) {
        // In shared memory that no other block sees all are near.
        let are_near = matches!(place, Place::Shared(_)) && !self.has_clusters;
        let (places, address) = match (place, log) {
            (Place::Shared(address), _) => (&mut self.shared.places, address),
            (Place::Global(address), Log::Turn(all)) => (&mut all.places, address),
            (Place::Global(_), Log::Parallel) => return,
        };
        let (block, cluster) = (self.block, self.cluster);
        let reach = if are_near { DEVICE } else { effect.scope as usize };
        let Some(own) = self.warps.get_mut(warp) else { return };
        let stamp = Stamp::new(block, (warp * WARP + lane) as u32, 0, true);
        if effect.reads
            && let Some(released) = places.get(&address)
        {
            let near = |of| released.near.as_ref().and_then(|near| near.get(&of));
            let patterns = match are_near {
                true => [Some(&released.patterns), None, None],
                false => {
                    let patterns = Some(&released.patterns);
                    [near(Near::Block(block)), near(Near::Cluster(cluster)), patterns]
                }
            };
            for (scope, clock) in patterns.into_iter().enumerate().take(reach + 1) {
                let Some(clock) = clock.filter(|clock| !clock.is_empty()) else { continue };
                if scope == CLUSTER && !effect.names_scope {
                    continue;
                }
                if effect.acquires {
                    self.has_acquired = true;
                    own.version += 1;
                    own.acquired.add(lane, clock);
                } else {
                    own.seen[lane % WARP][scope].join(clock);
                }
            }
            if reach > BLOCK {
                own.seen_fences.add(lane, &released.fences);
            }
        }
        if !effect.writes {
            return;
        }
        let Released { mut patterns, fences } = if effect.releases {
            own.version += 1;
            own.knowledge.advance();
            let mut clock =
                Clock::of_block(block, self.levels, own.knowledge.leaf(warp, 1 << (lane % WARP)));
            clock.join(&own.acquired.of(lane));
            let fences = own.fences_before(block, self.levels, warp, lane);
            Released { patterns: std::array::from_fn(|_| clock.clone()), fences }
        } else if self.has_fenced {
            own.released(block, self.levels, warp, lane)
        } else {
            Released::default()
        };
        if are_near {
            patterns[DEVICE] = patterns[BLOCK].clone();
        }
        patterns[reach + 1..].fill(Clock::default());
        if !effect.reads
            && let Some(released) = places.get_mut(&address)
            && !(released.storer.is_somebody() && released.storer.same_thread(stamp))
        {
            // What was handed on by atomics until now is not observed through a plain store.
            *released = Release::default();
        }
        let is_nothing = patterns.iter().all(Clock::is_empty) && fences.is_empty();
        if is_nothing && !places.contains_key(&address) {
            return;
        }
        let released = places.entry(address).or_default();
        if !effect.reads {
            released.storer = stamp;
        }
        released.patterns.join(&patterns[DEVICE]);
        if reach > BLOCK {
            released.fences.join(&fences);
        }
        if self.has_near && !are_near {
            let near = [(Near::Block(block), BLOCK), (Near::Cluster(cluster), CLUSTER)];
            for (of, scope) in near.into_iter().filter(|&(_, scope)| !patterns[scope].is_empty()) {
                let clocks = released.near.get_or_insert_default();
                clocks.entry(of).or_default().join(&patterns[scope]);
            }
        }
    }
}

impl WarpOrder {
    /// What a strong write of a lane releases by the fences before it.
    fn released(&mut self, block: u32, levels: u32, warp: usize, lane: Lane) -> Released {
        if let Some((version, released)) = &self.released[lane % WARP]
            && *version == self.version
        {
            return released.clone();
        }
        let clock = |fenced: &Option<Fenced>| {
            let Some(Fenced { knowledge, acquired }) = fenced else { return Clock::default() };
            let mut clock =
                Clock::of_block(block, levels, knowledge.leaf(warp, 1 << (lane % WARP)));
            clock.join(acquired);
            clock
        };
        let fenced = &self.fenced[lane % WARP];
        let mut patterns: [Clock; SCOPES] = Default::default();
        for scope in (0..SCOPES).rev() {
            let is_as_further = match (&fenced[scope], fenced.get(scope + 1)) {
                (Some(near), Some(Some(far))) => Arc::ptr_eq(&near.knowledge, &far.knowledge),
                _ => false,
            };
            patterns[scope] = match is_as_further {
                true => patterns[scope + 1].clone(),
                false => clock(&fenced[scope]),
            };
        }
        let fences = self.fences_before(block, levels, warp, lane);
        let released = Released { patterns, fences };
        self.released[lane % WARP] = Some((self.version, released.clone()));
        released
    }

    /// What sequentially consistent fences that come before what a lane does now have fenced.
    fn fences_before(&self, block: u32, levels: u32, warp: usize, lane: Lane) -> Clock {
        let mut clock = self.fences_elsewhere.clone();
        if let Some(fences) = &self.fences {
            let known = self.knowledge.leaf(warp, 1 << (lane % WARP));
            let both = fences.iter().zip(&known).map(|(fenced, known)| fenced.shared(known));
            clock.join(&Clock::of_block(block, levels, both.collect()));
        }
        clock
    }
}

fn join_leaves(into: &mut Option<Arc<[WarpClock]>>, other: Option<&Arc<[WarpClock]>>) {
    let Some(other) = other else { return };
    *into = Some(match into.take() {
        None => Arc::clone(other),
        Some(own) if Arc::ptr_eq(&own, other) => own,
        Some(own) => own.iter().zip(other.iter()).map(|(own, other)| own.joined(other)).collect(),
    });
}

/// What a strong access does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    /// It reads the place.
    pub(crate) reads: bool,
    /// It writes it.
    pub(crate) writes: bool,
    /// It acquires without a fence.
    pub(crate) acquires: bool,
    /// It releases without a fence.
    pub(crate) releases: bool,
    /// Whom it is strong to.
    pub(crate) scope: Scope,
    /// Whether it says so. An operation on an mbarrier that names no scope has that of the block
    /// (PTX ISA, `mbarrier`), but kernels in use mostly leave it out on both sides, whoever they
    /// mean: such a wait acquires all but what was released to the cluster by name.
    pub(crate) names_scope: bool,
}
