//! Values that nobody has written.

use sparserl_emulator::finding::FindingKind::*;

use super::*;

#[test]
fn undefined_values_are_found_where_they_matter() {
    let load = "ld.shared.u32 %r4, [%r2];";
    assert_eq!(kinds(load, 1, 32, 1), [], "read and not used");
    assert_eq!(kinds(&format!("{load} st.global.u32 [%rd1], %r4;"), 1, 32, 32), [Uninitialised]);
    let branch = format!("{load} setp.eq.u32 %p0, %r4, 0; @%p0 bra END; END:");
    assert_eq!(kinds(&branch, 1, 32, 32), [Uninitialised]);
    let selected = format!(
        "{load} setp.lt.u32 %p0, %r0, 99; selp.b32 %r5, %r0, %r4, %p0; st.global.u32 [%rd1], %r5;"
    );
    assert_eq!(kinds(&selected, 1, 32, 32), []);
    let moved = format!(
        "{load} shfl.sync.idx.b32 %r5, %r4, 0, 31, -1; add.s32 %r5, %r5, 1; st.shared.u32 [%r2], %r5; ld.shared.u32 %r6, [%r2]; st.global.u32 [%rd1], %r6;"
    );
    assert_eq!(kinds(&moved, 1, 32, 32), [Uninitialised]);
}

#[test]
fn an_undefined_value_is_told_where_it_was_read() {
    let body = "ld.shared.u32 %r4, [%r2];
        add.s32 %r5, %r4, 1;
        shfl.sync.idx.b32 %r6, %r5, 0, 31, -1;
        st.global.u32 [%rd1], %r6;";
    let run = run_body(body, 1, 32, 32);
    assert_eq!(run.kinds(), [Uninitialised]);
    let finding = &run.report.findings[0];
    let lines = source(body);
    let line = |text: &str| 1 + lines.lines().position(|line| line.contains(text)).unwrap();
    assert_eq!(finding.ptx_line as usize, line("ld.shared.u32 %r4"));
    assert_eq!(finding.address.as_ref().unwrap().place, "shared `tile` + 0 of 1024 bytes");
    let stored = format!("the value stored at PTX line {} depends on it", line("st.global.u32"));
    assert_eq!(finding.detail, stored);
}

#[test]
fn registers_that_nobody_wrote_are_undefined() {
    assert_eq!(
        kinds("add.s32 %r9, %r9, %r0; st.global.u32 [%rd1], %r9;", 1, 32, 32),
        [Uninitialised]
    );
    // Written on the way that is taken.
    let some =
        "setp.ge.u32 %p0, %r0, 99; @%p0 bra SKIP; mov.u32 %r9, 1; SKIP: st.global.u32 [%rd1], %r9;";
    assert_eq!(kinds(some, 1, 32, 32), []);
}

#[test]
fn a_condition_may_be_decided_without_an_undefined_part() {
    // As compilers write `i > 3 && s[3] > 0`.
    let body = |limit: &str| {
        format!(
            "ld.shared.u32 %r4, [tile+12];
            setp.gt.u32 %p0, %r4, 0;
            setp.gt.u32 %p1, %r0, {limit};
            and.pred %p2, %p0, %p1;
            @%p2 bra END;
            st.global.u32 [%rd1], %r0;
            END:"
        )
    };
    assert_eq!(kinds(&body("99"), 1, 32, 32), []);
    assert_eq!(kinds(&body("9"), 1, 32, 32), [Uninitialised]);
}
