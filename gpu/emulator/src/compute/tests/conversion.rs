//! Conversions.

use ::half::{bf16, f16};
use proptest::prelude::*;

use super::{long, long_of_words, word, word_of_longs};

#[test]
fn between_integers() {
    assert_eq!(word("cvt.s32.s8 w0, w1", &[0x1ff]), u32::MAX);
    assert_eq!(word("cvt.u32.u8 w0, w1", &[0x1ff]), 0xff);
    assert_eq!(word("cvt.s16.s8 w0, w1", &[0x80]), 0xff80);
    assert_eq!(word("cvt.u32.s16 w0, w1", &[0x8000]), 0xffff_8000);
    assert_eq!(word("cvt.s8.s32 w0, w1", &[0x1ff]), 0xffff);
    assert_eq!(word("cvt.u16.u32 w0, w1", &[0x12345]), 0x2345);
    assert_eq!(long_of_words("cvt.s64.s32 l0, w1", &[u32::MAX]), u64::MAX);
    assert_eq!(long_of_words("cvt.u64.u32 l0, w1", &[u32::MAX]), 0xffff_ffff);
    assert_eq!(long_of_words("cvt.u64.s16 l0, w1", &[0x8000]), 0xffff_ffff_ffff_8000);
    assert_eq!(word_of_longs("cvt.u32.u64 w0, l1", &[0x1_2345_6789]), 0x2345_6789);
    // Into wider registers.
    assert_eq!(long_of_words("cvt.s32.s8 l0, w1", &[0x80]), -128_i64 as u64);
    assert_eq!(long_of_words("cvt.u32.s8 l0, w1", &[0x80]), 0xffff_ff80);
    assert_eq!(long("cvt.s16.s64 l0, l1", &[0x1_8000]), -32768_i64 as u64);
    assert_eq!(word("cvt.sat.u8.s32 w0, w1", &[-5_i32 as u32]), 0);
    assert_eq!(word("cvt.sat.u8.s32 w0, w1", &[300]), 255);
    assert_eq!(word("cvt.sat.s8.s32 w0, w1", &[-300_i32 as u32]), 0xff80);
    assert_eq!(word("cvt.sat.s16.u32 w0, w1", &[u32::MAX]), 0x7fff);
    assert_eq!(word_of_longs("cvt.sat.u32.s64 w0, l1", &[1 << 40]), u32::MAX);
    assert_eq!(long("cvt.sat.u64.s64 l0, l1", &[u64::MAX]), 0);
    assert_eq!(long("cvt.sat.s64.u64 l0, l1", &[u64::MAX]), i64::MAX as u64);
    assert_eq!(word("cvt.pack.sat.u16.s32 w0, w1, w2", &[70000, 5]), 0xffff_0005);
    assert_eq!(word("cvt.pack.sat.s16.s32 w0, w1, w2", &[-70000_i32 as u32, 5]), 0x8000_0005);
    assert_eq!(word("cvt.pack.sat.u8.s32.b32 w0, w1, w2, w3", &[300, 5, 0x1234]), 0x1234_ff05);
}

#[test]
fn from_floats() {
    let of = |mode: &str, value: f32| {
        word(&format!("cvt.{mode}.s32.f32 w0, w1"), &[value.to_bits()]) as i32
    };
    assert_eq!(["rni", "rzi", "rmi", "rpi"].map(|mode| of(mode, 2.5)), [2, 2, 2, 3]);
    assert_eq!(["rni", "rzi", "rmi", "rpi"].map(|mode| of(mode, -1.5)), [-2, -1, -2, -1]);
    assert_eq!([1e10, -1e10, f32::NAN].map(|value| of("rzi", value)), [i32::MAX, i32::MIN, 0]);
    let one = |text: &str, value: f32| word(text, &[value.to_bits()]);
    assert_eq!(one("cvt.rzi.u32.f32 w0, w1", -3.0), 0);
    assert_eq!(one("cvt.rzi.u8.f32 w0, w1", 300.0), 255);
    assert_eq!(one("cvt.rzi.s8.f32 w0, w1", -300.0), 0xff80);
    assert_eq!(one("cvt.rzi.u16.f32 w0, w1", 3.9), 3);
    let nan = f64::NAN.to_bits();
    assert_eq!(long_of_words("cvt.rzi.s64.f32 l0, w1", &[f32::NAN.to_bits()]), 1 << 63);
    assert_eq!(word_of_longs("cvt.rzi.s32.f64 w0, l1", &[nan]), 0x8000_0000);
    assert_eq!(long("cvt.rzi.u64.f64 l0, l1", &[nan]), 1 << 63);
    assert_eq!(long("cvt.rzi.u64.f64 l0, l1", &[1e30_f64.to_bits()]), u64::MAX);
    assert_eq!(long("cvt.rzi.s64.f64 l0, l1", &[(-1e30_f64).to_bits()]), 1 << 63);
    assert_eq!(long("cvt.rzi.u64.f64 l0, l1", &[1e19_f64.to_bits()]), 10_000_000_000_000_000_000);
    assert_eq!(word("cvt.rni.s32.f16 w0, w1", &[0x4100]), 2);
    assert_eq!(one("cvt.rpi.ftz.s32.f32 w0, w1", f32::from_bits(1)), 0);
    assert_eq!(one("cvt.rpi.s32.f32 w0, w1", f32::from_bits(1)), 1);
    assert_eq!(f32::from_bits(one("cvt.rni.f32.f32 w0, w1", 2.5)), 2.0);
    assert_eq!(f32::from_bits(one("cvt.sat.f32.f32 w0, w1", 2.5)), 1.0);
    assert_eq!(f64::from_bits(long("cvt.rmi.f64.f64 l0, l1", &[(-0.5_f64).to_bits()])), -1.0);
}

#[test]
fn between_floats() {
    let wide = 1.0 + 2_f64.powi(-30);
    let of = |mode: &str| {
        f32::from_bits(word_of_longs(&format!("cvt.{mode}.f32.f64 w0, l1"), &[wide.to_bits()]))
    };
    assert_eq!(["rn", "rz", "rm", "rp"].map(of), [1.0, 1.0, 1.0, 1.0_f32.next_up()]);
    assert_eq!(word_of_longs("cvt.rn.ftz.f32.f64 w0, l1", &[1e-40_f64.to_bits()]), 0);
    assert_eq!(word_of_longs("cvt.rz.f32.f64 w0, l1", &[1e300_f64.to_bits()]), f32::MAX.to_bits());
    assert_eq!(
        f64::from_bits(long_of_words("cvt.f64.f32 l0, w1", &[1])),
        f64::from(f32::from_bits(1))
    );
    let one = |text: &str, value: f32| word(text, &[value.to_bits()]);
    assert_eq!(one("cvt.rn.f16.f32 w0, w1", 65519.0), 0x7bff);
    assert_eq!(one("cvt.rn.f16.f32 w0, w1", 65520.0), 0x7c00);
    assert_eq!(one("cvt.rz.f16.f32 w0, w1", 65520.0), 0x7bff);
    assert_eq!(one("cvt.rn.relu.f16.f32 w0, w1", -1.0), 0);
    assert_eq!(one("cvt.rn.satfinite.f16.f32 w0, w1", 1e9), 0x7bff);
    assert_eq!(one("cvt.rn.f16.f32 w0, w1", f32::NAN), 0x7fff);
    assert_eq!(one("cvt.rn.bf16.f32 w0, w1", f32::from_bits(0x3f80_8000)), 0x3f80);
    assert_eq!(one("cvt.rn.bf16.f32 w0, w1", f32::from_bits(0x3f80_8001)), 0x3f81);
    assert_eq!(word("cvt.f32.bf16 w0, w1", &[0x3f80]), 0x3f80_0000);
    assert_eq!(word("cvt.f32.f16 w0, w1", &[1]), 2_f32.powi(-24).to_bits());
    assert_eq!(
        word("cvt.rn.f16x2.f32 w0, w1, w2", &[1.0_f32.to_bits(), 2.0_f32.to_bits()]),
        0x3c00_4000
    );
    assert_eq!(
        word("cvt.rn.relu.bf16x2.f32 w0, w1, w2", &[1.0_f32.to_bits(), (-2.0_f32).to_bits()]),
        0x3f80_0000
    );
    assert_eq!(one("cvt.rna.tf32.f32 w0, w1", f32::from_bits(0x3f80_1000)), 0x3f80_2000);
    assert_eq!(one("cvt.rn.tf32.f32 w0, w1", f32::from_bits(0x3f80_1000)), 0x3f80_0000);
    assert_eq!(one("cvt.rna.tf32.f32 w0, w1", f32::MAX), 0x7f80_0000);
    assert_eq!(one("cvt.rna.satfinite.tf32.f32 w0, w1", f32::MAX), 0x7f7f_e000);
}

#[test]
fn directed_from_integers() {
    let a = 0x0100_0001;
    let of = |mode: &str| f32::from_bits(word(&format!("cvt.{mode}.f32.u32 w0, w1"), &[a]));
    let low = 0x0100_0000 as f32;
    assert_eq!(["rn", "rz", "rm", "rp"].map(of), [low, low, low, low.next_up()]);
    assert_eq!(word("cvt.rn.f16.s32 w0, w1", &[-3_i32 as u32]), 0xc200);
    assert_eq!(word("cvt.rn.f16.u32 w0, w1", &[70000]), 0x7c00);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn like_the_host(a: u64, b: u32) {
        prop_assert_eq!(long("cvt.rn.f64.s64 l0, l1", &[a]), (a as i64 as f64).to_bits());
        prop_assert_eq!(long("cvt.rn.f64.u64 l0, l1", &[a]), (a as f64).to_bits());
        prop_assert_eq!(word_of_longs("cvt.rn.f32.u64 w0, l1", &[a]), (a as f32).to_bits());
        prop_assert_eq!(word("cvt.rn.f32.s32 w0, w1", &[b]), (b as i32 as f32).to_bits());
        prop_assert_eq!(word("cvt.rn.f32.s16 w0, w1", &[b]), f32::from(b as i16).to_bits());
        let (float, double) = (f32::from_bits(b), f64::from_bits(a));
        if !float.is_nan() {
            prop_assert_eq!(word("cvt.rn.f16.f32 w0, w1", &[b]), u32::from(f16::from_f32(float).to_bits()));
            prop_assert_eq!(word("cvt.rn.bf16.f32 w0, w1", &[b]), u32::from(bf16::from_f32(float).to_bits()));
            prop_assert_eq!(word("cvt.rzi.s32.f32 w0, w1", &[b]), float as i32 as u32);
        }
        if !double.is_nan() {
            prop_assert_eq!(long("cvt.rzi.s64.f64 l0, l1", &[a]), double as i64 as u64);
            prop_assert_eq!(word_of_longs("cvt.rn.f32.f64 w0, l1", &[a]), (double as f32).to_bits());
        }
    }
}
