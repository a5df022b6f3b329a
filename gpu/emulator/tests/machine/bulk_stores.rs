//! Bulk copies from shared to global memory.

use sparserl_emulator::finding::FindingKind::{Misaligned, OutOfBounds, Race, Uninitialised};

use super::{kinds, run_body};

const FENCE: &str = "fence.proxy.async.shared::cta;";
const BARRIER: &str = "bar.sync 0;";
const COPY: &str = "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 256;";
const COMMIT: &str = "cp.async.bulk.commit_group;";
const WAIT: &str = "cp.async.bulk.wait_group 0;";

/// 64 threads store their numbers to `tile`, and something is done; the first of them does the
/// rest.
fn stored(between: &str, first: &str) -> String {
    format!(
        "mov.u32 %r10, tile; st.shared.u32 [%r2], 0; bar.sync 0; st.shared.u32 [%r2], %r0; {between}
        setp.ne.u32 %p7, %r0, 0; @%p7 bra END; {first} END:"
    )
}

fn whole(first: &str) -> String {
    stored(&format!("{FENCE} {BARRIER}"), first)
}

#[test]
fn what_was_stored_arrives() {
    let run = run_body(&whole(&format!("{COPY} {COMMIT} {WAIT}")), 1, 64, 64);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words(), (0..64).collect::<Vec<_>>());
    // The one that issues the copy may fence for the others.
    let one = stored(BARRIER, &format!("{FENCE} {COPY} {COMMIT} {WAIT}"));
    assert_eq!(kinds(&one, 1, 64, 64), []);
}

#[test]
fn groups_are_waited_for_in_their_order() {
    let body = |wait: &str| {
        whole(&format!(
            "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10], 16; {COMMIT}
            cp.async.bulk.global.shared::cta.bulk_group [%rd0+16], [%r10+16], 16; {COMMIT}
            cp.async.bulk.wait_group.read {wait}; mov.u32 %r11, 100; st.shared.u32 [%r10], %r11; {WAIT}"
        ))
    };
    assert_eq!(kinds(&body("1"), 1, 64, 64), []);
    assert_eq!(kinds(&body("2"), 1, 64, 64), [Race], "it may still be read");
}

#[test]
fn what_was_read_need_not_have_arrived() {
    let read = "cp.async.bulk.wait_group.read 0;";
    let after = |wait: &str, access: &str| {
        let body = whole(&format!("{COPY} {COMMIT} {wait} mov.u32 %r11, 7; {access}"));
        kinds(&body, 1, 64, 64)
    };
    for access in ["ld.global.u32 %r12, [%rd0+64];", "st.global.u32 [%rd0+252], %r11;"] {
        assert_eq!(after(read, access), [Race], "{access}");
        assert_eq!(after(WAIT, access), [], "{access}");
        assert_eq!(after(&format!("{read} {WAIT}"), access), [], "{access}");
    }
    // The source may be written again, and what is under way arrives before the launch has ended.
    assert_eq!(after(read, "st.shared.u32 [%r10], %r11;"), []);
    let run = run_body(&whole(&format!("{COPY} {COMMIT} {read}")), 1, 64, 64);
    assert_eq!((run.report.findings.len(), run.words()), (0, (0..64).collect::<Vec<_>>()));
}

#[test]
fn reductions_change_what_is_there() {
    let reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r10], 256;";
    let body = |wait: &str, access: &str| {
        // Each thread stores a hundred times its number, and fences that for all copies.
        let set = "mul.lo.u32 %r11, %r0, 100; st.global.u32 [%rd1], %r11; fence.proxy.async;";
        let copied = format!("{reduce} {COMMIT} {wait} {access}");
        stored(&format!("{set} {BARRIER}"), &copied)
    };
    let run = run_body(&body(WAIT, ""), 1, 64, 64);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words(), (0..64).map(|thread| thread * 101).collect::<Vec<_>>());
    let access = "ld.global.u32 %r12, [%rd0+64];";
    assert_eq!(kinds(&body(WAIT, access), 1, 64, 64), []);
    assert_eq!(kinds(&body("cp.async.bulk.wait_group.read 0;", access), 1, 64, 64), [Race]);
    let unfenced = body(WAIT, "").replace("fence.proxy.async;", FENCE);
    assert_eq!(kinds(&unfenced, 1, 64, 64), [Race], "the fence is of shared memory only");
}

#[test]
fn what_orders_nothing_is_told() {
    let copy = format!("{COPY} {COMMIT} {WAIT}");
    assert_eq!(kinds(&stored(BARRIER, &copy), 1, 64, 64), [Race], "without a fence");
    assert_eq!(kinds(&stored(FENCE, &copy), 1, 64, 64), [Race], "without a barrier");
    assert_eq!(kinds(&whole(&format!("{COPY} {COMMIT}")), 1, 64, 64), [Race], "without a wait");
    assert_eq!(kinds(&whole(&format!("{COPY} {WAIT}")), 1, 64, 64), [Race], "of no group");
}

#[test]
fn what_does_not_fit_is_told() {
    let of = |copy: &str| {
        let body =
            whole(&format!("cp.async.bulk.global.shared::cta.bulk_group {copy}; {COMMIT} {WAIT}"));
        kinds(&body, 1, 64, 64)
    };
    assert_eq!(of("[%rd0], [%r10], 20"), [Misaligned]);
    assert_eq!(of("[%rd0+4], [%r10], 16"), [Misaligned]);
    assert_eq!(of("[%rd0], [%r10], 272"), [OutOfBounds]);
    assert_eq!(of("[%rd0], [%r10+1008], 32"), [OutOfBounds, Uninitialised]);
}
