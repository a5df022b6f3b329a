//! `cp.async`: copies to shared memory that are under way.

/// A copy that was issued and not waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) lane: usize,
    /// In shared memory.
    pub(crate) destination: usize,
    /// Up to 16.
    pub(crate) bytes: usize,
    pub(crate) data: [u8; 16],
    /// Whether each byte was read from defined memory.
    pub(crate) defined: bool,
}

/// The copies of a warp.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Those of no group yet.
    open: Vec<Copy>,
    /// Groups, oldest first: of which lanes they are, and what is under way in them.
    groups: Vec<(u32, Vec<Copy>)>,
}

impl Copies {
    pub(crate) fn issue(&mut self, copy: Copy) {
        self.open.push(copy);
    }

    /// Makes a group of what some lanes have issued.
    pub(crate) fn commit(&mut self, lanes: u32) {
        let of_lanes = |copy: &Copy| lanes >> copy.lane & 1 != 0;
        let (group, rest) = std::mem::take(&mut self.open).into_iter().partition(of_lanes);
        self.open = rest;
        self.groups.push((lanes, group));
    }

    /// The copies of some lanes that are done when no more than `groups` of each lane's groups are left, or none at
    /// all.
    pub(crate) fn wait(&mut self, lanes: u32, groups: Option<u32>) -> Vec<Copy> {
        let mut done = Vec::new();
        let mut left = [groups.unwrap_or(0); 32];
        for (members, copies) in self.groups.iter_mut().rev() {
            let mut finished = 0;
            for (lane, left) in left.iter_mut().enumerate() {
                if *members & lanes & 1 << lane == 0 {
                    continue;
                }
                if *left == 0 {
                    finished |= 1 << lane;
                } else {
                    *left -= 1;
                }
            }
            *members &= !finished;
            copies.retain(|copy| {
                let is_done = finished >> copy.lane & 1 != 0;
                if is_done {
                    done.push(*copy);
                }
                !is_done
            });
        }
        self.groups.retain(|(members, _)| *members != 0);
        if groups.is_none() {
            self.open.retain(|copy| {
                let is_done = lanes >> copy.lane & 1 != 0;
                if is_done {
                    done.push(*copy);
                }
                !is_done
            });
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(lane: usize, destination: usize) -> Copy {
        Copy { lane, destination, bytes: 4, data: [0; 16], defined: true }
    }

    fn places(done: &[Copy]) -> Vec<usize> {
        let mut places: Vec<_> = done.iter().map(|copy| copy.destination).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn groups_are_done_in_their_order() {
        let mut copies = Copies::default();
        for group in 0..3 {
            copies.issue(copy(0, group * 8));
            copies.issue(copy(1, group * 8 + 4));
            copies.commit(0b11);
        }
        copies.issue(copy(0, 100));
        assert_eq!(places(&copies.wait(0b11, Some(2))), [0, 4]);
        assert_eq!(places(&copies.wait(0b01, Some(0))), [8, 16]);
        assert_eq!(places(&copies.wait(0b11, Some(0))), [12, 20]);
        assert_eq!(places(&copies.wait(0b11, Some(0))), [0; 0]);
        assert_eq!(places(&copies.wait(0b11, None)), [100]);
    }
}
