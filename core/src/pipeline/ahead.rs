//! Making things while those before them are used.

/// Makes something of each item, and gives all of it to `take` in the order of the items.
///
/// With `std`, threads of their own make it, as many as rayon has and at most `most` items ahead of
/// what was taken, so that what takes long, as compiling what was never compiled before does, holds
/// up no others. A thread of rayon's that waits for pieces of its packing would begin another item
/// meanwhile, and finish its own only after that one was compiled.
#[cfg(feature = "std")]
pub(super) fn in_order<I: Sync, M: Send, R>(
    items: &[I],
    most: usize,
    make: impl Fn(&I) -> M + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = M>) -> R,
) -> R {
    use std::sync::mpsc::sync_channel;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    // Of one item nothing is made ahead.
    if items.len() < 2 {
        return take(&mut items.iter().map(make));
    }
    // Where each will arrive. It holds makers up when nobody takes them, and ends them when nobody
    // will.
    let (coming, made) = sync_channel(most);
    let waiting = Mutex::new((items.iter(), coming));
    let next = || {
        // Held until there is room, so that the order is that of the items.
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (items, coming) = &mut *waiting;
        let item = items.next()?;
        let (made, receiver) = sync_channel(1);
        coming.send(receiver).ok()?;
        Some((item, made))
    };
    let work = || {
        while let Some((item, made)) = next() {
            // Nobody waits for it when taking has ended.
            drop(made.send(make(item)));
        }
    };
    thread::scope(|scope| {
        let workers = rayon::current_num_threads().min(items.len());
        let spawn = |_: &usize| thread::Builder::new().spawn_scoped(scope, work).is_ok();
        // With fewer threads than were asked for it takes longer.
        match (0..workers).filter(spawn).count() {
            0 => take(&mut items.iter().map(&make)),
            // A maker that panicked takes its scope, and so this function, down with it.
            _ => take(&mut made.into_iter().map_while(|made| made.recv().ok()).take(items.len())),
        }
    })
}

/// Makes something of each item, and gives all of it to `take` in the order of the items.
#[cfg(not(feature = "std"))]
pub(super) fn in_order<I, M, R>(
    items: &[I],
    _: usize,
    make: impl Fn(&I) -> M,
    take: impl FnOnce(&mut dyn Iterator<Item = M>) -> R,
) -> R {
    take(&mut items.iter().map(make))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_order_is_that_of_the_items_whatever_takes_longest() {
        let items: Vec<u64> = (0..40).collect();
        let make = |&item: &u64| {
            thread::sleep(Duration::from_micros((item % 7) * 300));
            item
        };
        assert_eq!(in_order(&items, 5, make, |made| made.collect::<Vec<_>>()), items);
    }

    #[test]
    fn no_more_is_made_ahead_than_was_said() {
        let (items, most) = ([(); 60], 3);
        let (made, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let make = |&(): &()| {
            let ahead = made.fetch_add(1, SeqCst) - taken.load(SeqCst);
            // One each is with whoever makes and with whoever takes.
            assert!(ahead <= most + 2, "{ahead}");
        };
        in_order(&items, most, make, |made| {
            for () in made {
                thread::sleep(Duration::from_micros(200));
                taken.fetch_add(1, SeqCst);
            }
        });
        assert_eq!(taken.into_inner(), items.len());
    }

    #[test]
    fn nothing_more_is_made_once_nobody_takes_it() {
        let items = [(); 1000];
        let made = AtomicUsize::new(0);
        let make = |&(): &()| made.fetch_add(1, SeqCst);
        assert_eq!(in_order(&items, 2, make, |made| made.next()), Some(0));
        assert!(made.into_inner() < items.len());
    }
}
