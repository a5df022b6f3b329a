//! What is known of results, and lanes that do not take part.

use proptest::prelude::*;

use super::super::registers::Marks;
use super::{Warp, select};
use crate::compute::Register::{self, Long, Predicate, Word};

const LANES: u32 = 0x00ff_00f0;

fn marked(register: Register, undefined: u32, wrapped: u32) -> Warp {
    let mut warp = Warp::new();
    warp.0.set_marks(register, u32::MAX, Marks { undefined, wrapped, ..Marks::default() });
    warp
}

#[test]
fn partial_masks_keep_the_rest() {
    for (text, register) in [
        ("add.s32 w0, 5, 6", Word(0)),
        ("add.s64 l0, 5, 6", Long(0)),
        ("setp.eq.s32 p0, 1, 1", Predicate(0)),
        ("mov.b64 {w0, w1}, 11", Word(0)),
        ("mov.pred p0, 1", Predicate(0)),
        ("add.cc.u32 w0, 5, 6", Word(0)),
        ("set.eq.u32.u32 w0, 1, 1", Word(0)),
    ] {
        let mut warp = Warp::new();
        warp.0.words[0] = [77; 32];
        warp.0.longs[0] = [77; 32];
        warp.run_for(text, LANES);
        for lane in 0..32 {
            let is_active = LANES >> lane & 1 == 1;
            let is_new = match register {
                Predicate(_) => warp.0.predicates[0] >> lane & 1 == 1,
                Word(_) => warp.0.words[0][lane] != 77,
                Long(_) => warp.0.longs[0][lane] != 77,
            };
            assert_eq!(is_new, is_active, "{text}, lane {lane}");
        }
    }
}

#[test]
fn undefined_goes_on() {
    for (text, from, to) in [
        ("add.s32 w0, w1, w2", Word(1), Word(0)),
        ("add.s32 w0, w1, w2", Word(2), Word(0)),
        ("add.s32 w1, w1, w2", Word(1), Word(1)),
        ("fma.rn.f64 l0, l1, l2, l3", Long(3), Long(0)),
        ("setp.lt.and.s32 p0|p1, w1, w2, p2", Word(1), Predicate(1)),
        ("setp.lt.and.s32 p0|p1, w1, w2, p2", Predicate(2), Predicate(0)),
        ("mov.b64 {w0, w1}, l1", Long(1), Word(1)),
        ("mov.b64 l0, {w1, w2}", Word(2), Long(0)),
        ("and.b32 w0, w1, 0", Word(1), Word(0)),
        ("cvt.rn.f32.s64 w0, l1", Long(1), Word(0)),
        ("lop3.b32 w0, w1, w2, w3, 150", Word(3), Word(0)),
        ("prmt.b32 w0, w1, w2, w3", Word(3), Word(0)),
        ("selp.b32 w0, w1, w2, p1", Predicate(1), Word(0)),
    ] {
        let mut warp = marked(from, 0x0000_fff0, 0);
        warp.run_for(text, 0x0000_0fff);
        let kept = if from == to { 0x0000_f000 } else { 0 };
        assert_eq!(warp.0.undefined(to), 0x0000_0ff0 | kept, "{text}");
        assert_eq!(warp.0.wrapped(to), 0, "{text}");
    }
}

#[test]
fn overwriting_defines() {
    let mut warp = marked(Word(0), u32::MAX, u32::MAX);
    warp.run_for("mov.u32 w0, 3", 0xffff);
    assert_eq!((warp.0.undefined(Word(0)), warp.0.wrapped(Word(0))), (0xffff_0000, 0xffff_0000));
}

#[test]
fn selection_takes_the_chosen() {
    let mut warp = marked(Word(1), 0xffff, 0xff);
    warp.0.taint(Word(2), u32::MAX, 0xf000_0000, None);
    warp.0.predicates[1] = 0x0f0f_0f0f;
    warp.run("selp.b32 w0, w1, w2, p1");
    assert_eq!(warp.0.undefined(Word(0)), 0xf000_0f0f);
    assert_eq!(warp.0.wrapped(Word(0)), 0x0f);
}

#[test]
fn carry_is_undefined_with_its_sources() {
    let mut warp = marked(Word(1), 0xf0, 0);
    warp.run("add.cc.u32 w0, w1, w2");
    warp.run("mov.u32 w4, 0");
    warp.run("addc.u32 w5, w6, w7");
    assert_eq!(warp.0.undefined(Word(5)), 0xf0);
    warp.run("add.cc.u32 w0, w6, w7");
    warp.run("addc.u32 w5, w6, w7");
    assert_eq!(warp.0.undefined(Word(5)), 0);
}

#[test]
fn wrapped_goes_through_address_arithmetic_only() {
    for (text, to, is_kept) in [
        ("add.s32 w0, w1, 1", Word(0), true),
        ("sub.s32 w0, w1, 1", Word(0), true),
        ("mul.lo.s32 w0, w1, 1", Word(0), true),
        ("mad.lo.s32 w0, w1, 1, 1", Word(0), true),
        ("shl.b32 w0, w1, 1", Word(0), true),
        ("mul.wide.s32 l0, w1, 1", Long(0), true),
        ("cvt.s64.s32 l0, w1", Long(0), true),
        ("mov.b32 w0, w1", Word(0), true),
        ("mov.b64 l0, {w1, w2}", Long(0), true),
        ("min.s32 w0, w1, 1", Word(0), true),
        ("bfi.b32 w0, w1, w2, 0, 8", Word(0), true),
        ("selp.b32 w0, w2, w1, p1", Word(0), true),
        ("and.b32 w0, w1, 1", Word(0), false),
        ("xor.b32 w0, w1, 1", Word(0), false),
        ("not.b32 w0, w1", Word(0), false),
        ("shr.u32 w0, w1, 1", Word(0), false),
        ("rem.u32 w0, w1, 5", Word(0), false),
        ("div.u32 w0, w1, 5", Word(0), false),
        ("bfe.u32 w0, w1, 1, 3", Word(0), false),
        ("prmt.b32 w0, w1, w2, 3", Word(0), false),
        ("lop3.b32 w0, w1, w2, w3, 1", Word(0), false),
        ("cvt.rn.f32.s32 w0, w1", Word(0), false),
        ("mul.hi.u32 w0, w1, w2", Word(0), false),
        ("setp.eq.s32 p0, w1, w2", Predicate(0), false),
    ] {
        let mut warp = marked(Word(1), 0, 0xf0f);
        warp.run(text);
        assert_eq!(warp.0.wrapped(to), if is_kept { 0xf0f } else { 0 }, "{text}");
        assert_eq!(warp.0.undefined(to), 0, "{text}");
    }
}

#[test]
fn wraps_where_it_fits_neither_way() {
    let min = u64::from(0x8000_0000_u32);
    for (text, a, wraps) in [
        ("add.s32 w0, w1, w1", 0x7fff_ffff, false),
        ("add.s32 w0, w1, w1", min, true),
        ("add.s32 w0, w1, w1", 0xffff_ffff, false),
        ("add.s32 w0, w1, -1", 0, false),
        ("add.u32 w0, w1, 1", 0xffff_ffff, false),
        ("add.s16 w0, w1, w1", 0x8000, true),
        ("add.s16 w0, w1, w1", 0x7fff, false),
        ("add.sat.s32 w0, w1, w1", min, false),
        ("sub.s32 w0, w1, 1", 0, false),
        ("sub.s32 w0, w1, -1", 0x7fff_ffff, true),
        ("sub.s32 w0, w1, 1", min, false),
        ("mul.lo.s32 w0, w1, w1", 0xffff, false),
        ("mul.lo.s32 w0, w1, w1", 0x1_0000, true),
        ("mul.lo.s32 w0, w1, w1", 0xffff_ffff, false),
        ("mul.lo.u32 w0, w1, 2", 0x8000_0000, true),
        ("mul.lo.u32 w0, w1, 2", 0x7fff_ffff, false),
        ("mul.lo.s16 w0, w1, w1", 0x100, true),
        ("mul.lo.s16 w0, w1, w1", 0xff, false),
        ("mad.lo.s32 w0, w1, w1, 0", 0x1_0000, true),
        ("mad.lo.s32 w0, w1, 2, 1", 0x7fff_ffff, false),
        ("shl.b32 w0, w1, 1", 0xc000_0000, false),
        ("shl.b32 w0, w1, 1", 0x8000_0000, true),
        ("shl.b32 w0, w1, 31", 1, false),
        ("shl.b32 w0, w1, 32", 1, true),
        ("shl.b32 w0, w1, 40", 0, false),
        ("cvt.u16.u32 w0, w1", 0xffff, false),
        ("cvt.u16.u32 w0, w1", 0x1_0000, true),
        ("cvt.u16.u32 w0, w1", 0xffff_8000, false),
        ("cvt.u8.u32 w0, w1", 0x100, true),
        ("cvt.s8.s32 w0, w1", 0xffff_ff80, false),
        ("cvt.sat.u8.u32 w0, w1", 0x100, false),
        ("cvt.u32.u64 w0, l1", 0xffff_ffff, false),
        ("cvt.u32.u64 w0, l1", 0x1_0000_0000, true),
        ("cvt.s32.s64 w0, l1", 0xffff_ffff_8000_0000, false),
        ("cvt.u32.u64 w0, l1", 0xffff_ffff_7fff_ffff, true),
    ] {
        let mut warp = Warp::new();
        warp.0.words[1] = [0; 32];
        warp.0.words[1][3] = a as u32;
        warp.0.longs[1][3] = a;
        warp.run(text);
        assert_eq!(warp.0.wrapped(Word(0)), u32::from(wraps) << 3, "{text} of {a:#x}");
        assert_eq!(warp.0.undefined(Word(0)), 0);
        // Not where the lane takes no part.
        let mut warp = Warp::new();
        warp.0.words[1][3] = a as u32;
        warp.0.longs[1][3] = a;
        warp.run_for(text, !(1 << 3));
        assert_eq!(warp.0.wrapped(Word(0)), 0, "{text} of {a:#x}");
    }
}

#[test]
fn sums_of_64_bits_never_wrap() {
    let mut warp = Warp::new();
    warp.0.longs[1] = [1 << 63; 32];
    for text in ["add.s64 l0, l1, l1", "mul.lo.s64 l0, l1, l1", "shl.b64 l0, l1, 1"] {
        warp.run(text);
        assert_eq!(warp.0.wrapped(Long(0)), 0, "{text}");
    }
}

/// Whether an exact result fits neither way into `bits`.
fn fits_neither(signed: i128, unsigned: i128, bits: u32) -> bool {
    let half = 1_i128 << (bits - 1);
    !(-half..half).contains(&signed) && !(0..2 * half).contains(&unsigned)
}

proptest! {
    #[test]
    fn wraps_as_stated(a: u32, b: u32, c: u32, narrow in 0..2_u32, count in 0..40_u32) {
        let (a, b, c) = (a >> (narrow * 15), b >> (narrow * 16), c);
        let signed = |a: u32| i128::from(a as i32);
        let unsigned = |a: u32| i128::from(a);
        let mut warp = Warp::new();
        warp.0.words[1] = [a; 32];
        warp.0.words[2] = [b; 32];
        warp.0.words[3] = [c; 32];
        warp.0.words[4] = [count; 32];
        let short = |a: u32| i128::from(a as u16 as i16);
        let long = |a: u32| i128::from(a as u16);
        for (text, bits, s, u) in [
            ("add.s32 w0, w1, w2", 32, signed(a) + signed(b), unsigned(a) + unsigned(b)),
            ("sub.s32 w0, w1, w2", 32, signed(a) - signed(b), unsigned(a) - unsigned(b)),
            ("mul.lo.u32 w0, w1, w2", 32, signed(a) * signed(b), unsigned(a) * unsigned(b)),
            ("mad.lo.u32 w0, w1, w2, w3", 32, signed(a) * signed(b) + signed(c), unsigned(a) * unsigned(b) + unsigned(c)),
            ("shl.b32 w0, w1, w4", 32, signed(a) << count, unsigned(a) << count),
            ("add.s16 w0, w1, w2", 16, short(a) + short(b), long(a) + long(b)),
            ("sub.u16 w0, w1, w2", 16, short(a) - short(b), long(a) - long(b)),
            ("mul.lo.s16 w0, w1, w2", 16, short(a) * short(b), long(a) * long(b)),
            ("mad.lo.s16 w0, w1, w2, w3", 16, short(a) * short(b) + short(c), long(a) * long(b) + long(c)),
            ("shl.b16 w0, w1, w4", 16, short(a) << count, long(a) << count),
            ("mad.wide.u16 w0, w1, w2, w3", 32, short(a) * short(b) + signed(c), long(a) * long(b) + unsigned(c)),
        ] {
            warp.run(text);
            let expected = if fits_neither(s, u, bits) { u32::MAX } else { 0 };
            prop_assert_eq!(warp.0.wrapped(Word(0)), expected, "{}", text);
        }
    }
}

#[test]
fn registers_out_of_range_do_nothing() {
    let (compute, _) = select("add.s32 w40, w41, w42").unwrap().unwrap();
    let mut warp = Warp::new();
    let before = warp.0.words.clone();
    compute.execute(&mut warp.0, u32::MAX);
    assert_eq!(warp.0.words, before);
}
