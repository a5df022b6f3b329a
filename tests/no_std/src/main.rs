//! Computes the structure embedding and a reference product of a matrix without std.
//!
//! Exits with 0 when the results are right, with the number of the failed check otherwise. It links
//! only if nothing in `sparserl-core`, nor below it, needs std.

#![no_std]
#![no_main]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int};
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use sparserl_core::matrix::{CsrView, OffsetsView};
use sparserl_core::reference::{compare, multiply};
use sparserl_core::structure::{EMBEDDING_VERSION, EmbeddingConfig, StructureEmbedding};

/// A tridiagonal matrix with an empty row.
const OFFSETS: [u32; 6] = [0, 2, 5, 5, 8, 10];
const COLUMNS: [u32; 10] = [0, 1, 0, 1, 2, 2, 3, 4, 3, 4];
const VALUES: [f32; 10] = [2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0];

/// The first check that fails; 0 when none does.
fn first_failure() -> c_int {
    let Ok(matrix) = CsrView::new(5, 5, OffsetsView::U32(&OFFSETS), &COLUMNS, &VALUES) else {
        return 1;
    };
    let config = EmbeddingConfig::default();
    let embedding = StructureEmbedding::new(matrix, &config);
    if embedding.version != EMBEDDING_VERSION || embedding.n_tokens != matrix.nnz() {
        return 2;
    }
    if embedding.tokens.len() != matrix.nnz() * config.token_width() {
        return 3;
    }
    let features = embedding.features;
    if features.empty_rows != 0.2 || !features.to_array().iter().all(|f| f.is_finite()) {
        return 4;
    }
    let Ok(reference) = multiply(matrix, &[1.0_f32; 5], 1, 1.0, 0.0, &[]) else {
        return 5;
    };
    if !compare(&reference, &[1.0_f32, 0.0, 0.0, 0.0, 1.0]).passed() {
        return 6;
    }
    0
}

unsafe extern "C" {
    safe fn exit(code: c_int) -> !;
}

/// Where the C runtime starts the program.
// SAFETY: no other symbol of the program has this name, and the signature is that of C's main.
#[unsafe(no_mangle)]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    first_failure()
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    exit(101)
}

// The precompiled alloc crate refers to the unwinder even when panics abort.
// SAFETY: the names are those that it refers to; nothing unwinds, so they are never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(102)
}

const HEAP: usize = 4 << 20;

/// Hands out memory from a static array and never takes it back.
struct Bump {
    heap: core::cell::UnsafeCell<[u8; HEAP]>,
    used: AtomicUsize,
}

// SAFETY: `used` is atomic, so that no two allocations share bytes of `heap`, and nothing else
// refers to them.
unsafe impl Sync for Bump {}

// SAFETY: what `alloc` returns is aligned and inside `heap`, and as `used` only grows, disjoint
// from all that it returned before; when that is impossible it returns null.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.heap.get().cast::<u8>();
        // Room for any alignment, so that one atomic addition decides.
        let reserved = layout.size() + layout.align() - 1;
        let start = self.used.fetch_add(reserved, Ordering::Relaxed);
        if start + reserved > HEAP {
            return ptr::null_mut();
        }
        let padding = base.wrapping_add(start).align_offset(layout.align());
        base.wrapping_add(start).wrapping_add(padding)
    }

    unsafe fn dealloc(&self, _memory: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump =
    Bump { heap: core::cell::UnsafeCell::new([0; HEAP]), used: AtomicUsize::new(0) };
