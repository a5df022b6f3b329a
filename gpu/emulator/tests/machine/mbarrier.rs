//! Barriers in shared memory, and what comes to them by itself.

use sparserl_emulator::finding::FindingKind::{self, *};
use sparserl_emulator::launch::Options;

use super::{kinds, run_body, run_seeded};

/// Thread 0 makes an mbarrier at `tile`, whose address is in `%r10`, that counts so many arrivals;
/// then all do something.
fn with_barrier(count: u32, body: &str) -> String {
    format!(
        "mov.u32 %r10, tile;
        setp.ne.u32 %p7, %r0, 0;
        @%p7 bra MADE;
        mbarrier.init.shared::cta.b64 [%r10], {count};
        fence.mbarrier_init.release.cluster;
        MADE: bar.sync 0;
        {body}"
    )
}

#[test]
fn a_phase_ends_with_its_last_arrival() {
    // The sums of a warp's words are read by the other warp behind the barrier.
    let body = |arrive: &str, wait: &str| {
        with_barrier(
            64,
            &format!(
                "st.shared.u32 [%r2+64], %r0;
                {arrive}
                WAIT: {wait}
                @!%p0 bra WAIT;
                xor.b32 %r4, %r3, 128;
                add.s32 %r4, %r4, %r10;
                ld.shared.u32 %r5, [%r4+64];
                st.global.u32 [%rd1], %r5;"
            ),
        )
    };
    let swapped: Vec<u32> = (0..64).map(|thread| thread ^ 32).collect();
    for (arrive, wait) in [
        (
            "mbarrier.arrive.shared.b64 %rd2, [%r10];",
            "mbarrier.test_wait.shared.b64 %p0, [%r10], %rd2;",
        ),
        (
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r10], 1;",
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r10], 0, 1000;",
        ),
    ] {
        let run = run_body(&body(arrive, wait), 1, 64, 64);
        assert_eq!(run.report.findings, []);
        assert_eq!(run.words(), swapped);
    }
    let relaxed = body(
        "mbarrier.arrive.relaxed.cta.shared.b64 _, [%r10];",
        "mbarrier.test_wait.parity.relaxed.cta.shared.b64 %p0, [%r10], 0;",
    );
    assert_eq!(run_body(&relaxed, 1, 64, 64).kinds(), [Race]);
}

#[test]
fn phases_follow_each_other() {
    // Two arrivals a phase, then one: the second thread drops out.
    let body = with_barrier(
        2,
        "setp.gt.u32 %p1, %r0, 1;
        @%p1 bra END;
        setp.eq.u32 %p2, %r0, 1;
        @%p2 bra DROP;
        mbarrier.arrive.shared.b64 %rd2, [%r10];
        bra FIRST;
        DROP: mbarrier.arrive_drop.shared.b64 %rd2, [%r10];
        mbarrier.pending_count.b64 %r6, %rd2;
        FIRST: mbarrier.test_wait.shared.b64 %p3, [%r10], %rd2;
        @!%p3 bra FIRST;
        @%p2 bra END;
        mbarrier.arrive.shared.b64 %rd3, [%r10];
        mbarrier.pending_count.b64 %r5, %rd3;
        mbarrier.test_wait.parity.shared.b64 %p4, [%r10], 1;
        selp.u32 %r6, 1, 0, %p4;
        st.global.u32 [%rd0], %r5;
        st.global.u32 [%rd0+4], %r6;
        END:",
    );
    let run = run_body(&body, 1, 32, 2);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words(), [1, 1], "one arrival was left, and ended the second phase");
}

#[test]
fn a_bulk_copy_comes_when_it_is_waited_for() {
    let body = |wait: &str, bytes: u32| {
        with_barrier(
            1,
            &format!(
                "setp.ne.u32 %p1, %r0, 0;
                @%p1 bra ISSUED;
                mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;
                mov.u32 %r11, {bytes};
                add.s32 %r12, %r10, 16;
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd0], %r11, [%r10];
                ISSUED:
                {wait}
                ld.shared.u32 %r4, [%r2+16];
                add.s32 %r4, %r4, 5;
                st.global.u32 [%rd1+128], %r4;"
            ),
        )
    };
    let wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p0, [%r10], 0; @!%p0 bra WAIT;";
    let run = run_body(&body(wait, 128), 1, 32, 64);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words()[32..], [5; 32]);
    assert_eq!(kinds(&body("bar.sync 0;", 128), 1, 32, 64), [Uninitialised]);
    let unfenced = body(wait, 128).replace("fence.mbarrier_init.release.cluster;", "");
    assert_eq!(kinds(&unfenced, 1, 32, 64), [Race], "copies need not see that it is there");
    let fenced = unfenced.replace("MADE: bar.sync 0;", "MADE: fence.proxy.async; bar.sync 0;");
    assert_eq!(kinds(&fenced, 1, 32, 64), []);
    assert_eq!(kinds(&body(wait, 100), 1, 32, 64)[0], Misaligned);
    let lacking = run_body(&body(wait, 112), 1, 32, 64).report.findings;
    let last = lacking.last().unwrap();
    assert_eq!(last.kind, Endless, "16 bytes never come");
    let lacks = "0 phases have ended, and whose present one waits for 0 arrivals and 16 bytes";
    assert!(last.detail.contains(lacks), "{}", last.detail);

    // A phase that expects half of the bytes does not wait for the others.
    let half = body(wait, 128).replace("[%r10], 128;", "[%r10], 64;");
    let found = run_body(&half, 1, 32, 64).report.findings;
    let place = &found[0].address.as_ref().unwrap().place;
    assert_eq!((found[0].kind, found.len()), (Uninitialised, 1));
    assert!(place.contains("to which an asynchronous copy is under way, issued at"), "{place}");

    // Who asks once may be told that nothing has come; who asks again is told the truth in the end.
    let once = body("mbarrier.try_wait.parity.shared.b64 %p0, [%r10], 0;", 128);
    let seeded = |body: &str, seed| {
        run_seeded(body, 1, 32, 64, &Options { seed, budget: 100_000, ..Options::default() })
            .kinds()
    };
    let told: Vec<_> = (1..6).map(|seed| seeded(&once, seed)).collect();
    assert!(told.iter().all(|kinds| !kinds.is_empty()), "{told:?}");
    assert!(told.iter().any(|kinds| kinds.contains(&Uninitialised)), "{told:?}");
    assert!((1..6).all(|seed| seeded(&body(wait, 128), seed).is_empty()));
}

#[test]
fn misuse_is_told() {
    let told = |body: &str| -> Vec<FindingKind> { kinds(body, 1, 32, 32) };
    let arrive = "mbarrier.arrive.shared.b64 _, [%r10];";
    assert_eq!(told(&format!("mov.u32 %r10, tile; {arrive}")), [Uninitialised]);
    assert_eq!(told(&with_barrier(31, arrive)), []);
    assert_eq!(
        told(&with_barrier(1, "mbarrier.arrive.shared.b64 _, [%r10], 2;")),
        [TooManyArrivals]
    );
    assert_eq!(told(&with_barrier(32, "mbarrier.arrive.shared.b64 _, [%r10+4];")), [Misaligned]);
    let gone = "mbarrier.inval.shared.b64 [%r10];";
    assert_eq!(
        told(&with_barrier(32, &format!("@!%p7 {gone} bar.sync 0; {arrive}"))),
        [Uninitialised]
    );
    let unordered = with_barrier(64, arrive).replace("bar.sync 0;", "");
    let kinds = run_body(&unordered, 1, 64, 64).kinds();
    assert!(kinds.contains(&Race) || kinds.contains(&Uninitialised), "{kinds:?}");
}
