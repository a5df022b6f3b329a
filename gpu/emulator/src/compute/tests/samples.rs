//! Instructions that compilers write.

use super::select;

/// Arithmetic of kernels that NVRTC compiled, and of what the headers of CUDA write inline.
const INSTRUCTIONS: &str = "
add.s64 l0, l1, l2
add.s32 w0, w1, -1
mul.wide.u32 l0, w1, 4
mov.u32 w0, w1
cvt.u64.u32 l0, w1
and.b32 w0, w1, 31
setp.gt.u32 p0, w1, w2
shl.b32 w0, w1, 2
setp.lt.u32 p0, w1, 5
shr.u32 w0, w1, 5
fma.rn.f32 w0, w1, w2, w3
shl.b64 l0, l1, 3
selp.b32 w0, w1, w2, p0
fma.rn.f64 l0, l1, l2, l3
mov.f32 w0, 0
mov.f64 l0, l1
mov.b32 w0, w1
setp.eq.s32 p0, w1, 0
add.f64 l0, l1, l2
sub.s32 w0, w1, w2
add.f32 w0, w1, w2
mov.b64 {w0, w1}, l0
mov.b64 l0, {w0, w1}
setp.ne.s32 p0, w1, 0
selp.f64 l0, l1, l2, p0
or.pred p0, p1, p2
and.pred p0, p1, p2
and.b64 l0, l1, l2
cvt.u32.u16 w0, w1
mul.f64 l0, l1, l2
mul.f32 w0, w1, w2
setp.ge.u32 p0, w1, w2
mov.u16 w0, w1
or.b64 l0, l1, l2
setp.nan.f64 p0, l1, l1
setp.le.u32 p0, w1, w2
or.b32 w0, w1, w2
setp.gt.u64 p0, l1, l2
setp.eq.f64 p0, l1, 0
setp.nan.f32 p0, w1, w2
mov.u64 l0, l1
setp.eq.s16 p0, w1, 0
selp.u32 w0, 1, 0, p0
bfi.b32 w0, w1, w2, 8, 8
setp.num.f64 p0, l1, l1
and.b16 w0, w1, 255
setp.num.f32 p0, w1, w2
setp.lt.u64 p0, l1, l2
setp.eq.b32 p0, w1, w2
mul.wide.u16 w0, w1, w2
cvt.u32.u64 w0, l1
not.pred p0, p1
mov.pred p0, p1
mov.pred p0, 0
mul.lo.s64 l0, l1, l2
mul.lo.s32 w0, w1, w2
selp.f32 w0, w1, w2, p0
selp.b16 w0, w1, w2, p0
cvt.u16.u32 w0, w1
xor.pred p0, p1, p2
setp.neu.f32 p0, w1, 0
not.b32 w0, w1
min.u32 w0, w1, w2
max.u32 w0, w1, w2
popc.b32 w0, w1
selp.b64 l0, l1, l2, p0
mul.lo.s16 w0, w1, w2
neg.s32 w0, w1
sub.s16 w0, w1, w2
selp.u16 w0, w1, w2, p0
mov.b16 w0, w1
add.s16 w0, w1, w2
shl.b16 w0, w1, 3
setp.neu.f64 p0, l1, 0
cvt.u64.u16 l0, w1
cvt.s32.s8 w0, w1
shr.u64 l0, l1, 32
cvt.u16.u64 w0, l1
or.b16 w0, w1, w2
selp.u64 l0, l1, l2, p0
mad.lo.s64 l0, l1, l2, l3
mad.lo.s32 w0, w1, w2, w3
setp.ne.s16 p0, w1, 0
setp.ne.s64 p0, l1, 0
neg.s64 l0, l1
shr.u16 w0, w1, 3
sub.s64 l0, l1, l2
mul.hi.u32 w0, w1, w2
bfi.b64 l0, l1, l2, 8, 8
setp.gt.s16 p0, w1, w2
setp.lt.s16 p0, w1, w2
shr.s32 w0, w1, 31
mul.hi.u16 w0, w1, w2
";

#[test]
fn known() {
    for text in INSTRUCTIONS.trim().lines() {
        match select(text) {
            Ok(Some(_)) => {}
            other => panic!("`{text}`: {other:?}"),
        }
    }
}

#[test]
fn equal_where_written_alike() {
    let compute = |text| select(text).unwrap().unwrap().0;
    assert_eq!(compute("add.s32 w0, w1, w2"), compute("add.s32 w0, w1, w2"));
    assert_ne!(compute("add.s32 w0, w1, w2"), compute("add.u32 w0, w1, w2"));
    assert_ne!(compute("add.s32 w0, w1, w2"), compute("add.s32 w0, w1, w3"));
    let text = format!("{:?}", compute("add.s32 w0, w1, w2"));
    assert_eq!(text, "add.s32 [Word(0)] <- [Word(1), Word(2)]");
}

#[test]
fn no_arithmetic() {
    for text in ["ld.global.f32 w0, l0", "bar.sync 0", "bra l0", "vote.sync.all.pred p0, p1, 0"] {
        assert!(select(text).unwrap().is_none(), "{text}");
    }
}

#[test]
fn unknown_forms() {
    for text in [
        "add.frob.s32 w0, w1, w2",
        "add.sat.u32 w0, w1, w2",
        "add.s8 w0, w1, w2",
        "add w0, w1, w2",
        "add.s32 l0, w1, w2",
        "add.s32 w0, l1, w2",
        "add.s32 w0, w1",
        "add.s32 w0, w1, w2, w3",
        "mul.s32 w0, w1, w2",
        "mul.wide.u64 l0, l1, l2",
        "div.f32 w0, w1, w2",
        "rcp.f32 w0, w1",
        "sqrt.approx.f64 l0, l1",
        "setp.zz.s32 p0, w1, w2",
        "setp.ltu.s32 p0, w1, w2",
        "setp.lo.s32 p0, w1, w2",
        "shf.l.b32 w0, w1, w2, w3",
        "fns.b64 w0, w1, w2, w3",
        "cvt.rn.e4m3x2.f32 w0, w1, w2",
        "cvt.s32.f32 w0, w1",
        "cvt.rzi.relu.s32.f32 w0, w1",
        "mov.b64 {w0, w1, w2}, l0",
        "mov.b128 l0, {l1, l2}",
        "add.rz.f16 w0, w1, w2",
        "mad.f16 w0, w1, w2, w3",
        "sin.f32 w0, w1",
    ] {
        let error = select(text).map(|selected| selected.is_some()).unwrap_err();
        let opcode = text.split(' ').next().unwrap();
        let stated = error.to_string();
        assert!(stated.starts_with("PTX line 7: "), "{stated}");
        assert!(stated.contains(opcode) || stated.contains("no operand"), "{text}: {stated}");
    }
}
