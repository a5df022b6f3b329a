//! What threads tell each other by memory: tickets, locks, messages.

use sparserl_emulator::finding::FindingKind::*;

use super::*;

#[test]
fn a_ticket_hands_over_what_was_fenced() {
    // Each block writes its word; the last one adds them up.
    let body = |fence: &str, acquire: &str| {
        format!(
            "mul.wide.u32 %rd2, %r1, 4;
            add.s64 %rd2, %rd2, %rd0;
            setp.ne.u32 %p0, %r0, 0;
            @%p0 bra COUNTED;
            add.s32 %r4, %r1, 1;
            st.global.u32 [%rd2+8], %r4;
            {fence}
            atom.global.add.u32 %r5, [%rd0], 1;
            st.shared.u32 [tile], %r5;
            {acquire}
            COUNTED:
            bar.sync 0;
            ld.shared.u32 %r5, [tile];
            setp.ne.u32 %p1, %r5, 4;
            @%p1 ret;
            setp.ne.u32 %p0, %r0, 40;
            @%p0 ret;
            mov.u32 %r6, 0;
            ld.global.u32 %r7, [%rd0+8];
            add.s32 %r6, %r6, %r7;
            ld.global.u32 %r7, [%rd0+12];
            add.s32 %r6, %r6, %r7;
            ld.global.u32 %r7, [%rd0+16];
            add.s32 %r6, %r6, %r7;
            ld.global.u32 %r7, [%rd0+20];
            add.s32 %r6, %r6, %r7;
            ld.global.u32 %r7, [%rd0+24];
            add.s32 %r6, %r6, %r7;
            st.global.u32 [%rd0+4], %r6;"
        )
    };
    let right = body("membar.gl;", "membar.gl;");
    for seed in 0..10 {
        let run =
            run_seeded(&right, 5, 64, 7, &Options { seed, budget: 10_000, ..Options::default() });
        assert_eq!(run.report.findings, [], "seed {seed}");
        assert_eq!(run.words(), [5, 15, 1, 2, 3, 4, 5]);
    }
    assert_eq!(kinds(&body("", "membar.gl;"), 5, 64, 7), [Race]);
    assert_eq!(kinds(&body("membar.gl;", ""), 5, 64, 7), [Race]);
    assert_eq!(kinds(&body("membar.cta;", "membar.gl;"), 5, 64, 7), [Race]);
}

/// All write, one of each block counts after a barrier, and the block that was last reads what
/// another wrote; with fences before the barrier, after the count, and by all behind the next
/// barrier.
fn last_block_reads([all, counter, readers]: [&str; 3]) -> String {
    format!(
        "mad.lo.s32 %r4, %r1, 64, %r0;
        mul.wide.u32 %rd2, %r4, 4;
        add.s64 %rd2, %rd2, %rd0;
        st.global.u32 [%rd2+4], %r4;
        {all}
        bar.sync 0;
        setp.ne.u32 %p0, %r0, 0;
        @%p0 bra COUNTED;
        atom.global.add.u32 %r5, [%rd0], 1;
        st.shared.u32 [tile], %r5;
        {counter}
        COUNTED:
        bar.sync 0;
        ld.shared.u32 %r5, [tile];
        setp.ne.u32 %p1, %r5, 1;
        @%p1 ret;
        {readers}
        xor.b32 %r4, %r4, 64;
        mul.wide.u32 %rd2, %r4, 4;
        add.s64 %rd2, %rd2, %rd0;
        ld.global.u32 %r6, [%rd2+4];"
    )
}

#[test]
fn what_each_thread_fenced_is_handed_over_behind_a_barrier() {
    let body = |fence| last_block_reads([fence, "membar.gl;", ""]);
    assert_eq!(kinds(&body("membar.gl;"), 2, 64, 129), []);
    assert_eq!(kinds(&body(""), 2, 64, 129), [Race]);
}

#[test]
fn blocks_wait_for_each_other() {
    // Block b waits until block b - 1 has set its flag.
    let body = "
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd2, %rd2, %rd0;
        setp.eq.u32 %p0, %r1, 0;
        @%p0 bra GO;
        WAIT:
        ld.volatile.global.u32 %r4, [%rd2+-4];
        setp.eq.u32 %p1, %r4, 0;
        @%p1 bra WAIT;
        membar.gl;
        ld.global.u32 %r5, [%rd2+76];
        add.s32 %r5, %r5, 1;
        GO:
        @%p0 mov.u32 %r5, 7;
        st.global.u32 [%rd2+80], %r5;
        membar.gl;
        st.volatile.global.u32 [%rd2], 1;";
    for seed in [0, 1, 2, 3] {
        let run =
            run_seeded(body, 20, 1, 40, &Options { seed, budget: 100_000, ..Options::default() });
        assert_eq!(run.report.findings, []);
        let expected: Vec<u32> = std::iter::repeat_n(1, 20).chain(7..27).collect();
        assert_eq!(run.words(), expected);
    }
}

#[test]
fn a_lock_within_a_warp_makes_progress() {
    let body = "
        LOCK:
        atom.global.cas.b32 %r4, [%rd0], 0, 1;
        setp.ne.u32 %p0, %r4, 0;
        @%p0 bra LOCK;
        membar.gl;
        ld.global.u32 %r5, [%rd0+4];
        add.s32 %r5, %r5, 1;
        st.global.u32 [%rd0+4], %r5;
        membar.gl;
        atom.global.exch.b32 %r4, [%rd0], 0;";
    for seed in 0..4 {
        let run =
            run_seeded(body, 2, 32, 2, &Options { seed, budget: 5_000_000, ..Options::default() });
        assert_eq!(run.report.findings, [], "seed {seed}");
        assert_eq!(run.words(), [0, 64]);
    }
}

#[test]
fn an_atomic_hides_no_weak_write() {
    // The first block clears the word that all add to, and adds to it as well.
    let body = "
        setp.ne.u32 %p0, %r1, 0;
        @%p0 bra ADD;
        st.global.u32 [%rd1], 0;
        ADD:
        red.global.add.u32 [%rd1], 1;";
    assert_eq!(kinds(body, 3, 32, 32), [Race]);
    assert_eq!(kinds(body, 1, 32, 32), []);
}

#[test]
fn atomics_of_a_block_race_with_those_of_another() {
    let body = "atom.global.cta.add.u32 %r4, [%rd0], 1;";
    assert_eq!(kinds(body, 1, 64, 1), []);
    assert_eq!(kinds(body, 2, 64, 1), [Race]);
}

#[test]
fn a_lock_with_two_kinds_of_waiting_lanes_makes_progress() {
    // Lanes of two branches spin for the lock that a third one holds.
    let spin = |name: &str| {
        format!(
            "{name}: atom.global.cas.b32 %r4, [%rd0], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra {name};
            membar.gl; ld.global.u32 %r5, [%rd0+4]; add.s32 %r5, %r5, 1; st.global.u32 [%rd0+4], %r5;
            membar.gl; atom.global.exch.b32 %r4, [%rd0], 0;"
        )
    };
    let (first, second) = (spin("FIRST"), spin("SECOND"));
    let body =
        format!("setp.ge.u32 %p1, %r0, 16; @%p1 bra OTHER; {first} bra END; OTHER: {second} END:");
    for seed in 0..4 {
        let run =
            run_seeded(&body, 1, 32, 2, &Options { seed, budget: 2_000_000, ..Options::default() });
        assert_eq!(run.report.findings, [], "seed {seed}");
        assert_eq!(run.words(), [0, 32]);
    }
}

#[test]
fn lanes_that_fence_one_by_one_hand_over_all_that_they_wrote() {
    // Lanes fence at different times, some of them twice; one counts for all.
    let body = "
        mad.lo.s32 %r4, %r1, 32, %r0;
        mul.wide.u32 %rd2, %r4, 4;
        add.s64 %rd2, %rd2, %rd0;
        setp.ge.u32 %p0, %r0, 7;
        @%p0 bra WRITE;
        membar.gl;
        WRITE:
        st.global.u32 [%rd2+4], %r4;
        membar.gl;
        bar.warp.sync -1;
        setp.ne.u32 %p0, %r0, 0;
        mov.u32 %r5, 0;
        @%p0 bra COUNTED;
        atom.global.add.u32 %r5, [%rd0], 1;
        COUNTED:
        shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;
        setp.ne.u32 %p1, %r5, 1;
        @%p1 ret;
        membar.gl;
        bar.warp.sync -1;
        xor.b32 %r4, %r4, 37;
        mul.wide.u32 %rd2, %r4, 4;
        add.s64 %rd2, %rd2, %rd0;
        ld.global.u32 %r6, [%rd2+4];";
    for seed in 0..40 {
        let run =
            run_seeded(body, 2, 32, 65, &Options { seed, budget: 100_000, ..Options::default() });
        assert_eq!(run.report.findings, [], "seed {seed}");
    }
}

#[test]
fn a_thousand_threads_take_a_lock_in_turn() {
    // Waiting counts against no budget, and what the lock hands on takes no more room each time.
    let body = "
        LOCK:
        atom.global.cas.b32 %r4, [%rd0], 0, 1;
        setp.ne.u32 %p0, %r4, 0;
        @%p0 bra LOCK;
        membar.gl;
        ld.global.u32 %r5, [%rd0+4];
        add.s32 %r5, %r5, 1;
        st.global.u32 [%rd0+4], %r5;
        membar.gl;
        atom.global.exch.b32 %r4, [%rd0], 0;";
    let run =
        run_seeded(body, 2, 1024, 2, &Options { seed: 0, budget: 1_000_000, ..Options::default() });
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words(), [0, 2048]);
}

#[test]
fn blocks_of_a_whole_device_meet() {
    // Each counts itself, then waits for all.
    let body = |blocks: u32| {
        format!(
            "setp.ne.u32 %p0, %r0, 0;
            @%p0 bra MET;
            membar.gl;
            atom.global.add.u32 %r4, [%rd0], 1;
            WAIT:
            ld.relaxed.gpu.global.u32 %r4, [%rd0];
            setp.lt.u32 %p1, %r4, {blocks};
            @%p1 bra WAIT;
            membar.gl;
            MET:
            bar.sync 0;"
        )
    };
    for seed in 0..2 {
        let options = Options { seed, budget: 100_000, ..Options::default() };
        assert_eq!(run_seeded(&body(264), 264, 1024, 1, &options).kinds(), []);
    }
    // Of a thousand threads each, a device has room for two blocks on a multiprocessor.
    let run = run_seeded(
        &body(265),
        265,
        1024,
        1,
        &Options { seed: 0, budget: 100_000, ..Options::default() },
    );
    assert_eq!(run.kinds(), [Endless]);
}

#[test]
fn a_message_without_fences_may_not_arrive() {
    // Block 0 writes a value and then a flag, both relaxed; block 1 waits for the flag.
    let body = |fence: &str| {
        format!(
            "setp.ne.u32 %p0, %r1, 0;
            @%p0 bra WAIT;
            st.relaxed.gpu.global.u32 [%rd0+4], 7;
            {fence}
            st.relaxed.gpu.global.u32 [%rd0], 1;
            ret;
            WAIT:
            ld.relaxed.gpu.global.u32 %r4, [%rd0];
            setp.eq.u32 %p1, %r4, 0;
            @%p1 bra WAIT;
            {fence}
            ld.relaxed.gpu.global.u32 %r5, [%rd0+4];
            st.global.u32 [%rd0+8], %r5;"
        )
    };
    let results = |fence: &str| -> Vec<u32> {
        let run = |seed| {
            run_seeded(
                &body(fence),
                2,
                1,
                3,
                &Options { seed, budget: 100_000, ..Options::default() },
            )
        };
        (0..24).map(|seed| run(seed).words()[2]).collect()
    };
    assert!(results("membar.gl;").iter().all(|&value| value == 7));
    assert!(results("fence.acq_rel.gpu;").iter().all(|&value| value == 7));
    assert!(results("").contains(&0));
    assert!(results("membar.cta;").contains(&0), "too narrow");
    let plain =
        run_seeded(&body(""), 2, 1, 3, &Options { seed: 0, budget: 100_000, ..Options::default() });
    assert!(plain.report.remarks.iter().any(|remark| remark.kind == UnorderedRead));
}

#[test]
fn all_may_fence_behind_the_barrier_that_tells_them() {
    let body = |fence| last_block_reads(["membar.gl;", "", fence]);
    assert_eq!(kinds(&body("membar.gl;"), 2, 64, 129), []);
    // Without the one order of all `fence.sc`, only what counted has synchronised.
    assert_eq!(kinds(&body("fence.acq_rel.gpu;"), 2, 64, 129), [Race]);
    assert_eq!(kinds(&body(""), 2, 64, 129), [Race]);
}

#[test]
fn look_back_over_many_blocks_takes_time_in_proportion() {
    // Each block adds one to what the block before it has left.
    let body = "
        mul.wide.u32 %rd2, %r1, 8;
        add.s64 %rd2, %rd2, %rd0;
        mov.u32 %r4, 0;
        setp.eq.u32 %p0, %r1, 0;
        @%p0 bra FIRST;
        WAIT:
        ld.relaxed.gpu.global.u32 %r5, [%rd2+-4];
        setp.eq.u32 %p1, %r5, 0;
        @%p1 bra WAIT;
        membar.gl;
        ld.global.u32 %r4, [%rd2+-8];
        FIRST:
        add.s32 %r4, %r4, 1;
        st.global.u32 [%rd2], %r4;
        membar.gl;
        st.relaxed.gpu.global.u32 [%rd2+4], 1;";
    let blocks = 20_000;
    let run = run_seeded(body, blocks, 1, 2 * blocks as usize, &Options::default());
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words()[2 * blocks as usize - 2], blocks);
}

#[test]
fn a_guess_of_what_a_swap_finds_is_no_race() {
    let body = |first: &str| {
        format!(
            "{first}
            AGAIN:
            mov.u32 %r5, %r4;
            add.s32 %r6, %r5, 1;
            atom.global.cas.b32 %r4, [%rd0], %r5, %r6;
            setp.ne.u32 %p0, %r4, %r5;
            @%p0 bra AGAIN;"
        )
    };
    let right = body("ld.global.u32 %r4, [%rd0];");
    for seed in 0..6 {
        let run =
            run_seeded(&right, 2, 32, 1, &Options { seed, budget: 100_000, ..Options::default() });
        assert_eq!(run.report.findings, [], "seed {seed}");
        assert_eq!(run.words(), [64]);
    }
    let unrelated = body("ld.global.u32 %r7, [%rd0];\nmov.u32 %r4, 0;");
    assert_eq!(kinds(&unrelated, 2, 32, 1), [Race]);
    // What is read there is no guess of what is here, and what is computed of a read is none
    // either.
    let elsewhere = body("ld.global.u32 %r4, [%rd0+4];\natom.global.add.u32 %r7, [%rd0+4], 1;");
    assert_eq!(kinds(&elsewhere, 2, 32, 2), [Race]);
    let computed = body("ld.global.u32 %r7, [%rd0];\nadd.s32 %r4, %r7, 1;");
    assert_eq!(kinds(&computed, 2, 32, 1), [Race]);
}
