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
