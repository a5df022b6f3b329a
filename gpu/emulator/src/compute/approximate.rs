//! The functions that the device only approximates.
//!
//! Here they are computed in binary64 and rounded once, so that they are within half a unit in the
//! last place (and a little) of the exact value, where the device is allowed more. Its results
//! therefore differ in the last bits from these; NVIDIA states, for binary32:
//!
//! | function | error of the device |
//! |---|---|
//! | `div.full`, `div.approx` | 2 ulp |
//! | `rcp.approx`, `sqrt.approx` | 1 ulp |
//! | `rsqrt.approx` | relative 2^-22.9 |
//! | `ex2.approx` | 2 ulp |
//! | `lg2.approx` | relative 2^-22.6; absolute 2^-22.6 within (0.5, 2) |
//! | `sin.approx`, `cos.approx` | absolute 2^-20.5 within (-2π, 2π), without bound elsewhere |
//! | `tanh.approx` | relative 2^-11 |
//!
//! In binary64, `rcp.approx.ftz` and `rsqrt.approx.ftz` give 20 bits of mantissa, and so do they
//! here.

/// The function of an opcode.
pub(super) fn function(root: &str) -> Option<fn(f64) -> f64> {
    Some(match root {
        "rsqrt" => |a| 1.0 / a.sqrt(),
        "sin" => f64::sin,
        "cos" => f64::cos,
        "ex2" => f64::exp2,
        "lg2" => f64::log2,
        "tanh" => f64::tanh,
        _ => return None,
    })
}
