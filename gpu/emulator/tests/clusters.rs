//! Clusters of two blocks: their shared memory, and the barrier of both.

#![allow(clippy::unwrap_used)]

mod harness;

use harness::Case;
use sparserl_emulator::finding::FindingKind::{self, *};

const BARRIER: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

/// `own` is a word of shared memory for each of a block's 32 threads; `%r5` is the address of the
/// other block's word for this thread, `%r6` the block's rank. `y` has a word for each thread of
/// the grid, at `%rd1`.
fn case(body: &str) -> Case {
    let text = format!(
        ".version 8.0
        .target sm_90
        .address_size 64
        .entry k(.param .u64 y) .explicitcluster .reqnctapercluster 2, 1, 1
        {{
            .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
            .shared .b32 own[32];
            ld.param.u64 %rd0, [y];
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, %ctaid.x;
            shl.b32 %r2, %r1, 5;
            add.u32 %r2, %r2, %r0;
            mul.wide.u32 %rd1, %r2, 4;
            add.s64 %rd1, %rd1, %rd0;
            mov.u32 %r3, own;
            shl.b32 %r4, %r0, 2;
            add.u32 %r3, %r3, %r4;
            mov.u32 %r6, %cluster_ctarank;
            xor.b32 %r7, %r6, 1;
            mapa.shared::cluster.u32 %r5, %r3, %r7;
            setp.eq.u32 %p0, %r6, 0;
            setp.eq.u32 %p1, %r0, 0;
            {body}
            ret;
        }}"
    );
    Case { text, grid: 6, block: 32, words: 192 }
}

fn kinds(body: &str) -> Vec<FindingKind> {
    case(body).kinds()
}

#[test]
fn blocks_of_a_cluster_read_and_change_each_others_memory() {
    let exchange = format!(
        "st.shared.u32 [%r3], %r2; {BARRIER} ld.shared::cluster.u32 %r8, [%r5]; {BARRIER} st.global.u32 [%rd1], %r8;"
    );
    let expected: Vec<u32> = (0..192).map(|i| i ^ 32).collect();
    assert_eq!(case(&exchange).results(), expected);
    let generic = format!(
        "st.shared.u32 [%r3], 5; {BARRIER}
        cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r7;
        atom.add.u32 %r9, [%rd3], %r2; {BARRIER} ld.u32 %r8, [%rd2]; st.global.u32 [%rd1], %r8;"
    );
    let expected: Vec<u32> = (0..192).map(|i| 5 + (i ^ 32)).collect();
    assert_eq!(case(&generic).results(), expected);
}

#[test]
fn where_a_block_is_in_its_cluster() {
    let body = "
        mov.u32 %r8, %clusterid.x; mov.u32 %r9, %nclusterid.x; mov.u32 %r10, %cluster_ctaid.x;
        mov.u32 %r11, %cluster_nctaid.x; mov.u32 %r12, %cluster_nctarank;
        getctarank.shared::cluster.u32 %r13, %r5; getctarank.shared::cluster.u32 %r14, %r3;
        mad.lo.u32 %r8, %r8, 10, %r9; mad.lo.u32 %r8, %r8, 10, %r10; mad.lo.u32 %r8, %r8, 10, %r11;
        mad.lo.u32 %r8, %r8, 10, %r12; mad.lo.u32 %r8, %r8, 10, %r13; mad.lo.u32 %r8, %r8, 10, %r14;
        mov.pred %p2, %is_explicit_cluster; @!%p2 trap; st.global.u32 [%rd1], %r8;";
    let of = |block: u32| {
        let (cluster, rank) = (block / 2, block % 2);
        cluster * 1_000_000 + 300_000 + rank * 10_000 + 2_200 + (1 - rank) * 10 + rank
    };
    let expected: Vec<u32> = (0..192).map(|i| of(i / 32)).collect();
    assert_eq!(case(body).results(), expected);
}

#[test]
fn what_nothing_orders_is_a_race() {
    // The second barrier lacks, behind which the block overwrites what the other still reads.
    let body = format!(
        "st.shared.u32 [%r3], %r2; {BARRIER} ld.shared::cluster.u32 %r8, [%r5]; st.shared.u32 [%r3], 1; {BARRIER}
        st.global.u32 [%rd1], %r8;"
    );
    assert_eq!(kinds(&body), [Race]);
    let relaxed = format!(
        "st.shared.u32 [%r3], %r2; barrier.cluster.arrive.relaxed; barrier.cluster.wait;
        ld.shared::cluster.u32 %r8, [%r5]; {BARRIER} st.global.u32 [%rd1], %r8;"
    );
    assert_eq!(kinds(&relaxed), [Race]);
    let fenced = relaxed.replace(
        "barrier.cluster.arrive.relaxed",
        "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed",
    );
    assert_eq!(kinds(&fenced), []);
}

#[test]
fn blocks_may_not_have_begun_or_may_have_ended() {
    let ended = format!(
        "st.shared.u32 [%r3], %r2; {BARRIER} ld.shared::cluster.u32 %r8, [%r5]; st.global.u32 [%rd1], %r8;"
    );
    assert_eq!(kinds(&ended), [AbsentBlock]);
    let kept = ended
        .replace("st.global", "barrier.cluster.arrive.relaxed; barrier.cluster.wait; st.global");
    assert_eq!(kinds(&kept), []);
    let begun = format!("red.shared::cluster.add.u32 [%r5], 1; {BARRIER}");
    assert!(kinds(&begun).contains(&AbsentBlock));
}

#[test]
fn addresses_of_no_block_and_past_its_memory() {
    let rank = format!(
        "{BARRIER} mapa.shared::cluster.u32 %r8, %r3, 2; st.shared::cluster.u32 [%r8], 1; {BARRIER}"
    );
    assert_eq!(kinds(&rank), [OutOfBounds]);
    let past = format!("{BARRIER} st.shared::cluster.u32 [%r5+128], 1; {BARRIER}");
    assert_eq!(kinds(&past), [OutOfBounds]);
    // Only `.shared::cluster` takes addresses of other blocks.
    assert_eq!(kinds(&format!("{BARRIER} st.shared.u32 [%r5], 1; {BARRIER}")), [OutOfBounds]);
}

#[test]
fn barriers_that_not_all_come_to() {
    assert_eq!(kinds(&format!("@%p0 bra OUT; {BARRIER} OUT: bar.sync 0;")), []);
    assert_eq!(
        kinds("barrier.cluster.arrive; @%p0 barrier.cluster.arrive; barrier.cluster.wait;"),
        [DivergentBarrier]
    );
    assert_eq!(kinds("barrier.cluster.wait;"), [DivergentBarrier]);
    // The first block waits for a lane that never comes.
    let never = "LOOP: @%p0 bra ON; @!%p1 bra ON; bra.uni LOOP; ON: barrier.cluster.arrive; barrier.cluster.wait;";
    assert!(kinds(never).contains(&Endless));
    // The first block has ended, the second polls.
    let polls =
        "@%p0 bra OUT; LOOP: ld.relaxed.gpu.global.u32 %r8, [%rd0]; setp.ne.u32 %p2, %r8, 0;
        @!%p2 bra LOOP; OUT:";
    for seed in 0..6 {
        let found = case(polls).run(seed).1.findings;
        // With so small a budget, looking for long may use it up.
        let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
        assert!(matches!(kinds[..], [Endless]) || seed > 0 && kinds == [OverBudget], "{kinds:?}");
    }
    let mut crossed = case(
        "setp.lt.u32 %p2, %r0, 32; @%p2 bra FIRST; bar.sync 0; bra.uni OUT;
        FIRST: barrier.cluster.arrive; barrier.cluster.wait; OUT:",
    );
    crossed.block = 64;
    assert_eq!(crossed.kinds(), [Deadlock, DivergentBarrier]);
}

/// In a kernel that names no cluster, with two warps; `%r5` is the address of the other warp's word
/// for this thread.
fn alone(body: &str) -> Case {
    let text = case(&format!(
        ".shared .b32 words[64]; mov.u32 %r3, words; add.u32 %r3, %r3, %r4; xor.b32 %r7, %r4, 128;
        mov.u32 %r5, words; add.u32 %r5, %r5, %r7; {body}"
    ));
    let text = text.text.replace(".explicitcluster .reqnctapercluster 2, 1, 1", "");
    Case { text, grid: 2, block: 64, words: 128 }
}

#[test]
fn without_clusters_a_block_is_alone() {
    let outside = "mov.u32 %r7, 1; mapa.shared::cluster.u32 %r5, %r3, %r7; cvt.u64.u32 %rd2, %r5;
        cvta.shared::cluster.u64 %rd2, %rd2; st.u32 [%rd2], 1;";
    assert_eq!(alone(outside).kinds(), [OutOfBounds]);
}

#[test]
fn without_clusters_a_block_is_a_cluster_of_its_own() {
    let exchange = |barrier: &str| {
        let body = format!(
            "st.shared.u32 [%r3], %r0; {barrier} ld.shared.u32 %r8, [%r5]; shl.b32 %r9, %r1, 6;
            add.u32 %r9, %r9, %r0; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd1, %rd1, %rd0; st.global.u32 [%rd1], %r8;"
        );
        alone(&body)
    };
    let expected: Vec<u32> = (0..128).map(|i| (i % 64) ^ 32).collect();
    let relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;";
    for fence in ["fence.acq_rel.cta;", "fence.acq_rel.cluster;", "fence.sc.gpu;"] {
        assert_eq!(exchange(&format!("{fence} {relaxed}")).results(), expected, "{fence}");
    }
    assert_eq!(exchange(BARRIER).results(), expected);
    assert_eq!(exchange(relaxed).kinds(), [Race]);
    let in_part =
        "setp.lt.u32 %p2, %r0, 32; @!%p2 bra ON; barrier.cluster.arrive; barrier.cluster.wait;
        ON: bar.sync 0;";
    assert_eq!(alone(in_part).kinds(), [DivergentBarrier, Deadlock]);
}

#[test]
fn threads_arrive_at_barriers_of_other_blocks() {
    // Each block has a barrier that counts the 32 lanes of the other, which have stored their
    // numbers there.
    let exchange = |arrive: &str| {
        format!(
            ".shared .align 8 .b64 full; mov.u32 %r10, full; mapa.shared::cluster.u32 %r11, %r10, %r7;
            st.shared.u32 [%r3], 0; @%p1 mbarrier.init.shared.b64 [%r10], 32; {BARRIER}
            {arrive}
            WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra WAIT;
            ld.shared.u32 %r8, [%r3]; st.global.u32 [%rd1], %r8; {BARRIER}"
        )
    };
    let store = "st.shared::cluster.u32 [%r5], %r2;";
    let arrives = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];";
    let expected: Vec<u32> = (0..192).map(|i| i ^ 32).collect();
    assert_eq!(case(&exchange(&format!("{store} {arrives}"))).results(), expected);
    assert_eq!(kinds(&exchange(&format!("{arrives} {store}"))), [Race]);
    let relaxed = arrives.replace("release", "relaxed");
    assert_eq!(kinds(&exchange(&format!("{store} {relaxed}"))), [Race]);
    assert!(kinds(&exchange(&format!("{store} @%p1 {arrives}"))).contains(&Endless));
}
