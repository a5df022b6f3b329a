//! Small matrices that the lanes of a warp hold together.

use std::fmt::Write;

use sparserl_emulator::finding::FindingKind::{MissingLanes, Race, Uninitialised};

use super::{kinds, run_body};

/// A of 16 × 16 at `tile` and B of 16 × 8 at `tile + 512`, both by rows in binary16, with small
/// numbers that are made of their places: row * 3 % 7 - column for A, row + column * 5 % 3 for B.
fn filled() -> String {
    let mut text = "mov.u32 %r10, tile;".to_owned();
    for part in 0..8 {
        write!(
            text,
            "add.s32 %r11, %r0, {first};
            shr.u32 %r12, %r11, 4; and.b32 %r13, %r11, 15;
            mul.lo.s32 %r14, %r12, 3; rem.u32 %r14, %r14, 7; sub.s32 %r14, %r14, %r13;
            cvt.rn.f16.s32 %rs1, %r14;
            shl.b32 %r15, %r11, 1; add.s32 %r15, %r15, %r10;
            st.shared.b16 [%r15], %rs1;",
            first = part * 32
        )
        .unwrap();
    }
    for part in 0..4 {
        write!(
            text,
            "add.s32 %r11, %r0, {first};
            shr.u32 %r12, %r11, 3; and.b32 %r13, %r11, 7;
            mul.lo.s32 %r14, %r13, 5; rem.u32 %r14, %r14, 3; add.s32 %r14, %r14, %r12;
            cvt.rn.f16.s32 %rs1, %r14;
            shl.b32 %r15, %r11, 1; add.s32 %r15, %r15, %r10;
            st.shared.b16 [%r15+512], %rs1;",
            first = part * 32
        )
        .unwrap();
    }
    text + "bar.warp.sync -1;"
}

/// Loads both as kernels do, multiplies, and stores D by rows in binary32.
fn product(fill: &str, depth: u32) -> String {
    let (a, b) = match depth {
        16 => ("%r16, %r17, %r18, %r19", "%r20, %r21"),
        _ => ("%r16, %r17", "%r20"),
    };
    format!(
        ".reg .b16 %rs<4>;
        {fill}
        mov.u32 %r10, tile;
        and.b32 %r11, %r0, 15; shl.b32 %r11, %r11, 5; add.s32 %r11, %r11, %r10;
        shr.u32 %r12, %r0, 4; shl.b32 %r12, %r12, 4; add.s32 %r11, %r11, %r12;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r16, %r17, %r18, %r19}}, [%r11];
        and.b32 %r13, %r0, 15; shl.b32 %r13, %r13, 4; add.s32 %r13, %r13, %r10;
        ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r20, %r21}}, [%r13+512];
        mov.f32 %f0, 0f3F800000;
        mma.sync.aligned.m16n8k{depth}.row.col.f32.f16.f16.f32
            {{%f1, %f2, %f3, %f4}}, {{{a}}}, {{{b}}}, {{%f0, %f0, %f0, %f0}};
        shr.u32 %r22, %r0, 2; shl.b32 %r22, %r22, 5;
        and.b32 %r23, %r0, 3; shl.b32 %r23, %r23, 3; add.s32 %r22, %r22, %r23;
        cvt.u64.u32 %rd2, %r22; add.s64 %rd2, %rd2, %rd0;
        st.global.v2.f32 [%rd2], {{%f1, %f2}};
        st.global.v2.f32 [%rd2+256], {{%f3, %f4}};"
    )
}

#[test]
fn products_of_loaded_matrices_are_right() {
    for depth in [8, 16] {
        let run = run_body(&product(&filled(), depth), 1, 32, 128);
        assert_eq!(run.report.findings, []);
        let expected = (0..16).flat_map(|row: i32| {
            (0..8).map(move |column| {
                let a = |k: i32| row * 3 % 7 - k;
                let b = |k: i32| k + column * 5 % 3;
                1.0 + (0..depth.cast_signed()).map(|k| (a(k) * b(k)) as f32).sum::<f32>()
            })
        });
        let found: Vec<f32> = run.words().into_iter().map(f32::from_bits).collect();
        assert_eq!(found, expected.collect::<Vec<_>>(), "depth {depth}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    // Without the last part of B, what comes of it is undefined.
    let all = filled();
    let last = all.rfind("add.s32 %r11, %r0, 96").unwrap();
    let but_last = format!("{} bar.warp.sync -1;", &all[..last]);
    assert_eq!(kinds(&product(&but_last, 16), 1, 32, 128), [Uninitialised]);
    assert_eq!(kinds(&product(&but_last, 8), 1, 32, 128), [], "not looked at");
    assert!(kinds(&product(&filled(), 16), 1, 16, 128).contains(&MissingLanes));
}

#[test]
fn matrices_are_stored_as_they_are_loaded() {
    // Each lane's two numbers of 16 bits are twice its number and one more.
    let stored = |form: &str| {
        format!(
            "mov.u32 %r10, tile; and.b32 %r11, %r0, 7; shl.b32 %r11, %r11, 4; add.s32 %r11, %r11, %r10;
            mul.lo.u32 %r12, %r0, 131074; add.s32 %r12, %r12, 65536;
            stmatrix.sync.aligned.m8n8.x1{form}.shared.b16 [%r11], {{%r12}};
            bar.warp.sync -1; ld.shared.u32 %r13, [%r2]; st.global.u32 [%rd1], %r13;"
        )
    };
    let numbers = |body: &str| -> Vec<u32> {
        let run = run_body(body, 1, 32, 32);
        assert_eq!(run.report.findings, []);
        run.words().into_iter().flat_map(|word| [word & 0xFFFF, word >> 16]).collect()
    };
    assert_eq!(numbers(&stored("")), (0..64).collect::<Vec<_>>());
    let transposed: Vec<u32> = (0..64).map(|at| at % 8 * 8 + at / 8).collect();
    assert_eq!(numbers(&stored(".trans")), transposed);
    assert_eq!(kinds(&stored("").replace("bar.warp.sync -1;", ""), 1, 32, 32), [Race]);
}
