//! binary32 and binary64.

use proptest::prelude::*;

use super::{long, predicate, word};

const NAN: u32 = 0x7fff_ffff;

fn f32_of(text: &str, sources: &[f32]) -> f32 {
    let bits: Vec<u32> = sources.iter().map(|value| value.to_bits()).collect();
    f32::from_bits(word(text, &bits))
}

fn f64_of(text: &str, sources: &[f64]) -> f64 {
    let bits: Vec<u64> = sources.iter().map(|value| value.to_bits()).collect();
    f64::from_bits(long(text, &bits))
}

#[test]
fn no_numbers() {
    let (nan, inf) = (0xffc0_0001, f32::INFINITY.to_bits());
    for text in [
        "add.f32 w0, w1, w2",
        "mul.f32 w0, w1, w2",
        "div.rn.f32 w0, w1, w2",
        "min.f32 w0, w1, w2",
        "add.rz.f32 w0, w1, w2",
    ] {
        assert_eq!(word(text, &[nan, nan]), NAN, "{text}");
    }
    assert_eq!(word("fma.rn.f32 w0, w1, w2, w3", &[inf, 0, 0]), NAN);
    assert_eq!(word("sub.f32 w0, w1, w1", &[inf]), NAN);
    assert_eq!(word("sqrt.rn.f32 w0, w1", &[(-1.0_f32).to_bits()]), NAN);
    assert_eq!(word("add.sat.f32 w0, w1, w1", &[nan]), 0);
    assert_eq!(long("add.f64 l0, l1, l2", &[0xfff0_0000_0000_0001, 0]), 0x7ff8_0000_0000_0000);
    // Only signs change.
    assert_eq!(word("neg.f32 w0, w1", &[nan]), 0x7fc0_0001);
    assert_eq!(word("abs.f32 w0, w1", &[nan]), 0x7fc0_0001);
}

#[test]
fn extremes() {
    let (nan, one, minus_zero) = (0x7fc0_0000, 1.0_f32.to_bits(), 0x8000_0000);
    assert_eq!(word("min.f32 w0, w1, w2", &[nan, one]), one);
    assert_eq!(word("max.f32 w0, w1, w2", &[one, nan]), one);
    assert_eq!(word("min.NaN.f32 w0, w1, w2", &[nan, one]), NAN);
    assert_eq!(word("max.NaN.f32 w0, w1, w2", &[one, nan]), NAN);
    assert_eq!(word("min.f32 w0, w1, w2", &[0, minus_zero]), minus_zero);
    assert_eq!(word("min.f32 w0, w1, w2", &[minus_zero, 0]), minus_zero);
    assert_eq!(word("max.f32 w0, w1, w2", &[0, minus_zero]), 0);
    assert_eq!(word("max.f32 w0, w1, w2", &[minus_zero, 0]), 0);
    assert_eq!(f32_of("min.xorsign.abs.f32 w0, w1, w2", &[-3.0, 2.0]), -2.0);
    assert_eq!(f64_of("max.f64 l0, l1, l2", &[f64::NAN, -2.0]), -2.0);
}

#[test]
fn flushing_and_saturating() {
    assert_eq!(word("add.ftz.f32 w0, w1, w2", &[0x8000_0001, 0x8000_0000]), 0x8000_0000);
    assert_eq!(word("mul.ftz.f32 w0, w1, w2", &[0x0080_0000, 0.5_f32.to_bits()]), 0);
    assert_eq!(word("mul.f32 w0, w1, w2", &[0x0080_0000, 0.5_f32.to_bits()]), 0x0040_0000);
    assert_eq!(word("abs.ftz.f32 w0, w1", &[0x8000_0001]), 0);
    assert_eq!(f32_of("add.sat.f32 w0, w1, w2", &[0.75, 0.5]), 1.0);
    assert_eq!(word("add.sat.f32 w0, w1, w2", &[(-2.0_f32).to_bits(), 0]), 0);
    assert_eq!(f32_of("fma.rn.ftz.sat.f32 w0, w1, w2, w3", &[0.5, 0.5, 0.125]), 0.375);
}

#[test]
fn directions() {
    let (max, tiny) = (f32::MAX, 1e-30);
    assert_eq!(f32_of("add.rp.f32 w0, w1, w2", &[1.0, tiny]), 1.0_f32.next_up());
    assert_eq!(f32_of("add.rm.f32 w0, w1, w2", &[1.0, -tiny]), 1.0_f32.next_down());
    assert_eq!(f32_of("add.rz.f32 w0, w1, w2", &[-1.0, tiny]), -(1.0_f32.next_down()));
    assert_eq!(f32_of("add.rz.f32 w0, w1, w2", &[max, max]), max);
    assert_eq!(f32_of("add.rm.f32 w0, w1, w2", &[-max, -max]), f32::NEG_INFINITY);
    assert_eq!(
        word("add.rm.f32 w0, w1, w2", &[1.0_f32.to_bits(), (-1.0_f32).to_bits()]),
        0x8000_0000
    );
    assert_eq!(
        word("fma.rm.f32 w0, w1, w1, w2", &[1.0_f32.to_bits(), (-1.0_f32).to_bits()]),
        0x8000_0000
    );
    assert_eq!(word("add.rm.f32 w0, w1, w2", &[0, 0]), 0);
    assert_eq!(f32_of("mul.rp.f32 w0, w1, w1", &[tiny]), f32::from_bits(1));
    assert_eq!(f32_of("mul.rz.f32 w0, w1, w1", &[tiny]), 0.0);
    assert_eq!(f64_of("mul.rp.f64 l0, l1, l1", &[1e-300]), f64::from_bits(1));
    assert_eq!(f64_of("add.rz.f64 l0, l1, l1", &[f64::MAX]), f64::MAX);
    assert_eq!(
        f32_of("rcp.rp.f32 w0, w1", &[3.0]),
        (1.0_f32 / 3.0).max(f32::from_bits(0x3eaa_aaab))
    );
    assert_eq!(f32_of("rcp.rz.f32 w0, w1", &[3.0]).to_bits(), 0x3eaa_aaaa);
    assert_eq!(f32_of("sqrt.rm.f32 w0, w1", &[2.0]).to_bits(), 0x3fb5_04f3);
    assert_eq!(f32_of("sqrt.rp.f32 w0, w1", &[2.0]).to_bits(), 0x3fb5_04f4);
    assert_eq!(f32_of("sqrt.rp.f32 w0, w1", &[4.0]), 2.0);
    assert_eq!(f32_of("div.rm.f32 w0, w1, w2", &[1.0, 0.0]), f32::INFINITY);
}

#[test]
fn approximations() {
    assert_eq!(f32_of("ex2.approx.f32 w0, w1", &[3.0]), 8.0);
    assert_eq!(f32_of("ex2.approx.ftz.f32 w0, w1", &[-140.0]), 0.0);
    assert_eq!(f32_of("lg2.approx.f32 w0, w1", &[0.0]), f32::NEG_INFINITY);
    assert_eq!(word("lg2.approx.f32 w0, w1", &[(-1.0_f32).to_bits()]), NAN);
    assert_eq!(f32_of("rsqrt.approx.f32 w0, w1", &[4.0]), 0.5);
    assert_eq!(f32_of("rsqrt.approx.f32 w0, w1", &[-0.0]), f32::NEG_INFINITY);
    assert_eq!(f64_of("rsqrt.approx.f64 l0, l1", &[4.0]), 0.5);
    assert_eq!(f32_of("rcp.approx.f32 w0, w1", &[4.0]), 0.25);
    assert_eq!(f32_of("sqrt.approx.f32 w0, w1", &[4.0]), 2.0);
    assert_eq!(f32_of("sin.approx.f32 w0, w1", &[0.5]), 0.5_f64.sin() as f32);
    assert_eq!(f32_of("cos.approx.f32 w0, w1", &[0.0]), 1.0);
    assert_eq!(f32_of("tanh.approx.f32 w0, w1", &[100.0]), 1.0);
    assert_eq!(long("rcp.approx.ftz.f64 l0, l1", &[3.0_f64.to_bits()]), 0x3fd5_5555_0000_0000);
    assert_eq!(f32_of("div.full.f32 w0, w1, w2", &[1.0, 3.0]), 1.0 / 3.0);
    let large = f32::from_bits(0x7e80_0001);
    assert_eq!(f32_of("div.approx.f32 w0, w1, w2", &[large, large]), 0.0);
    assert_eq!(word("div.approx.f32 w0, w1, w2", &[f32::INFINITY.to_bits(), large.to_bits()]), NAN);
    assert_eq!(f32_of("div.full.f32 w0, w1, w2", &[large, large]), 1.0);
}

#[test]
fn classes() {
    let values = [0.0, 1.0, f32::from_bits(1), f32::INFINITY, f32::NAN];
    for (class, expected) in [
        ("finite", [true, true, true, false, false]),
        ("infinite", [false, false, false, true, false]),
        ("number", [true, true, true, true, false]),
        ("notanumber", [false, false, false, false, true]),
        ("normal", [true, true, false, false, false]),
        ("subnormal", [false, false, true, false, false]),
    ] {
        let text = format!("testp.{class}.f32 p0, w1");
        assert_eq!(values.map(|value| predicate(&text, &[value.to_bits()])), expected, "{class}");
    }
    assert_eq!(f32_of("copysign.f32 w0, w1, w2", &[-1.0, 3.0]), -3.0);
    assert_eq!(f64_of("copysign.f64 l0, l1, l2", &[1.0, -3.0]), 3.0);
}

#[test]
fn pairs() {
    let pack = |a: f32, b: f32| u64::from(a.to_bits()) | u64::from(b.to_bits()) << 32;
    let args = [pack(1.0, -2.0), pack(3.0, 4.0), pack(0.5, 0.25)];
    assert_eq!(long("fma.rn.f32x2 l0, l1, l2, l3", &args), pack(3.5, -7.75));
    assert_eq!(long("add.f32x2 l0, l1, l2", &args), pack(4.0, 2.0));
    assert_eq!(long("mul.f32x2 l0, l1, l2", &args), pack(3.0, -8.0));
}

/// Numbers whose sums and products are near each other, near the ends of the range, and anything.
fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        (any::<i32>(), -3..3).prop_map(|(a, e)| a as f32 * 2_f32.powi(24 * e)),
        (0..4_u32, any::<bool>()).prop_map(|(a, top)| f32::from_bits(if top {
            0x7f80_0001 - a
        } else {
            a
        })),
    ]
}

fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (any::<i64>(), -3..3).prop_map(|(a, e)| a as f64 * 2_f64.powi(53 * e)),
        (0..4_u64, any::<bool>()).prop_map(|(a, top)| f64::from_bits(if top {
            0x7ff0_0000_0000_0001 - a
        } else {
            a
        })),
    ]
}

/// What the four roundings of a result are, of the nearest and of the sign of what is missing from
/// it.
fn directed(nearest: f64, exact_minus_nearest: f64) -> [f64; 3] {
    let (mut down, mut up) = (nearest, nearest);
    if exact_minus_nearest < 0.0 {
        down = nearest.next_down();
    }
    if exact_minus_nearest > 0.0 {
        up = nearest.next_up();
    }
    [if nearest > 0.0 { down } else { up }, down, up]
}

/// Of an exact result in binary64.
fn directed_f32(exact: f64) -> [f32; 3] {
    let nearest = exact as f32;
    let down = if f64::from(nearest) > exact { nearest.next_down() } else { nearest };
    let up = if f64::from(nearest) < exact { nearest.next_up() } else { nearest };
    [if exact > 0.0 { down } else { up }, down, up]
}

fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits()
}

const MODES: [&str; 3] = ["rz", "rm", "rp"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integers_round_like_the_host(a in any_f32(), b in any_f32(), c in any_f32(), x in any_f64(), y in any_f64(), z in any_f64()) {
        use super::super::rounding::{F32, F64, Rounding::Nearest};
        let narrow = |bits: u64| f64::from(f32::from_bits(bits as u32));
        let [i, j, k] = [a, b, c].map(|value| u64::from(value.to_bits()));
        for (name, found, expected) in [
            ("add", F32.add(i, j, Nearest), a + b),
            ("mul", F32.mul(i, j, Nearest), a * b),
            ("fma", F32.fma(i, j, k, Nearest), a.mul_add(b, c)),
            ("div", F32.div(i, j, Nearest), a / b),
            ("sqrt", F32.sqrt(i, Nearest), a.sqrt()),
        ] {
            prop_assert!(same(narrow(found), expected.into()), "{} of {:?}", name, (a, b, c));
        }
        let [i, j, k] = [x, y, z].map(f64::to_bits);
        for (name, found, expected) in [
            ("add", F64.add(i, j, Nearest), x + y),
            ("mul", F64.mul(i, j, Nearest), x * y),
            ("fma", F64.fma(i, j, k, Nearest), x.mul_add(y, z)),
            ("fma close", F64.fma(i, j, (-(x * y)).to_bits(), Nearest), x.mul_add(y, -(x * y))),
            ("div", F64.div(i, j, Nearest), x / y),
            ("sqrt", F64.sqrt(i, Nearest), x.sqrt()),
        ] {
            prop_assert!(same(f64::from_bits(found), expected), "{} of {:?}", name, (x, y, z));
        }
        let found = F64.convert(i, F32, Nearest);
        prop_assert!(same(narrow(found), f64::from(x as f32)), "{x:?}");
    }

    #[test]
    fn directed_binary32(a in any_f32(), b in any_f32()) {
        let (wide_a, wide_b) = (f64::from(a), f64::from(b));
        prop_assume!(a.is_finite() && b.is_finite());
        let product = wide_a * wide_b;
        for (mode, expected) in MODES.into_iter().zip(directed_f32(product)) {
            let found = f32_of(&format!("mul.{mode}.f32 w0, w1, w2"), &[a, b]);
            prop_assert_eq!(found.to_bits(), expected.to_bits(), "{}", mode);
        }
        // Sums are exact in binary64 where the exponents are near.
        let sum = wide_a + wide_b;
        if sum - wide_a == wide_b && sum - wide_b == wide_a && sum != 0.0 {
            for (mode, expected) in MODES.into_iter().zip(directed_f32(sum)) {
                let found = f32_of(&format!("add.{mode}.f32 w0, w1, w2"), &[a, b]);
                prop_assert_eq!(found.to_bits(), expected.to_bits(), "{}", mode);
                let found = f32_of(&format!("fma.{mode}.f32 w0, w1, w2, w3"), &[a, 1.0, b]);
                prop_assert_eq!(found.to_bits(), expected.to_bits(), "{}", mode);
            }
        }
    }

    #[test]
    fn directed_binary64(m in -(1_i64 << 53)..1 << 53, n in -(1_i64 << 53)..1 << 53, e in -60..60) {
        // The errors are exact, far from the ends of the range.
        let (a, b) = (m as f64, n as f64 * 2_f64.powi(e));
        prop_assume!(a != 0.0 && b != 0.0);
        let sum = a + b;
        let rest = sum - a;
        let missing = (a - (sum - rest)) + (b - rest);
        let product = a * b;
        let quotient = a / b;
        let left = (-quotient).mul_add(b, a) * b.signum();
        let root = a.abs().sqrt();
        for (place, mode) in MODES.into_iter().enumerate() {
            let run = |op: &str, sources: &[f64]| f64_of(&format!("{op}.{mode}.f64 {}", if sources.len() == 1 { "l0, l1" } else { "l0, l1, l2" }), sources);
            if sum != 0.0 {
                prop_assert_eq!(run("add", &[a, b]), directed(sum, missing)[place]);
                prop_assert_eq!(run("sub", &[a, -b]), directed(sum, missing)[place]);
            }
            prop_assert_eq!(run("mul", &[a, b]), directed(product, a.mul_add(b, -product))[place]);
            prop_assert_eq!(run("div", &[a, b]), directed(quotient, left)[place]);
            prop_assert_eq!(run("sqrt", &[a.abs()]), directed(root, (-root).mul_add(root, a.abs()))[place]);
        }
    }

    #[test]
    fn nearest(a in any_f32(), b in any_f32(), c in any_f32()) {
        let canonical = |value: f32| if value.is_nan() { NAN } else { value.to_bits() };
        let sources = [a, b, c].map(f32::to_bits);
        prop_assert_eq!(word("add.f32 w0, w1, w2", &sources), canonical(a + b));
        prop_assert_eq!(word("sub.rn.f32 w0, w1, w2", &sources), canonical(a - b));
        prop_assert_eq!(word("fma.rn.f32 w0, w1, w2, w3", &sources), canonical(a.mul_add(b, c)));
        prop_assert_eq!(word("mad.rn.f32 w0, w1, w2, w3", &sources), canonical(a.mul_add(b, c)));
        prop_assert_eq!(word("div.rn.f32 w0, w1, w2", &sources), canonical(a / b));
    }
}
