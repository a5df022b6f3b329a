//! Lanes of a warp, and threads and blocks by their numbers.

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

/// A block of a grid or a thread of a block by its number, as x, y, z.
pub(crate) fn position(index: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (x.max(1), y.max(1));
    [index % x, index / x % y, index / x / y]
}
