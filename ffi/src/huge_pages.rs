//! The library's allocator: the system's, which backs large arrays with huge pages.
//!
//! Planning touches a matrix of a million entries a few times over in memory that is new each time.
//! Most of that time goes into page faults, of which a huge page needs one where pages of 4 KB need
//! 512. Only what this library allocates is advised, not what the application around it does.

use std::alloc::{GlobalAlloc, Layout, System};

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Bytes from which huge pages are asked for: two of them at least, on x86-64.
const LARGE: usize = 4 << 20;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

struct HugePages;

impl HugePages {
    /// Asks the kernel for huge pages where all of an allocation's pages are its own.
    fn advise(allocation: *mut u8, bytes: usize) {
        if bytes < LARGE || allocation.is_null() {
            return;
        }
        let page = page_size();
        let before = allocation.align_offset(page);
        let length = bytes.saturating_sub(before) / page * page;
        // SAFETY: the pages lie within the allocation, and the advice leaves what is in them as it
        // is. A kernel without huge pages refuses, and nothing is lost.
        let _ = unsafe {
            madvise(allocation.wrapping_add(before).cast(), length, Advice::LinuxHugepage)
        };
    }
}

// SAFETY: the memory is the system allocator's, which is given every argument as it came.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's contract, as in the functions that follow.
        let allocation = unsafe { System.alloc(layout) };
        Self::advise(allocation, layout.size());
        allocation
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let allocation = unsafe { System.alloc_zeroed(layout) };
        Self::advise(allocation, layout.size());
        allocation
    }

    unsafe fn realloc(&self, allocation: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let allocation = unsafe { System.realloc(allocation, layout, bytes) };
        Self::advise(allocation, bytes);
        allocation
    }

    unsafe fn dealloc(&self, allocation: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(allocation, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::hint::black_box;

    use super::*;

    /// Flags of the mapping that an address lies in, as the kernel lists them.
    fn flags_at(address: usize) -> String {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(from), Some(to))) = range.map(|(from, to)| (number(from), number(to)))
            {
                inside = (from..to).contains(&address);
            } else if let (true, Some(flags)) = (inside, line.strip_prefix("VmFlags:")) {
                return flags.to_owned();
            }
        }
        panic!("no mapping has {address:#x}");
    }

    #[test]
    fn large_arrays_are_advised_and_hold_what_is_written() {
        let mut large = black_box(vec![0_u8; 3 * LARGE]);
        let middle = large.as_ptr().addr() + LARGE;
        // A kernel that has none refuses the advice.
        if fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
            assert!(flags_at(middle).split(' ').any(|flag| flag == "hg"));
        }
        assert!(large.iter().all(|&byte| byte == 0));
        large.fill(7);
        large.resize(5 * LARGE, 9);
        assert!(large[..3 * LARGE].iter().all(|&byte| byte == 7));
        assert!(large[3 * LARGE..].iter().all(|&byte| byte == 9));
    }
}
