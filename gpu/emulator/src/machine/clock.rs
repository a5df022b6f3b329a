//! What is known of all threads of a grid: a vector clock, one for all that share it.
//!
//! A clock says of each thread up to which epoch its accesses are known. The entries of a block are
//! a leaf of a tree by block numbers, and trees share what they have in common: handing a clock on
//! is free, and joining two takes the time of their differences. A ticket that 65,536 blocks take
//! thus costs each of them a path of the tree, not a copy of what all before it have done.

use std::sync::Arc;

use super::stamp::Stamp;
use crate::code::WARP;

/// Children of a node, as bits of the block's number.
const FAN_BITS: u32 = 4;
const FAN: usize = 1 << FAN_BITS;

/// Of each thread, the epoch before which its accesses are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Option<Arc<Node>>);

#[derive(Debug)]
enum Node {
    /// The bits of the block's number from `shift` on choose the child.
    Branch { shift: u32, children: [Option<Arc<Node>>; FAN] },
    /// Of a block, by warp.
    Leaf(Box<[WarpClock]>),
}

/// Of the threads of a warp, the epochs before which their accesses are known: the greater of both.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarpClock {
    /// Of all lanes.
    pub(crate) all: u32,
    /// Of each lane.
    pub(crate) lanes: Option<Arc<[u32; WARP]>>,
}

/// How high the trees of a grid of so many blocks are.
pub(crate) fn levels(blocks: u32) -> u32 {
    (u32::BITS - blocks.saturating_sub(1).leading_zeros()).div_ceil(FAN_BITS)
}

impl Clock {
    /// What is known of one block, in a tree of that height.
    pub(crate) fn of_block(block: u32, levels: u32, warps: Box<[WarpClock]>) -> Self {
        let mut node = Arc::new(Node::Leaf(warps));
        for level in 0..levels {
            let shift = level * FAN_BITS;
            let mut children = [const { None }; FAN];
            children[child(block, shift)] = Some(node);
            node = Arc::new(Node::Branch { shift, children });
        }
        Self(Some(node))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an access is known.
    pub(crate) fn covers(&self, access: Stamp) -> bool {
        let mut node = self.0.as_deref();
        loop {
            match node {
                None => return false,
                Some(Node::Branch { shift, children }) => {
                    node = children[child(access.block(), *shift)].as_deref();
                }
                Some(Node::Leaf(warps)) => {
                    let thread = access.thread() as usize;
                    let warp = warps.get(thread / WARP);
                    return warp.is_some_and(|warp| access.epoch() < warp.of(thread % WARP));
                }
            }
        }
    }

    /// Whether anything of a block is known.
    pub(crate) fn knows(&self, block: u32) -> bool {
        let mut node = self.0.as_deref();
        while let Some(Node::Branch { shift, children }) = node {
            node = children[child(block, *shift)].as_deref();
        }
        node.is_some()
    }

    /// Adds what another one knows.
    pub(crate) fn join(&mut self, other: &Self) {
        self.0 = match (self.0.take(), &other.0) {
            (None, theirs) => theirs.clone(),
            (own, None) => own,
            (Some(own), Some(theirs)) => Some(joined(&own, theirs)),
        };
    }
}

fn child(block: u32, shift: u32) -> usize {
    (block >> shift) as usize % FAN
}

/// What both know, as one of the two where that knows as much, so that it stays shared.
fn joined(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    let (both, _, _) = joined_and_compared(a, b);
    both
}

/// What both know, and whether it is what each knows.
fn joined_and_compared(a: &Arc<Node>, b: &Arc<Node>) -> (Arc<Node>, bool, bool) {
    if Arc::ptr_eq(a, b) {
        return (Arc::clone(a), true, true);
    }
    let (mut is_a, mut is_b) = (true, true);
    let made = match (&**a, &**b) {
        (Node::Branch { shift, children: of_a }, Node::Branch { children: of_b, .. }) => {
            let children = std::array::from_fn(|index| match (&of_a[index], &of_b[index]) {
                (None, None) => None,
                (Some(one), None) => {
                    is_b = false;
                    Some(Arc::clone(one))
                }
                (None, Some(one)) => {
                    is_a = false;
                    Some(Arc::clone(one))
                }
                (Some(one), Some(other)) => {
                    let (both, is_one, is_other) = joined_and_compared(one, other);
                    is_a &= is_one;
                    is_b &= is_other;
                    Some(both)
                }
            });
            Node::Branch { shift: *shift, children }
        }
        (Node::Leaf(of_a), Node::Leaf(of_b)) => {
            let is_within = |inner: &[WarpClock], outer: &[WarpClock]| {
                inner.iter().zip(outer).all(|(inner, outer)| inner.is_within(outer))
            };
            (is_a, is_b) = (is_within(of_b, of_a), is_within(of_a, of_b));
            if is_a || is_b {
                Node::Leaf(Box::default())
            } else {
                Node::Leaf(of_a.iter().zip(of_b).map(|(one, other)| one.joined(other)).collect())
            }
        }
        // Trees of a grid have the same height.
        _ => return (Arc::clone(a), true, false),
    };
    match (is_a, is_b) {
        (true, _) => (Arc::clone(a), true, is_b),
        (_, true) => (Arc::clone(b), false, true),
        _ => (Arc::new(made), false, false),
    }
}

impl WarpClock {
    /// The epoch before which a lane's accesses are known.
    #[inline]
    fn of(&self, lane: usize) -> u32 {
        self.lanes.as_ref().map_or(self.all, |lanes| lanes[lane].max(self.all))
    }

    fn is_within(&self, other: &Self) -> bool {
        match (&self.lanes, &other.lanes) {
            (None, None) => self.all <= other.all,
            (Some(own), Some(theirs)) if Arc::ptr_eq(own, theirs) && self.all <= other.all => true,
            _ => (0..WARP).all(|lane| self.of(lane) <= other.of(lane)),
        }
    }

    /// What both know together.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let all = self.all.max(other.all);
        let lanes = match (&self.lanes, &other.lanes) {
            (None, None) => None,
            (Some(lanes), None) | (None, Some(lanes)) => {
                lanes.iter().any(|&lane| lane > all).then(|| Arc::clone(lanes))
            }
            (Some(own), Some(theirs)) if Arc::ptr_eq(own, theirs) => Some(Arc::clone(own)),
            (Some(_), Some(_)) => {
                Some(Arc::new(std::array::from_fn(|lane| self.of(lane).max(other.of(lane)))))
            }
        };
        Self { all, lanes }
    }

    /// What both know.
    pub(crate) fn shared(&self, other: &Self) -> Self {
        let all = self.all.min(other.all);
        let lanes = match (&self.lanes, &other.lanes) {
            (None, None) => None,
            _ => Some(Arc::new(std::array::from_fn(|lane| self.of(lane).min(other.of(lane))))),
        };
        Self { all, lanes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(block: u32, epoch: u32) -> Clock {
        let warps = Box::new([WarpClock { all: epoch, lanes: None }]);
        Clock::of_block(block, levels(70_000), warps)
    }

    fn access(block: u32, epoch: u32) -> Stamp {
        Stamp::new(block, 3, epoch, false)
    }

    #[test]
    fn clocks_know_what_was_joined() {
        let mut joined = Clock::default();
        for block in [5, 17, 69_999] {
            joined.join(&clock(block, block));
        }
        for block in [5, 17, 69_999] {
            assert!(joined.covers(access(block, block - 1)));
            assert!(!joined.covers(access(block, block)));
            assert!(!joined.covers(access(block + 1, 0)));
        }
    }

    #[test]
    fn what_is_known_already_is_not_copied() {
        let mut all = clock(1, 7);
        all.join(&clock(2, 8));
        let (before, mut less) = (all.clone(), clock(1, 7));
        all.join(&less);
        less.join(&all);
        let same = |a: &Clock, b: &Clock| Arc::ptr_eq(a.0.as_ref().unwrap(), b.0.as_ref().unwrap());
        assert!(same(&all, &before) && same(&less, &before));
    }

    #[test]
    fn lanes_are_known_apart() {
        let mut lanes = [0; WARP];
        lanes[3] = 9;
        let one = WarpClock { all: 4, lanes: Some(Arc::new(lanes)) };
        let other = WarpClock { all: 6, lanes: None };
        let (both, common) = (one.joined(&other), one.shared(&other));
        assert_eq!([both.of(3), both.of(4)], [9, 6]);
        assert_eq!([common.of(3), common.of(4)], [6, 4]);
        assert!(one.is_within(&both) && common.is_within(&other) && !both.is_within(&one));
    }

    #[test]
    fn heights_follow_the_grid() {
        assert_eq!([1, 2, 16, 17, 256, 257].map(levels), [0, 1, 1, 2, 2, 3]);
    }
}
