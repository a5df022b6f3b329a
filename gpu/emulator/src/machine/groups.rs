//! Asynchronous copies under way, and the groups that threads wait for.

/// A copy that was issued and not waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) lane: usize,
    /// The instruction that issued it.
    pub(crate) counter: u32,
    /// In shared memory.
    pub(crate) destination: usize,
    /// Up to 16.
    pub(crate) bytes: usize,
    pub(crate) data: [u8; 16],
    /// Whether each byte was read from defined memory.
    pub(crate) defined: bool,
    /// Where in global memory it was read from, and how many bytes.
    pub(crate) source: (u64, u32),
    /// Whether a thread of another block has issued it.
    pub(crate) is_from_elsewhere: bool,
}

/// What a copy has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) data: [u8; 16],
    pub(crate) defined: bool,
    pub(crate) source: (u64, u32),
}

/// Copies under way to one word of shared memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Awaited {
    pub(super) copies: u32,
    /// The instruction that issued the last of them.
    pub(crate) issued_at: u32,
    /// Whether there were several at a time.
    pub(super) were_several: bool,
}

impl Awaited {
    pub(super) fn begin(&mut self, issued_at: u32) {
        self.copies += 1;
        self.issued_at = issued_at;
        self.were_several |= self.copies > 1;
    }
}

/// The copies of a warp, with their lanes.
#[derive(Debug)]
pub(crate) struct Groups<C> {
    /// Those of no group yet.
    pub(super) open: Vec<(usize, C)>,
    /// Groups, oldest first: of which lanes they are, and what is under way in them.
    pub(super) groups: Vec<(u32, Vec<(usize, C)>)>,
}

impl<C> Default for Groups<C> {
    fn default() -> Self {
        Self { open: Vec::new(), groups: Vec::new() }
    }
}

impl<C> Groups<C> {
    pub(crate) fn issue(&mut self, lane: usize, copy: C) {
        self.open.push((lane, copy));
    }

    /// One of some lanes that has not been waited for.
    pub(crate) fn first(&self, lanes: u32) -> Option<&C> {
        let grouped = self.groups.iter().flat_map(|(_, copies)| copies);
        let of_lanes = |(lane, _): &&(usize, C)| lanes >> lane & 1 != 0;
        self.open.iter().chain(grouped).find(of_lanes).map(|(_, copy)| copy)
    }

    /// Makes a group of what some lanes have issued.
    pub(crate) fn commit(&mut self, lanes: u32) {
        let of_lanes = |(lane, _): &(usize, C)| lanes >> lane & 1 != 0;
        let (group, rest) = std::mem::take(&mut self.open).into_iter().partition(of_lanes);
        self.open = rest;
        self.groups.push((lanes, group));
    }

    /// The copies of some lanes that are done when no more than `groups` of each lane's groups are
    /// left, or none at all.
    pub(crate) fn wait(&mut self, lanes: u32, groups: Option<u32>) -> Vec<C> {
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
            done.extend(copies.extract_if(.., |(lane, _)| finished >> *lane & 1 != 0));
        }
        self.groups.retain(|(members, _)| *members != 0);
        if groups.is_none() {
            done.extend(self.open.extract_if(.., |(lane, _)| lanes >> *lane & 1 != 0));
        }
        done.into_iter().map(|(_, copy)| copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(lane: usize, destination: usize) -> Copy {
        Copy {
            lane,
            counter: 0,
            destination,
            bytes: 4,
            data: [0; 16],
            defined: true,
            source: (0, 4),
            is_from_elsewhere: false,
        }
    }

    fn places(done: &[Copy]) -> Vec<usize> {
        let mut places: Vec<_> = done.iter().map(|copy| copy.destination).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn groups_are_done_in_their_order() {
        let mut copies = Groups::default();
        for group in 0..3 {
            copies.issue(0, copy(0, group * 8));
            copies.issue(1, copy(1, group * 8 + 4));
            copies.commit(0b11);
        }
        copies.issue(0, copy(0, 100));
        assert_eq!(places(&copies.wait(0b11, Some(2))), [0, 4]);
        assert_eq!(places(&copies.wait(0b01, Some(0))), [8, 16]);
        assert_eq!(places(&copies.wait(0b11, Some(0))), [12, 20]);
        assert_eq!(places(&copies.wait(0b11, Some(0))), [0; 0]);
        assert_eq!(places(&copies.wait(0b11, None)), [100]);
    }
}
