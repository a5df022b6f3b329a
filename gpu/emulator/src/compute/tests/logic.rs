//! Bits, comparison, selection and moves.

use proptest::prelude::*;

use super::{Warp, long, predicate, word, word_of_longs};

#[test]
fn shifts_clamp() {
    assert_eq!(word("shl.b32 w0, w1, 32", &[1]), 0);
    assert_eq!(word("shr.u32 w0, w1, 33", &[u32::MAX]), 0);
    assert_eq!(word("shr.u32 w0, w1, 32", &[u32::MAX]), 0);
    assert_eq!(word("shr.s32 w0, w1, 99", &[0x8000_0000]), u32::MAX);
    assert_eq!(word("shr.u16 w0, w1, 16", &[0xffff]), 0);
    assert_eq!(word("shr.s16 w0, w1, 4", &[0x8000]), 0xf800);
    assert_eq!(word("shl.b16 w0, w1, 4", &[0xffff]), 0xfff0);
    assert_eq!(long("shl.b64 l0, l1, 63", &[3]), 1 << 63);
    assert_eq!(long("shr.u64 l0, l1, 64", &[3]), 0);
    assert_eq!(long("shr.s64 l0, l1, 64", &[1 << 63]), u64::MAX);
    assert_eq!(word("shf.l.wrap.b32 w0, w1, w2, 36", &[0xf000_0000, 1]), 0x1f);
    assert_eq!(word("shf.l.clamp.b32 w0, w1, w2, 36", &[0xf000_0000, 1]), 0xf000_0000);
    assert_eq!(word("shf.r.wrap.b32 w0, w1, w2, 4", &[0xf0, 0xa]), 0xa000_000f);
    assert_eq!(word("shf.r.clamp.b32 w0, w1, w2, 99", &[0xf0, 0xa]), 0xa);
}

#[test]
fn bits() {
    assert_eq!(word("popc.b32 w0, w1", &[0xff]), 8);
    assert_eq!(word_of_longs("popc.b64 w0, l1", &[u64::MAX]), 64);
    assert_eq!(word("clz.b32 w0, w1", &[0]), 32);
    assert_eq!(word_of_longs("clz.b64 w0, l1", &[1]), 63);
    assert_eq!(word("brev.b32 w0, w1", &[1]), 1 << 31);
    assert_eq!(long("brev.b64 l0, l1", &[1]), 1 << 63);
    assert_eq!(word("bfind.u32 w0, w1", &[0x10]), 4);
    assert_eq!(word("bfind.u32 w0, w1", &[0]), u32::MAX);
    assert_eq!(word("bfind.s32 w0, w1", &[u32::MAX]), u32::MAX);
    assert_eq!(word("bfind.s32 w0, w1", &[0xffff_ffef]), 4);
    assert_eq!(word("bfind.shiftamt.u32 w0, w1", &[0x10]), 27);
    assert_eq!(word_of_longs("bfind.s64 w0, l1", &[1 << 40]), 40);
    // Bits 3, 4 and 9 are set.
    for (base, offset, expected) in [
        (3, 0, 3),
        (5, 0, u32::MAX),
        (0, 1, 3),
        (4, 1, 4),
        (0, 3, 9),
        (0, 4, u32::MAX),
        (31, -1, 9),
        (9, -2, 4),
        (4, -2, 3),
        (2, -1, u32::MAX),
        (0, i32::MIN, u32::MAX),
        (32, 1, u32::MAX),
    ] {
        let operands = [0b10_0001_1000, base, offset as u32];
        assert_eq!(word("fns.b32 w0, w1, w2, w3", &operands), expected, "{base}, {offset}");
    }
    assert_eq!(word("fns.b32 w0, w1, 0, 32", &[u32::MAX]), 31);
    assert_eq!(word("fns.b32 w0, w1, 31, -32", &[u32::MAX]), 0);
    assert_eq!(word("bfe.u32 w0, w1, 4, 8", &[0x0000_abc0]), 0xbc);
    assert_eq!(word("bfe.s32 w0, w1, 4, 8", &[0x0000_abc0]), 0xffff_ffbc);
    assert_eq!(word("bfe.s32 w0, w1, 28, 8", &[0x8000_0000]), 0xffff_fff8);
    assert_eq!(word("bfe.s32 w0, w1, 40, 8", &[0x8000_0000]), u32::MAX);
    assert_eq!(word("bfe.u32 w0, w1, 0, 0", &[u32::MAX]), 0);
    assert_eq!(word("bfe.u32 w0, w1, 0, 32", &[0xdead_beef]), 0xdead_beef);
    assert_eq!(long("bfe.s64 l0, l1, 60, 4", &[1 << 63]), -8_i64 as u64);
    assert_eq!(long("bfe.s64 l0, l1, 0, 64", &[1 << 63]), 1 << 63);
    assert_eq!(word("bfi.b32 w0, w1, w2, 8, 8", &[0xab, 0x1111_1111]), 0x1111_ab11);
    assert_eq!(word("bfi.b32 w0, w1, w2, 28, 8", &[0xab, 0]), 0xb000_0000);
    assert_eq!(word("bfi.b32 w0, w1, w2, 32, 8", &[0xab, 7]), 7);
    assert_eq!(long("bfi.b64 l0, l1, l2, 0, 64", &[5, 7]), 5);
    assert_eq!(word("bmsk.clamp.b32 w0, 4, 8", &[]), 0xff0);
    assert_eq!(word("bmsk.clamp.b32 w0, 0, 40", &[]), u32::MAX);
    assert_eq!(word("bmsk.wrap.b32 w0, 0, 40", &[]), 0xff);
    assert_eq!(word("szext.clamp.s32 w0, w1, 8", &[0x1ff]), u32::MAX);
    assert_eq!(word("szext.clamp.u32 w0, w1, 8", &[0x1ff]), 0xff);
    assert_eq!(word("szext.wrap.s32 w0, w1, 32", &[0x1ff]), 0);
    assert_eq!(word("szext.clamp.s32 w0, w1, 40", &[0x1ff]), 0x1ff);
    assert_eq!(word("cnot.b32 w0, w1", &[0]), 1);
    assert_eq!(word("cnot.b32 w0, w1", &[2]), 0);
    assert_eq!(word("not.b16 w0, w1", &[1]), 0xfffe);
}

#[test]
fn bytes() {
    let (a, b) = (0x3322_1100, 0x7766_5544);
    let cases = [
        ("prmt.b32 w0, w1, w2, w3", 0x7531, 0x7755_3311),
        ("prmt.b32 w0, w1, w2, w3", 0x0000, 0),
        ("prmt.b32.f4e w0, w1, w2, w3", 2, 0x5544_3322),
        ("prmt.b32.b4e w0, w1, w2, w3", 1, 0x6677_0011),
        ("prmt.b32.rc8 w0, w1, w2, w3", 2, 0x2222_2222),
        ("prmt.b32.ecl w0, w1, w2, w3", 1, 0x3322_1111),
        ("prmt.b32.ecr w0, w1, w2, w3", 1, 0x1111_1100),
        ("prmt.b32.rc16 w0, w1, w2, w3", 1, 0x3322_3322),
    ];
    for (text, selector, expected) in cases {
        // The mode is written behind the type.
        let text = match text.split_once(".b32.") {
            Some((root, rest)) => {
                let (mode, operands) = rest.split_once(' ').unwrap();
                format!("{root}.{mode}.b32 {operands}")
            }
            None => text.to_owned(),
        };
        assert_eq!(word(&text, &[a, b, selector]), expected, "{text}");
    }
    assert_eq!(word("prmt.b32 w0, w1, w2, w3", &[0x80, 0, 0x8888]), u32::MAX);
    assert_eq!(word("prmt.b32 w0, w1, w2, w3", &[0x7f, 0, 0x8888]), 0);
}

#[test]
fn comparisons_of_floats() {
    let nan = f32::NAN.to_bits();
    let [one, two, zero, minus_zero] = [1.0_f32, 2.0, 0.0, -0.0].map(f32::to_bits);
    // Of 1 and 2, 2 and 1, 1 and 1, 1 and no number.
    for (comparison, expected) in [
        ("eq", [false, false, true, false]),
        ("ne", [true, true, false, false]),
        ("lt", [true, false, false, false]),
        ("le", [true, false, true, false]),
        ("gt", [false, true, false, false]),
        ("ge", [false, true, true, false]),
        ("equ", [false, false, true, true]),
        ("neu", [true, true, false, true]),
        ("ltu", [true, false, false, true]),
        ("leu", [true, false, true, true]),
        ("gtu", [false, true, false, true]),
        ("geu", [false, true, true, true]),
        ("num", [true, true, true, false]),
        ("nan", [false, false, false, true]),
    ] {
        let text = format!("setp.{comparison}.f32 p0, w1, w2");
        let found = [[one, two], [two, one], [one, one], [one, nan]]
            .map(|sources| predicate(&text, &sources));
        assert_eq!(found, expected, "{comparison}");
        let halves = [[0x3c00, 0x4000], [0x4000, 0x3c00], [0x3c00, 0x3c00], [0x3c00, 0x7e00]];
        let text = format!("setp.{comparison}.f16 p0, w1, w2");
        assert_eq!(halves.map(|sources| predicate(&text, &sources)), expected, "{comparison}");
    }
    assert!(predicate("setp.eq.f32 p0, w1, w2", &[zero, minus_zero]));
    assert!(!predicate("setp.eq.f32 p0, w1, w2", &[1, 0]));
    assert!(predicate("setp.eq.ftz.f32 p0, w1, w2", &[1, 0]));
}

#[test]
fn comparisons_of_integers() {
    for (text, expected) in [
        ("setp.lt.s32 p0, w1, w2", true),
        ("setp.lt.u32 p0, w1, w2", false),
        ("setp.hi.u32 p0, w1, w2", true),
        ("setp.hs.u32 p0, w1, w2", true),
        ("setp.lo.u32 p0, w1, w2", false),
        ("setp.ls.u32 p0, w1, w2", false),
        ("setp.ne.b16 p0, w1, w2", true),
        ("setp.gt.s16 p0, w1, w2", false),
    ] {
        assert_eq!(predicate(text, &[u32::MAX, 1]), expected, "{text}");
    }
}

#[test]
fn combined_comparisons() {
    let mut warp = Warp::new();
    warp.0.predicates[2] = 0x00ff_00ff;
    warp.0.words[1] = std::array::from_fn(|lane| lane as u32);
    warp.run("setp.lt.and.u32 p0|p1, w1, 16, p2");
    assert_eq!(warp.0.predicates[..2], [0x0000_00ff, 0x00ff_0000]);
    warp.run("setp.lt.or.u32 p0|p1, w1, 16, !p2");
    assert_eq!(warp.0.predicates[..2], [0xff00_ffff, 0xffff_ff00]);
    warp.run("setp.lt.xor.u32 p0|_, w1, 16, p2");
    assert_eq!(warp.0.predicates[..2], [0x00ff_ff00, 0xffff_ff00]);
    warp.run("setp.lt.u32 p2|p3, w1, 16");
    assert_eq!(warp.0.predicates[2..4], [0xffff, 0xffff_0000]);
    warp.run("and.pred p0, p2, !p3");
    assert_eq!(warp.0.predicates[0], 0xffff);
    warp.run("not.pred p0, p0");
    assert_eq!(warp.0.predicates[0], 0xffff_0000);
    warp.run("xor.pred p0, p0, 1");
    assert_eq!(warp.0.predicates[0], 0xffff);
    // One of two halves each.
    warp.0.words[1] = [0x3c00_4000; 32];
    warp.0.words[2] = [0x3c00_3c00; 32];
    warp.run("setp.eq.f16x2 p0|p1, w1, w2");
    assert_eq!(warp.0.predicates[..2], [0, u32::MAX]);
}

#[test]
fn sets() {
    let one = 1.0_f32.to_bits();
    assert_eq!(word("set.lt.u32.f32 w0, w1, w2", &[0, one]), u32::MAX);
    assert_eq!(word("set.lt.f32.s32 w0, w1, w2", &[0, 1]), one);
    assert_eq!(word("set.gt.s32.s32 w0, w1, w2", &[0, 1]), 0);
    assert_eq!(word("set.eq.and.u32.u32 w0, w1, w2, !p0", &[1, 1]), u32::MAX);
    assert_eq!(word("set.eq.f16x2.f16x2 w0, w1, w2", &[0x3c00_4000, 0x3c00_3c00]), 0x3c00_0000);
    assert_eq!(word("set.eq.u32.f16x2 w0, w1, w2", &[0x3c00_4000, 0x3c00_3c00]), 0xffff_0000);
}

#[test]
fn selections() {
    let mut warp = Warp::new();
    warp.0.predicates[0] = 0b101;
    warp.run("selp.b32 w0, 7, 9, p0");
    assert_eq!(warp.0.words[0][..4], [7, 9, 7, 9]);
    warp.run("selp.f64 l0, 7, 9, p0");
    assert_eq!(warp.0.longs[0][..4], [7, 9, 7, 9]);
    assert_eq!(word("slct.u32.s32 w0, w1, w2, w3", &[1, 2, u32::MAX]), 2);
    assert_eq!(word("slct.u32.s32 w0, w1, w2, w3", &[1, 2, 0]), 1);
    let slct = "slct.b32.f32 w0, w1, w2, w3";
    assert_eq!(word(slct, &[1, 2, (-0.0_f32).to_bits()]), 1);
    assert_eq!(word(slct, &[1, 2, f32::NAN.to_bits()]), 2);
    assert_eq!(word(slct, &[1, 2, 0x8000_0001]), 2);
    assert_eq!(word("slct.ftz.b32.f32 w0, w1, w2, w3", &[1, 2, 0x8000_0001]), 1);
}

#[test]
fn moves() {
    let mut warp = Warp::new();
    warp.0.longs[1] = [0x1122_3344_5566_7788; 32];
    warp.run("mov.b64 {w0, w1}, l1");
    assert_eq!((warp.0.words[0][9], warp.0.words[1][9]), (0x5566_7788, 0x1122_3344));
    warp.run("mov.b64 {_, w1}, l1");
    warp.run("mov.b64 l0, {w1, w0}");
    assert_eq!(warp.0.longs[0][9], 0x5566_7788_1122_3344);
    warp.run("mov.b64 {w0, w1, w2, w3}, l1");
    assert_eq!([0, 1, 2, 3].map(|n| warp.0.words[n][9]), [0x7788, 0x5566, 0x3344, 0x1122]);
    warp.run("mov.b32 w5, {w0, w3}");
    assert_eq!(warp.0.words[5][9], 0x1122_7788);
    warp.run("mov.b32 {w0, w1}, w5");
    assert_eq!((warp.0.words[0][9], warp.0.words[1][9]), (0x7788, 0x1122));
    warp.run("mov.b64 {w0, l1}, l1".replace("l1}", "w0}").as_str());
    assert_eq!(warp.0.words[0][9], 0x1122_3344);
    warp.run("mov.u16 w0, w5");
    assert_eq!(warp.0.words[0][9], 0x7788);
}

proptest! {
    #[test]
    fn tables(a: u32, b: u32, c: u32, table in 0..256_u32) {
        let expected = (0..32).fold(0, |all, bit| {
            let row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
            all | (table >> row & 1) << bit
        });
        prop_assert_eq!(word(&format!("lop3.b32 w0, w1, w2, w3, {table}"), &[a, b, c]), expected);
    }

    #[test]
    fn fields(a: u32, from in 0..70_u32, len in 0..70_u32) {
        let sign = if len == 0 { 0 } else { a >> (from + len - 1).min(31) & 1 };
        let field = |sign: u32| (0..32).fold(0, |all, i| {
            all | if i < len && from + i <= 31 { a >> (from + i) & 1 } else { sign } << i
        });
        prop_assert_eq!(word("bfe.u32 w0, w1, w2, w3", &[a, from, len]), field(0));
        prop_assert_eq!(word("bfe.s32 w0, w1, w2, w3", &[a, from, len]), field(sign));
        let inserted = (0..32).fold(0, |all, i| {
            let is_in = i >= from && i < from + len;
            all | (if is_in { a >> (i - from) & 1 } else { !a >> i & 1 }) << i
        });
        prop_assert_eq!(word(&format!("bfi.b32 w0, w1, w2, {from}, {len}"), &[a, !a]), inserted);
    }
}
