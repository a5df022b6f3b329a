//! What is ordered before what: happens-before, after the PTX memory model.
//!
//! An access is stamped with its thread and the *epoch* of its warp, which grows at every operation
//! of the warp that orders memory. Of every warp it is known, for each other one, up to which epoch
//! its accesses are ordered before what comes next:
//!
//! - `bar.warp.sync` orders the lanes that it names; shuffles and votes order nothing.
//! - Barriers order all accesses of the warps that arrive before those of the warps that wait.
//! - A fence and then an atomic (or another strong access) releases to the place; a strong access
//!   of the same place and then a fence acquires everything that was released there before. What is
//!   released is what the fencing thread knew at its fence, and, so that the common "all fence,
//!   barrier, one counts" is accepted, what each thread fenced itself.
//!
//! Strong accesses of one place race with weak ones only.

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::{Scope, WARP};

/// Lanes of a warp as an index.
type Lane = usize;

/// Who accessed a place, when and how; or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

const EPOCH_BITS: u32 = 23;
const LAST_EPOCH: u32 = (1 << EPOCH_BITS) - 1;
const THREAD_BITS: u32 = 10;
const BLOCK_BITS: u32 = 24;
/// Blocks that a grid may have.
pub(crate) const MOST_BLOCKS: u64 = 1 << BLOCK_BITS;
const BYTES_SHIFT: u32 = EPOCH_BITS + THREAD_BITS + BLOCK_BITS;
/// Atomic to the block only.
const OF_BLOCK: u64 = 1 << 61;
const STRONG: u64 = 1 << 62;
const SOMEBODY: u64 = 1 << 63;

impl Stamp {
    /// An access by a thread of a block.
    #[inline]
    pub(crate) fn new(block: u32, thread: u32, epoch: u32, strong: bool) -> Self {
        let strong = if strong { STRONG } else { 0 };
        let (block, thread) = (u64::from(block), u64::from(thread));
        let epoch = u64::from(epoch.min(LAST_EPOCH));
        Self(SOMEBODY | strong | block << (EPOCH_BITS + THREAD_BITS) | thread << EPOCH_BITS | epoch)
    }

    /// Of these bytes of a word (a bit for each).
    #[inline]
    pub(crate) fn of_bytes(self, bytes: u32) -> Self {
        Self(self.0 | u64::from(bytes & 0xF) << BYTES_SHIFT)
    }

    /// Of a strong access: strong to threads of its block only.
    #[inline]
    pub(crate) fn of_block(self) -> Self {
        Self(self.0 | OF_BLOCK)
    }

    /// Whether both are strong to each other.
    #[inline]
    pub(crate) fn is_atomic_to(self, other: Self) -> bool {
        self.is_strong()
            && other.is_strong()
            && ((self.0 | other.0) & OF_BLOCK == 0 || self.block() == other.block())
    }

    #[inline]
    pub(crate) fn is_somebody(self) -> bool {
        self.0 & SOMEBODY != 0
    }

    #[inline]
    pub(crate) fn is_strong(self) -> bool {
        self.0 & STRONG != 0
    }

    #[inline]
    pub(crate) fn bytes(self) -> u32 {
        (self.0 >> BYTES_SHIFT) as u32 & 0xF
    }

    #[inline]
    pub(crate) fn block(self) -> u32 {
        (self.0 >> (EPOCH_BITS + THREAD_BITS)) as u32 & ((1 << BLOCK_BITS) - 1)
    }

    #[inline]
    pub(crate) fn thread(self) -> u32 {
        (self.0 >> EPOCH_BITS) as u32 & ((1 << THREAD_BITS) - 1)
    }

    #[inline]
    fn epoch(self) -> u32 {
        self.0 as u32 & LAST_EPOCH
    }

    #[inline]
    pub(crate) fn same_thread(self, other: Self) -> bool {
        const WHO: u64 = ((1 << (THREAD_BITS + BLOCK_BITS)) - 1) << EPOCH_BITS;
        (self.0 ^ other.0) & WHO == 0
    }

    #[inline]
    pub(crate) fn same_warp(self, other: Self) -> bool {
        const WHO: u64 = ((1 << (THREAD_BITS + BLOCK_BITS - 5)) - 1) << (EPOCH_BITS + 5);
        (self.0 ^ other.0) & WHO == 0
    }
}

/// What a warp knows of its block.
#[derive(Clone, Debug)]
struct Knowledge {
    /// Accesses of an own lane before this epoch are known to that lane; the present epoch, while
    /// this is live.
    epoch: u32,
    /// Accesses of own lanes before this epoch are known to all of them.
    together: u32,
    /// By lane and lane, where lanes know more of each other than that.
    lanes: Option<Box<[[u32; WARP]; WARP]>>,
    /// By warp: its accesses before this epoch are known.
    warps: Box<[u32]>,
}

impl Knowledge {
    /// Whether an access by a thread of the block was ordered before what lane `reader` of `warp`
    /// did next.
    #[inline]
    fn covers(&self, warp: usize, reader: Lane, access: Stamp) -> bool {
        let (thread, epoch) = (access.thread() as usize, access.epoch());
        let (other_warp, lane) = (thread / WARP, thread % WARP);
        if other_warp != warp {
            return self.warps.get(other_warp).is_some_and(|&known| epoch < known);
        }
        if lane == reader {
            return epoch < self.epoch;
        }
        epoch < self.together
            || self.lanes.as_ref().is_some_and(|lanes| epoch < lanes[reader % WARP][lane])
    }
}

/// A thread made its accesses known at a place.
#[derive(Clone, Debug)]
struct Release {
    block: u32,
    warp: usize,
    lane: Lane,
    /// What it knew at its last fence, with the scope of that.
    fenced: Option<(Scope, Arc<Knowledge>)>,
    /// What it knows at the release, and for each thread the epoch of its last fence.
    now: Arc<(Knowledge, Box<[u32]>)>,
    acquired: Acquired,
}

impl Release {
    fn covers(&self, access: Stamp, within_block: bool) -> bool {
        let thread = access.thread() as usize;
        // The access that released, and those before it at the same place.
        if access.is_strong() && thread == self.warp * WARP + self.lane {
            return true;
        }
        if let Some((scope, knowledge)) = &self.fenced
            && (within_block || *scope == Scope::Device)
            && knowledge.covers(self.warp, self.lane, access)
        {
            return true;
        }
        let (now, fences) = &*self.now;
        let is_fenced = fences.get(thread).is_some_and(|&fence| access.epoch() < fence);
        is_fenced && now.covers(self.warp, self.lane, access)
    }
}

/// Everything that was released, by place.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    places: HashMap<u64, Vec<Release>>,
}

/// What a thread has acquired: of each place, how many releases.
type Acquired = Option<Arc<Vec<(Place, usize)>>>;

/// A place where something is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// In the block's shared memory.
    Shared(u64),
    /// In device memory.
    Global(u64),
}

impl Releases {
    fn at(&self, place: Place) -> &[Release] {
        let (Place::Shared(address) | Place::Global(address)) = place;
        self.places.get(&address).map_or(&[], Vec::as_slice)
    }

    fn push(&mut self, place: Place, release: Release) {
        let (Place::Shared(address) | Place::Global(address)) = place;
        self.places.entry(address).or_default().push(release);
    }
}

/// The releases in device memory, as the machine lends them to a block.
#[derive(Debug)]
pub(crate) enum Log<'r> {
    /// While blocks run in parallel: to read.
    Parallel(&'r Releases),
    /// While it is the block's turn.
    Turn(&'r mut Releases),
}

impl Log<'_> {
    #[inline]
    pub(crate) fn all(&self) -> &Releases {
        match self {
            Self::Parallel(all) => all,
            Self::Turn(all) => all,
        }
    }

    fn turn(&mut self) -> Option<&mut Releases> {
        match self {
            Self::Parallel(_) => None,
            Self::Turn(all) => Some(all),
        }
    }
}

/// The order within a block, and what it knows of others.
#[derive(Debug)]
pub(crate) struct BlockOrder {
    block: u32,
    warps: Vec<WarpOrder>,
    /// Releases in shared memory.
    shared: Releases,
    has_fenced: bool,
    has_acquired: bool,
}

#[derive(Debug)]
struct WarpOrder {
    knowledge: Knowledge,
    /// Knowledge at each lane's last fence.
    fenced: [Option<(Scope, Arc<Knowledge>)>; WARP],
    /// Strong accesses since the last fence: acquired at the next one.
    seen: [Acquired; WARP],
    acquired: [Acquired; WARP],
}

impl BlockOrder {
    /// Nothing is known.
    pub(crate) fn new(block: u32, warps: usize) -> Self {
        let warp = || WarpOrder {
            knowledge: Knowledge {
                epoch: 1,
                together: 0,
                lanes: None,
                warps: vec![0; warps].into_boxed_slice(),
            },
            fenced: [const { None }; WARP],
            seen: [const { None }; WARP],
            acquired: [const { None }; WARP],
        };
        Self {
            block,
            warps: (0..warps).map(|_| warp()).collect(),
            shared: Releases::default(),
            has_fenced: false,
            has_acquired: false,
        }
    }

    /// The stamp of what a lane of a warp does now.
    #[inline]
    pub(crate) fn stamp(&self, warp: usize, lane: Lane, strong: bool) -> Stamp {
        let epoch = self.warps.get(warp).map_or(0, |warp| warp.knowledge.epoch);
        Stamp::new(self.block, (warp * WARP + lane) as u32, epoch, strong)
    }

    /// Whether an access is ordered before what a lane does now.
    #[inline]
    pub(crate) fn is_before(&self, access: Stamp, warp: usize, lane: Lane, all: &Releases) -> bool {
        let Some(own) = self.warps.get(warp) else { return true };
        if access.block() == self.block {
            if access.thread() as usize == warp * WARP + lane {
                return true;
            }
            if own.knowledge.covers(warp, lane, access) {
                return true;
            }
        }
        self.has_acquired
            && own
                .acquired
                .get(lane)
                .is_some_and(|acquired| self.covers(acquired, access, all, &mut HashMap::new()))
    }

    /// Whether an access was handed over through what was acquired, directly or through others.
    /// `seen` says of each place how many releases were looked at.
    #[cold]
    fn covers(
        &self,
        acquired: &Acquired,
        access: Stamp,
        all: &Releases,
        seen: &mut HashMap<Place, usize>,
    ) -> bool {
        let within_block = access.block() == self.block;
        let mut left: Vec<Acquired> = vec![acquired.clone()];
        while let Some(acquired) = left.pop() {
            for &(place, count) in acquired.iter().flat_map(|acquired| acquired.iter()) {
                let releases = match place {
                    Place::Shared(_) => self.shared.at(place),
                    Place::Global(_) => all.at(place),
                };
                let looked_at = seen.insert(place, count).unwrap_or(0);
                for release in releases.iter().take(count).skip(looked_at) {
                    if release.block == access.block() && release.covers(access, within_block) {
                        return true;
                    }
                    if release.acquired.is_some() {
                        left.push(release.acquired.clone());
                    }
                }
                if looked_at > count {
                    seen.insert(place, looked_at);
                }
            }
        }
        false
    }

    /// `bar.warp.sync` of some lanes.
    pub(crate) fn warp_barrier(&mut self, warp: usize, lanes: u32, all_lanes: u32) {
        let has_acquired = self.has_acquired;
        let Some(own) = self.warps.get_mut(warp) else { return };
        if has_acquired {
            join_acquired(own, lanes);
        }
        let knowledge = &mut own.knowledge;
        knowledge.epoch = knowledge.epoch.saturating_add(1);
        if lanes == all_lanes {
            knowledge.together = knowledge.epoch;
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
            joined[lane] = knowledge.epoch;
        }
        for lane in lanes_of(lanes) {
            table[lane] = joined;
        }
    }

    /// A warp arrives at a barrier. Gives its epoch from then on.
    pub(crate) fn arrive(&mut self, warp: usize) -> u32 {
        let Some(own) = self.warps.get_mut(warp) else { return 0 };
        own.knowledge.epoch = own.knowledge.epoch.saturating_add(1);
        own.knowledge.epoch
    }

    /// A barrier opens: what those that arrived did before is known to those that waited. With each
    /// warp comes the epoch that it had from its arrival on.
    pub(crate) fn open_barrier(&mut self, arrived: &[(usize, u32)], waited: &[(usize, u32)]) {
        let mut joined = vec![0; self.warps.len()];
        let mut acquired: Acquired = None;
        for &(warp, epoch) in arrived {
            let Some(own) = self.warps.get(warp) else { continue };
            for (joined, &known) in joined.iter_mut().zip(&own.knowledge.warps) {
                *joined = known.max(*joined);
            }
            if let Some(slot) = joined.get_mut(warp) {
                *slot = epoch.max(*slot);
            }
            if self.has_acquired {
                own.acquired.iter().for_each(|other| join(&mut acquired, other));
            }
        }
        for &(warp, epoch) in waited {
            let Some(own) = self.warps.get_mut(warp) else { continue };
            for (known, &joined) in own.knowledge.warps.iter_mut().zip(&joined) {
                *known = joined.max(*known);
            }
            own.knowledge.together = epoch;
            own.knowledge.lanes = None;
            if acquired.is_some() {
                own.acquired.fill(acquired.clone());
            }
        }
    }

    /// Some lanes of a warp execute a fence.
    pub(crate) fn fence(&mut self, warp: usize, lanes: u32, scope: Scope) {
        let Some(own) = self.warps.get_mut(warp) else { return };
        self.has_fenced = true;
        own.knowledge.epoch = own.knowledge.epoch.saturating_add(1);
        let snapshot = Arc::new(own.knowledge.clone());
        for lane in lanes_of(lanes) {
            own.fenced[lane] = Some((scope, Arc::clone(&snapshot)));
            let seen = own.seen[lane].take();
            if seen.is_some() {
                self.has_acquired = true;
                join(&mut own.acquired[lane], &seen);
            }
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
        let all = log.turn();
        let released = match (place, &all) {
            (Place::Shared(_), _) => self.shared.at(place).len(),
            (Place::Global(_), Some(all)) => all.at(place).len(),
            (Place::Global(_), None) => 0,
        };
        let block = self.block;
        let fences =
            |warps: &[WarpOrder]| -> Box<[u32]> { warps.iter().flat_map(last_fences).collect() };
        let release = if effect.writes && (self.has_fenced || effect.releases) {
            let fences = fences(&self.warps);
            self.warps.get_mut(warp).map(|own| {
                if effect.releases {
                    own.knowledge.epoch = own.knowledge.epoch.saturating_add(1);
                }
                let now = Arc::new((own.knowledge.clone(), fences));
                let fenced = if effect.releases {
                    Some((Scope::Device, Arc::new(own.knowledge.clone())))
                } else {
                    own.fenced[lane % WARP].clone()
                };
                let acquired = own.acquired[lane % WARP].clone();
                Release { block, warp, lane, fenced, now, acquired }
            })
        } else {
            None
        };
        if released > 0
            && effect.reads
            && let Some(own) = self.warps.get_mut(warp)
        {
            let seen = Some(Arc::new(vec![(place, released)]));
            if effect.acquires {
                self.has_acquired = true;
                join(&mut own.acquired[lane % WARP], &seen);
            } else {
                join(&mut own.seen[lane % WARP], &seen);
            }
        }
        if let Some(release) = release {
            match (place, all) {
                (Place::Shared(_), _) => self.shared.push(place, release),
                (Place::Global(_), Some(all)) => all.push(place, release),
                (Place::Global(_), None) => {}
            }
        }
    }
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
}

/// Of each lane, the epoch of its last fence for the device.
fn last_fences(warp: &WarpOrder) -> impl Iterator<Item = u32> {
    warp.fenced.iter().map(|fenced| match fenced {
        Some((Scope::Device, knowledge)) => knowledge.epoch,
        _ => 0,
    })
}

fn join_acquired(own: &mut WarpOrder, lanes: u32) {
    let mut joined = None;
    lanes_of(lanes).for_each(|lane| join(&mut joined, &own.acquired[lane]));
    if joined.is_some() {
        lanes_of(lanes).for_each(|lane| own.acquired[lane] = joined.clone());
    }
}

fn join(into: &mut Acquired, other: &Acquired) {
    let Some(other) = other else { return };
    let Some(own) = into else {
        *into = Some(Arc::clone(other));
        return;
    };
    if Arc::ptr_eq(own, other) {
        return;
    }
    let own = Arc::make_mut(own);
    for &(place, count) in other.iter() {
        match own.iter_mut().find(|(known, _)| *known == place) {
            Some((_, known)) => *known = count.max(*known),
            None => own.push((place, count)),
        }
    }
}

/// Numbers of the lanes in a mask.
#[inline]
pub(crate) fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}
