//! Integers.

use proptest::prelude::*;

use super::{Warp, long, long_of_words, word};

#[test]
fn edges() {
    let min = i32::MIN as u32;
    assert_eq!(word("div.s32 w0, w1, w2", &[min, u32::MAX]), min);
    assert_eq!(word("rem.s32 w0, w1, w2", &[min, u32::MAX]), 0);
    assert_eq!(word("div.u32 w0, w1, 0", &[5]), u32::MAX);
    assert_eq!(word("rem.s32 w0, w1, 0", &[5]), u32::MAX);
    assert_eq!(word("div.s32 w0, w1, 2", &[-7_i32 as u32]), -3_i32 as u32);
    assert_eq!(word("rem.s32 w0, w1, 2", &[-7_i32 as u32]), -1_i32 as u32);
    assert_eq!(word("div.s16 w0, w1, -1", &[0x8000]), 0x8000);
    assert_eq!(long("div.s64 l0, l1, 0", &[5]), u64::MAX);
    assert_eq!(word("abs.s32 w0, w1", &[min]), min);
    assert_eq!(word("abs.s16 w0, w1", &[0xfff0]), 16);
    assert_eq!(word("neg.s16 w0, w1", &[1]), 0xffff);
    assert_eq!(long("neg.s64 l0, l1", &[1]), u64::MAX);
    assert_eq!(word("min.s32 w0, w1, 1", &[u32::MAX]), u32::MAX);
    assert_eq!(word("min.u32 w0, w1, 1", &[u32::MAX]), 1);
    assert_eq!(word("max.s16 w0, w1, 1", &[0xffff]), 1);
    assert_eq!(word("sad.u32 w0, w1, w2, w3", &[1, 5, 100]), 104);
    assert_eq!(word("sad.s32 w0, w1, w2, w3", &[u32::MAX, 5, 100]), 106);
    assert_eq!(word("add.sat.s32 w0, w1, 1", &[0x7fff_ffff]), 0x7fff_ffff);
    assert_eq!(word("sub.sat.s32 w0, w1, 1", &[min]), min);
    assert_eq!(word("mad.hi.sat.s32 w0, w1, w2, w3", &[0x7fff_ffff; 3]), 0x7fff_ffff);
    assert_eq!(word("add.s16 w0, w1, 1", &[0xffff]), 0);
    assert_eq!(word("max.s16x2 w0, w1, w2", &[0xffff_0001, 0x0001_ffff]), 0x0001_0001);
    assert_eq!(word("add.u16x2 w0, w1, w2", &[0xffff_ffff, 0x0001_0002]), 1);
}

#[test]
fn products_of_24_bits() {
    assert_eq!(word("mul24.lo.u32 w0, w1, w2", &[0xff00_0003, 5]), 15);
    assert_eq!(word("mul24.lo.s32 w0, w1, w2", &[0x00ff_ffff, 5]), -5_i32 as u32);
    assert_eq!(word("mul24.hi.u32 w0, w1, w2", &[0xff_ffff, 0xff_ffff]), 0xffff_fe00);
    assert_eq!(word("mad24.lo.s32 w0, w1, w2, w3", &[3, 5, 7]), 22);
    assert_eq!(
        word("mad24.hi.sat.s32 w0, w1, w2, w3", &[0x7f_ffff, 0x7f_ffff, 0x7fff_ffff]),
        0x7fff_ffff
    );
}

#[test]
fn dot_products() {
    assert_eq!(word("dp4a.u32.u32 w0, w1, w2, w3", &[0x0102_03ff, 0x0101_0102, 10]), 10 + 510 + 6);
    assert_eq!(word("dp4a.s32.s32 w0, w1, w2, w3", &[0x0000_00ff, 0x0000_0002, 10]), 8);
    assert_eq!(
        word("dp4a.s32.u32 w0, w1, w2, w3", &[0x0000_00ff, 0x0000_00ff, 0]),
        -255_i32 as u32
    );
    assert_eq!(word("dp2a.lo.u32.u32 w0, w1, w2, w3", &[0x0002_0003, 0x0908_0504, 1]), 1 + 12 + 10);
    assert_eq!(word("dp2a.hi.u32.u32 w0, w1, w2, w3", &[0x0002_0003, 0x0908_0504, 1]), 1 + 24 + 18);
    assert_eq!(word("dp2a.lo.s32.u32 w0, w1, w2, w3", &[0xffff, 0xff, 0]), -255_i32 as u32);
}

proptest! {
    #[test]
    fn words(a: u32, b: u32, c: u32) {
        let (s, u) = (|a: u32| i128::from(a as i32), |a: u32| i128::from(a));
        let args = [a, b, c];
        for (text, exact) in [
            ("add.s32 w0, w1, w2", s(a) + s(b)),
            ("sub.u32 w0, w1, w2", u(a) - u(b)),
            ("mul.lo.s32 w0, w1, w2", s(a) * s(b)),
            ("mul.hi.s32 w0, w1, w2", (s(a) * s(b)) >> 32),
            ("mul.hi.u32 w0, w1, w2", (u(a) * u(b)) >> 32),
            ("mad.lo.s32 w0, w1, w2, w3", s(a) * s(b) + s(c)),
            ("mad.hi.u32 w0, w1, w2, w3", ((u(a) * u(b)) >> 32) + u(c)),
            ("div.s32 w0, w1, w2", if b == 0 { -1 } else { s(a) / s(b) }),
            ("rem.u32 w0, w1, w2", if b == 0 { -1 } else { u(a) % u(b) }),
            ("sad.s32 w0, w1, w2, w3", s(c) + (s(a) - s(b)).abs()),
        ] {
            prop_assert_eq!(word(text, &args), exact as u32, "{}", text);
        }
        prop_assert_eq!(long_of_words("mul.wide.s32 l0, w1, w2", &args), (s(a) * s(b)) as u64);
        prop_assert_eq!(long_of_words("mul.wide.u32 l0, w1, w2", &args), (u(a) * u(b)) as u64);
        prop_assert_eq!(long_of_words("mad.wide.u32 l0, w1, w2, 9", &args), (u(a) * u(b) + 9) as u64);
        let (h, k) = (i128::from(a as i16), i128::from(b as i16));
        prop_assert_eq!(word("mul.wide.s16 w0, w1, w2", &args), (h * k) as u32);
        prop_assert_eq!(word("mul.hi.s16 w0, w1, w2", &args), u32::from(((h * k) >> 16) as u16));
        prop_assert_eq!(word("mul.lo.s16 w0, w1, w2", &args), u32::from((h * k) as u16));
    }

    #[test]
    fn longs(a: u64, b: u64, c: u64) {
        let args = [a, b, c];
        let (s, t) = (i128::from(a as i64), i128::from(b as i64));
        prop_assert_eq!(long("add.s64 l0, l1, l2", &args), a.wrapping_add(b));
        prop_assert_eq!(long("mul.hi.s64 l0, l1, l2", &args), ((s * t) >> 64) as u64);
        prop_assert_eq!(long("mul.hi.u64 l0, l1, l2", &args), ((u128::from(a) * u128::from(b)) >> 64) as u64);
        prop_assert_eq!(long("mad.lo.s64 l0, l1, l2, l3", &args), a.wrapping_mul(b).wrapping_add(c));
    }

    #[test]
    fn carries(a: u128, b: u128) {
        let mut warp = Warp::new();
        for word in 0..4 {
            warp.0.words[word] = [(a >> (32 * word)) as u32; 32];
            warp.0.words[4 + word] = [(b >> (32 * word)) as u32; 32];
        }
        let run = |warp: &mut Warp, texts: [&str; 4]| {
            texts.into_iter().for_each(|text| warp.run(text));
            (0..4).fold(0, |all, word| all | u128::from(warp.0.words[8 + word][5]) << (32 * word))
        };
        let sum = run(&mut warp, ["add.cc.u32 w8, w0, w4", "addc.cc.u32 w9, w1, w5", "addc.cc.u32 w10, w2, w6", "addc.u32 w11, w3, w7"]);
        prop_assert_eq!(sum, a.wrapping_add(b));
        let difference = run(&mut warp, ["sub.cc.u32 w8, w0, w4", "subc.cc.u32 w9, w1, w5", "subc.cc.u32 w10, w2, w6", "subc.u32 w11, w3, w7"]);
        prop_assert_eq!(difference, a.wrapping_sub(b));
        // 64 by 64 bits: the lower three words as the headers of CUDA have them.
        let product = run(&mut warp, ["mul.lo.u32 w8, w0, w4", "mul.hi.u32 w9, w0, w4", "mad.lo.cc.u32 w9, w1, w4, w9", "madc.hi.u32 w10, w1, w4, 0"]);
        let expected = (a & 0xffff_ffff_ffff_ffff) * (b & 0xffff_ffff);
        prop_assert_eq!(product & ((1 << 96) - 1), expected);
    }
}
