//! The floating-point environment of the caller, out of the way: programs that trap exceptions,
//! that round otherwise, or that were compiled with `-ffast-math`, which takes subnormal numbers
//! for 0, are neither ended by the library nor change what it computes.

#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};

/// An environment as `<fenv.h>` stores it; no C library for Linux needs so much.
#[cfg(target_os = "linux")]
#[repr(C, align(16))]
struct Stored([u8; 64]);

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn fegetenv(environment: *mut Stored) -> c_int;
    fn fesetenv(environment: *const c_void) -> c_int;
}

/// `FE_DFL_ENV`, as glibc and musl define it: that of the beginning of a program.
#[cfg(target_os = "linux")]
const USUAL: *const c_void = std::ptr::without_provenance(usize::MAX);

/// The usual environment for this thread, and for those that it starts, until this is dropped: then
/// the caller's is there again.
pub(crate) struct FloatEnvironment {
    #[cfg(target_os = "linux")]
    callers: Option<Stored>,
}

impl FloatEnvironment {
    pub(crate) fn usual() -> Self {
        #[cfg(target_os = "linux")]
        {
            let mut stored = Stored([0; 64]);
            // SAFETY: there is room for an environment.
            let is_stored = unsafe { fegetenv(&raw mut stored) } == 0;
            if is_stored {
                // SAFETY: it is the constant that stands for an environment.
                let _ = unsafe { fesetenv(USUAL) };
            }
            Self { callers: is_stored.then_some(stored) }
        }
        #[cfg(not(target_os = "linux"))]
        Self {}
    }
}

#[cfg(target_os = "linux")]
impl Drop for FloatEnvironment {
    fn drop(&mut self) {
        if let Some(stored) = &self.callers {
            // SAFETY: it was stored by fegetenv.
            let _ = unsafe { fesetenv((&raw const *stored).cast()) };
        }
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use std::arch::asm;
    use std::hint::black_box;

    use super::*;

    /// MXCSR: exceptions are masked by bits 7 to 12, subnormal operands are 0 by bit 6 and results
    /// by bit 15.
    fn control() -> u32 {
        let mut control = 0_u32;
        // SAFETY: it stores four bytes there.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut control) };
        control
    }

    fn set_control(control: u32) {
        // SAFETY: it loads four bytes from there, of which all bits that are set have a meaning;
        // they are put back before anything else is computed.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control) };
    }

    #[test]
    fn callers_keep_theirs_and_the_library_has_the_usual_one() {
        let before = control();
        // Traps of invalid operations and divisions by zero; subnormal numbers are 0; rounds up.
        let strange = 0x8040 | (0x1f80 & !0x280) | 0x4000;
        set_control(strange);
        let (sum, nan, inherited) = {
            let _usual = FloatEnvironment::usual();
            let tiny = black_box(f32::MIN_POSITIVE / 4.0);
            let nan = black_box(0.0_f64) / black_box(0.0_f64);
            (black_box(tiny + tiny), nan, std::thread::spawn(control).join())
        };
        let after = control();
        set_control(before);
        assert_eq!(sum, f32::MIN_POSITIVE / 2.0);
        assert!(nan.is_nan());
        assert_eq!(inherited.map(|control| control & !0x3f).ok(), Some(0x1f80));
        assert_eq!(after & !0x3f, strange);
    }
}
