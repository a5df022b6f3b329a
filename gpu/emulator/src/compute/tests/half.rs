//! binary16 and bfloat16.

use ::half::{bf16, f16};
use proptest::prelude::*;

use super::super::rounding::{BF16, F16, Rounding::Nearest};
use super::word;

#[test]
fn edges() {
    let (one, nan, inf) = (0x3c00, 0x7e01, 0x7c00);
    assert_eq!(word("add.f16 w0, w1, w2", &[one, one]), 0x4000);
    assert_eq!(word("add.f16 w0, w1, w2", &[nan, one]), 0x7fff);
    assert_eq!(word("sub.f16 w0, w1, w2", &[inf, inf]), 0x7fff);
    assert_eq!(word("mul.f16 w0, w1, w2", &[0x7bff, 0x7bff]), inf);
    assert_eq!(word("min.f16 w0, w1, w2", &[nan, one]), one);
    assert_eq!(word("min.NaN.f16 w0, w1, w2", &[nan, one]), 0x7fff);
    assert_eq!(word("max.f16 w0, w1, w2", &[0x8000, 0]), 0);
    assert_eq!(word("neg.f16 w0, w1", &[one]), 0xbc00);
    assert_eq!(word("abs.bf16 w0, w1", &[0xbf80]), 0x3f80);
    assert_eq!(word("add.ftz.f16 w0, w1, w2", &[0x8001, 0x8000]), 0x8000);
    assert_eq!(word("add.sat.f16 w0, w1, w2", &[one, one]), one);
    assert_eq!(word("fma.rn.relu.f16 w0, w1, w2, w3", &[one, 0xbc00, 0]), 0);
    assert_eq!(word("fma.rn.relu.f16 w0, w1, w2, w3", &[nan, 0xbc00, 0]), 0x7fff);
    assert_eq!(
        word("fma.rn.f16x2 w0, w1, w2, w3", &[0x4000_3c00, 0x3c00_3c00, 0x3c00_0000]),
        0x4200_3c00
    );
    assert_eq!(word("add.rn.bf16x2 w0, w1, w2", &[0x3f80_4000, 0x3f80_3f80]), 0x4000_4040);
    assert_eq!(word("tanh.approx.f16 w0, w1", &[0]), 0);
    assert_eq!(word("ex2.approx.f16x2 w0, w1", &[0x3c00_4000]), 0x4000_4400);
    assert_eq!(word("ex2.approx.ftz.bf16 w0, w1", &[0x3f80]), 0x4000);
    // A product between two, decided by a summand far below it.
    assert_eq!(
        word("fma.rn.bf16 w0, w1, w2, w3", &[0x3f81, 0x3f84, 0x0080]),
        fma_bf16(0x3f81, 0x3f84, 0x0080)
    );
}

fn fma_bf16(a: u64, b: u64, c: u64) -> u32 {
    BF16.fma(a, b, c, Nearest) as u32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn rounded_once(a: u16, b: u16, c: u16) {
        let sources = [a, b, c].map(u32::from);
        let [i, j, k] = [a, b, c].map(u64::from);
        for (ty, format) in [("f16", F16), ("bf16", BF16)] {
            let run = |op: &str| u64::from(word(&op.replace('?', ty), &sources));
            prop_assert_eq!(run("fma.rn.? w0, w1, w2, w3"), format.fma(i, j, k, Nearest));
            prop_assert_eq!(run("add.? w0, w1, w2"), format.add(i, j, Nearest));
            prop_assert_eq!(run("mul.? w0, w1, w2"), format.mul(i, j, Nearest));
        }
    }

    #[test]
    fn rounded_near_ties(a in 0x3f80_u16..0x4000, b in 0x3f80_u16..0x4000, c in 0..0x0400_u16, negative: bool) {
        let c = c | u16::from(negative) << 15;
        let found = word("fma.rn.bf16 w0, w1, w2, w3", &[a, b, c].map(u32::from));
        prop_assert_eq!(found, fma_bf16(a.into(), b.into(), c.into()));
    }
}

#[test]
fn formats_agree_with_the_host() {
    for bits in 0..=u16::MAX {
        let wide = f16::from_bits(bits).to_f32();
        let found = F16.convert(bits.into(), super::super::rounding::F32, Nearest) as u32;
        assert!(wide.is_nan() || wide.to_bits() == found, "{bits:#x}");
        let wide = bf16::from_bits(bits).to_f32();
        let found = BF16.convert(bits.into(), super::super::rounding::F32, Nearest) as u32;
        assert!(wide.is_nan() || wide.to_bits() == found, "{bits:#x}");
    }
}
