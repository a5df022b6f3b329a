//! Room for numbers that operators leave to those after them, of each thread: getting it from the
//! system takes as long as many operators do.

use std::cell::RefCell;
use std::collections::VecDeque;

/// So many pieces of room are kept, the newest.
const MOST: usize = 32;
/// Pieces for more numbers, which are 4 MB, go back to the system.
const MOST_NUMBERS: usize = 1 << 20;

thread_local! {
    static POOL: RefCell<VecDeque<Vec<f32>>> = const { RefCell::new(VecDeque::new()) };
}

/// Room for numbers that the caller writes, every one of them: what they are until then is left
/// over from other operators.
pub(in super::super) fn take(count: usize) -> Vec<f32> {
    let suits = |room: &Vec<f32>| room.capacity() >= count && room.capacity() / 4 <= count;
    // There is no pool any more while the thread ends.
    let found = POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        let at = pool.iter().rposition(suits)?;
        pool.remove(at)
    });
    match found.ok().flatten() {
        Some(mut room) => {
            room.resize(count, 0.0);
            room
        }
        None => vec![0.0; count],
    }
}

/// Leaves room to others.
pub(super) fn give(room: Vec<f32>) {
    if (1..=MOST_NUMBERS).contains(&room.capacity()) {
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() == MOST {
                pool.pop_front();
            }
            pool.push_back(room);
        });
    }
}
