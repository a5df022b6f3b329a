//! How threads run and what is found, on small kernels written in PTX.

#![allow(clippy::unwrap_used)]

mod bulk_stores;
mod matrix;
mod mbarrier;
mod order;
mod sample;
mod undefined;

use sparserl_emulator::finding::FindingKind::{self, *};
use sparserl_emulator::launch::{Argument, Launch, Options, Report};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::{BufferId, Memory};
use sparserl_emulator::ptx::Module;

/// A kernel with `y` in `%rd0` and `%tid.x`, `%ctaid.x` in `%r0`, `%r1`, the address of the
/// thread's word of `y` in `%rd1` and of its word of shared memory in `%r2`.
fn source(body: &str) -> String {
    format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 k_param_0)
        {{
            .reg .pred %p<8>;
            .reg .b32 %r<32>;
            .reg .f32 %f<8>;
            .reg .b64 %rd<16>;
            .shared .align 16 .b8 tile[1024];
            ld.param.u64 %rd0, [k_param_0];
            cvta.to.global.u64 %rd0, %rd0;
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, %ctaid.x;
            mul.wide.u32 %rd1, %r0, 4;
            add.s64 %rd1, %rd1, %rd0;
            mov.u32 %r2, tile;
            shl.b32 %r3, %r0, 2;
            add.s32 %r2, %r2, %r3;
            {body}
            ret;
        }}"
    )
}

struct Run {
    memory: Memory,
    y: BufferId,
    report: Report,
}

impl Run {
    fn words(&self) -> Vec<u32> {
        let bytes = self.memory.bytes(self.y);
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    fn kinds(&self) -> Vec<FindingKind> {
        let mut kinds: Vec<_> = self.report.findings.iter().map(|finding| finding.kind).collect();
        kinds.dedup();
        kinds
    }
}

fn run_seeded(body: &str, grid: u32, block: u32, words: usize, options: &Options) -> Run {
    let text = source(body);
    let kernel = Module::parse(&text).unwrap().kernel("k").unwrap();
    let mut memory = Memory::new();
    let y = memory.writable("y", &vec![0; words * 4]);
    let launch = Launch {
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        dynamic_shared: 0,
        arguments: vec![Argument::Buffer(y)],
    };
    let report = run(&kernel, &launch, &mut memory, options).unwrap();
    Run { memory, y, report }
}

fn run_body(body: &str, grid: u32, block: u32, words: usize) -> Run {
    run_seeded(body, grid, block, words, &Options::default())
}

/// Findings under several seeds, which must agree.
fn kinds(body: &str, grid: u32, block: u32, words: usize) -> Vec<FindingKind> {
    let of = |seed| {
        let options = Options { seed, budget: 100_000, ..Options::default() };
        run_seeded(body, grid, block, words, &options).kinds()
    };
    let plain = of(0);
    for seed in 1..6 {
        assert_eq!(of(seed), plain, "seed {seed}");
    }
    plain
}

#[test]
fn threads_loop_and_diverge() {
    // y[i] = i + (i - 1) + ... + 1, plus 1000 for odd i.
    let body = "
        mov.u32 %r4, 0;
        mov.u32 %r5, %r0;
        LOOP:
        setp.eq.u32 %p0, %r5, 0;
        @%p0 bra DONE;
        add.s32 %r4, %r4, %r5;
        sub.s32 %r5, %r5, 1;
        bra.uni LOOP;
        DONE:
        and.b32 %r6, %r0, 1;
        setp.ne.u32 %p1, %r6, 0;
        @%p1 add.s32 %r4, %r4, 1000;
        st.global.u32 [%rd1], %r4;";
    let run = run_body(body, 1, 70, 70);
    assert_eq!(run.report.findings, []);
    let expected: Vec<u32> = (0..70).map(|i| i * (i + 1) / 2 + i % 2 * 1000).collect();
    assert_eq!(run.words(), expected);
    let counters = run.report.counters;
    assert_eq!(counters.global_stores, 3);
    assert_eq!(counters.global_store_sectors, 9);
    assert!(counters.divergent_branches > 0);
    // Lanes that are through wait for the others, so that all of a warp store together.
    assert!(counters.warp_instructions < 3 * 6 * 80, "{counters:?}");
}

#[test]
fn each_element_of_a_vector_is_added_atomically() {
    let body = "
        cvt.rn.f32.u32 %f0, %r1;
        mov.f32 %f1, 0f3F800000;
        red.relaxed.gpu.global.add.v4.f32 [%rd0], {%f1, %f0, %f1, %f0};
        atom.global.add.v2.f32 {%f2, _}, [%rd0+16], {%f1, %f0};
        cvt.rzi.u32.f32 %r4, %f2;
        setp.gt.u32 %p0, %r4, 63;
        @%p0 trap;
        mov.u32 %r5, 0x40003C00;
        red.global.add.noftz.v4.f16x2 [%rd0+32], {%r5, 0, %r5, 0};";
    let run = run_body(body, 2, 32, 12);
    assert_eq!(run.report.findings, []);
    let [sum, ones] = [32_f32.to_bits(), 64_f32.to_bits()];
    let expected = [ones, sum, ones, sum, ones, sum, 0, 0, 0x5800_5400, 0, 0x5800_5400, 0];
    assert_eq!(run.words(), expected);
}

#[test]
fn vectors_of_atomics_are_aligned_and_race_with_weak_accesses() {
    let add = |offset| {
        format!(
            "mov.f32 %f1, 0f3F800000; red.global.add.v4.f32 [%rd0+{offset}], {{%f1, %f1, %f1, %f1}};"
        )
    };
    assert_eq!(kinds(&add(8), 1, 32, 8), [Misaligned]);
    assert_eq!(kinds(&add(32), 1, 32, 8), [OutOfBounds]);
    let last = format!("{} ld.global.f32 %f2, [%rd0+12];", add(0));
    assert_eq!(kinds(&last, 1, 32, 8), [Race]);
    assert_eq!(kinds(&format!("{} ld.global.f32 %f2, [%rd0+16];", add(0)), 1, 32, 8), []);
    let shared =
        "mov.u64 %rd4, tile; cvta.shared.u64 %rd4, %rd4; red.add.v2.f32 [%rd4], {%f1, %f1};";
    assert!(kinds(shared, 1, 32, 8).contains(&OutOfBounds));
}

#[test]
fn every_seed_gives_the_same_results() {
    let body = "
        st.shared.u32 [%r2], %r0;
        bar.sync 0;
        xor.b32 %r4, %r3, 252;
        mov.u32 %r5, tile;
        add.s32 %r5, %r5, %r4;
        ld.shared.u32 %r6, [%r5];
        st.global.u32 [%rd1], %r6;";
    let expected: Vec<u32> = (0..64).map(|i| i ^ 63).collect();
    for seed in 0..20 {
        let run =
            run_seeded(body, 1, 64, 64, &Options { seed, budget: 10_000, ..Options::default() });
        assert_eq!(run.report.findings, []);
        assert_eq!(run.words(), expected);
    }
    // Without the barrier a warp reads what another writes.
    let kinds = kinds(&body.replace("bar.sync 0;", ""), 1, 64, 64);
    assert!(kinds.contains(&Race), "{kinds:?}");
}

#[test]
fn lanes_of_a_warp_need_a_barrier_too() {
    let body = |barrier: &str| {
        format!(
            "st.shared.u32 [%r2], %r0;
            {barrier}
            xor.b32 %r4, %r3, 4;
            mov.u32 %r5, tile;
            add.s32 %r5, %r5, %r4;
            ld.shared.u32 %r6, [%r5];
            st.global.u32 [%rd1], %r6;"
        )
    };
    assert_eq!(kinds(&body("bar.warp.sync -1;"), 1, 32, 32), []);
    assert_eq!(run_body(&body(""), 1, 32, 32).kinds(), [Race]);
    // Pairs are enough, the halves of pairs are not.
    let members = |mask: &str| {
        body(&format!(
            "and.b32 %r7, %r0, 30; mov.u32 %r8, {mask}; shl.b32 %r8, %r8, %r7; bar.warp.sync %r8;"
        ))
    };
    assert_eq!(kinds(&members("3"), 1, 32, 32), []);
    let alone = body("mov.u32 %r8, 1; shl.b32 %r8, %r8, %r0; bar.warp.sync %r8;");
    assert_eq!(run_body(&alone, 1, 32, 32).kinds(), [Race]);
}

#[test]
fn lanes_that_write_one_word_race() {
    let run = run_body("st.global.u32 [%rd0], %r0;", 1, 32, 32);
    assert_eq!(run.kinds(), [Race]);
    assert_eq!(run.report.findings[0].thread, [1, 0, 0]);
    assert_eq!(run.report.findings[0].count, 31);
    let run = run_body("st.global.u32 [%rd1], %r1;", 2, 32, 32);
    assert_eq!(run.kinds(), [Race], "two blocks");
    // The same value from both is remarked upon.
    let run = run_body("st.global.u32 [%rd1], %r0;", 2, 32, 32);
    assert_eq!(run.kinds(), []);
    assert_eq!(run.report.remarks.iter().map(|r| r.kind).collect::<Vec<_>>(), [SameValue]);
    assert_eq!(run_body("atom.global.add.u32 %r9, [%rd0], 1;", 2, 32, 1).kinds(), []);
    assert_eq!(kinds("red.global.add.u32 [%rd0], 1;", 7, 96, 1), []);
    assert_eq!(run_body("red.global.add.u32 [%rd0], 1;", 7, 96, 1).words(), [672]);
}

#[test]
fn shuffles_exchange_and_complain() {
    let body = |before: &str, mask: &str| {
        format!("{before} shfl.sync.bfly.b32 %r4, %r0, 1, 31, {mask}; st.global.u32 [%rd1], %r4;")
    };
    let run = run_body(&body("", "-1"), 1, 32, 32);
    assert_eq!(run.words(), (0..32).map(|i| i ^ 1).collect::<Vec<u32>>());
    assert_eq!(run.report.findings, []);
    let half = "setp.ge.u32 %p0, %r0, 15; @%p0 ret;";
    assert_eq!(kinds(&body(half, "-1"), 1, 32, 32), [InactiveLane]);
    // What nobody has written is that, also where a shuffle is the first to read it.
    let unwritten = body("", "-1").replace("%r4, %r0,", "%r4, %r9,");
    assert_eq!(kinds(&unwritten, 1, 32, 32), [Uninitialised]);
    let apart = "setp.ge.u32 %p0, %r0, 16; @%p0 bra OTHER;";
    let both = format!("{} bra END; OTHER: {} END:", body(apart, "-1"), body("", "-1"));
    assert_eq!(kinds(&both, 1, 32, 32), []);
    assert_eq!(run_body(&both, 1, 32, 32).words(), (0..32).map(|i| i ^ 1).collect::<Vec<u32>>());
    let (all, across) = (body(apart, "-1"), body("", "-1").replace("r0, 1,", "r0, 16,"));
    let across = format!("{} bra END; OTHER: {across} END:", all.replace("r0, 1,", "r0, 16,"));
    assert_eq!(kinds(&across, 1, 32, 32), []);
    let expected: Vec<u32> = (0..32).map(|i| i ^ 16).collect();
    assert_eq!(run_body(&across, 1, 32, 32).words(), expected);
    // Another mode is another operation.
    let unlike = both.replacen("bfly", "idx", 1);
    assert_eq!(kinds(&unlike, 1, 32, 32), [MissingLanes]);
    let own = format!("{} bra END; OTHER: {} END:", body(apart, "0xFFFF"), body("", "0xFFFF0000"));
    assert_eq!(kinds(&own, 1, 32, 32), []);
    // In some orders the lane that the mask lacks comes too late for the one that reads it.
    for seed in 0..6 {
        let options = Options { seed, budget: 100_000, ..Options::default() };
        let found = run_seeded(&body("", "0x7FFFFFFF"), 1, 32, 32, &options).kinds();
        assert_eq!(found.first(), Some(&MissingLanes), "seed {seed}");
    }
}

#[test]
fn votes_and_matches() {
    let body = "
        setp.lt.u32 %p0, %r0, 5;
        vote.sync.ballot.b32 %r4, %p0, -1;
        vote.sync.any.pred %p1, !%p0, -1;
        vote.sync.all.pred %p2, %p0, -1;
        selp.b32 %r5, 256, 0, %p1;
        selp.b32 %r6, 512, 0, %p2;
        add.s32 %r4, %r4, %r5;
        add.s32 %r4, %r4, %r6;
        st.global.u32 [%rd1], %r4;
        and.b32 %r7, %r0, 3;
        match.any.sync.b32 %r8, %r7, -1;
        st.global.u32 [%rd1+128], %r8;
        activemask.b32 %r9;
        st.global.u32 [%rd1+256], %r9;";
    let run = run_body(body, 1, 32, 96);
    assert_eq!(run.report.findings, []);
    let expected: Vec<u32> = std::iter::repeat_n(31 + 256, 32)
        .chain((0..32).map(|i| 0x1111_1111 << (i % 4)))
        .chain(std::iter::repeat_n(u32::MAX, 32))
        .collect();
    assert_eq!(run.words(), expected);
}

#[test]
fn barriers_that_not_all_come_to() {
    let divergent =
        "setp.ge.u32 %p0, %r0, 16; @%p0 bra OTHER; bar.sync 0; bra END; OTHER: bar.sync 0; END:";
    assert_eq!(kinds(divergent, 1, 32, 1), [DivergentBarrier]);
    let returned = "setp.ge.u32 %p0, %r0, 50; @%p0 ret; bar.sync 0;";
    assert_eq!(kinds(returned, 1, 64, 1), [DivergentBarrier]);
    let by_warp = "setp.ge.u32 %p0, %r0, 32; @%p0 bra OTHER; bar.sync 1, 64; bra END; OTHER: bar.sync 2, 64; END:";
    assert_eq!(kinds(by_warp, 1, 64, 1), [Deadlock]);
    let halves = "setp.ge.u32 %p0, %r0, 32; @%p0 bra OTHER; bar.sync 1, 32; bra END; OTHER: bar.sync 2, 32; END:";
    assert_eq!(kinds(halves, 1, 64, 1), []);
}

#[test]
fn named_barriers_order_those_that_come() {
    // The first warp produces, the second consumes.
    let body = |arrive: &str| {
        format!(
            "setp.ge.u32 %p0, %r0, 32;
            @%p0 bra CONSUME;
            st.shared.u32 [%r2], %r0;
            {arrive}
            bra END;
            CONSUME:
            bar.sync 1, 64;
            ld.shared.u32 %r4, [%r2+-128];
            st.global.u32 [%rd1], %r4;
            END:"
        )
    };
    let run = run_body(&body("bar.arrive 1, 64;"), 1, 64, 64);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words()[32..], (0..32).collect::<Vec<u32>>());
    let late = format!("bar.arrive 1, 64; {}", "st.shared.u32 [%r2], %r0;");
    assert!(kinds(&body(&late), 1, 64, 64).contains(&Race));
}

#[test]
fn bad_addresses_are_found() {
    let run = run_body("st.global.u32 [%rd1], %r0;", 1, 32, 31);
    assert_eq!(run.kinds(), [OutOfBounds]);
    let finding = &run.report.findings[0];
    assert_eq!(finding.thread, [31, 0, 0]);
    assert_eq!(finding.address.as_ref().unwrap().place, "y + 124 of 124 bytes");
    assert_eq!(kinds("ld.global.u32 %r4, [%rd1+-4];", 1, 32, 32), [OutOfBounds]);
    assert_eq!(kinds("ld.global.u32 %r4, [%rd1+2];", 1, 32, 64), [Misaligned]);
    assert_eq!(kinds("ld.global.v2.u32 {%r4, %r5}, [%rd1];", 1, 32, 64), [Misaligned]);
    assert_eq!(kinds("st.shared.u32 [%r2+1000], %r0;", 1, 32, 64), [OutOfBounds]);
    let product = "mul.lo.s32 %r4, %r0, 1000000000; mul.wide.u32 %rd3, %r4, 0; add.s64 %rd3, %rd3, %rd1; ld.global.u32 %r5, [%rd3];";
    assert_eq!(kinds(product, 1, 32, 32), [AddressOverflow]);
}

#[test]
fn arrays_of_a_thread_have_bounds_of_their_own() {
    // As the compiler writes `unsigned a[4], b[4]`, and an index into `a` that is known at run
    // time.
    let body = |index: &str, use_otherwise: &str| {
        format!(
            ".local .align 16 .b8 __local_depot0[32];
            .reg .b64 %SP, %SPL;
            mov.u64 %SPL, __local_depot0;
            cvta.local.u64 %SP, %SPL;
            add.u64 %rd2, %SPL, 0;
            add.u64 %rd3, %SPL, 16;
            st.local.v4.u32 [%rd2], {{%r0, %r0, %r0, %r0}};
            st.local.v4.u32 [%rd3], {{%r0, %r0, %r0, %r0}};
            {use_otherwise}
            {index}
            mul.wide.s32 %rd4, %r4, 4;
            add.s64 %rd5, %rd2, %rd4;
            ld.local.u32 %r5, [%rd5];
            st.global.u32 [%rd1], %r5;"
        )
    };
    let within = body("and.b32 %r4, %r0, 3;", "");
    assert_eq!(run_body(&within, 1, 32, 32).report.findings, []);
    assert_eq!(run_body(&within, 1, 32, 32).words(), (0..32).collect::<Vec<u32>>());
    let past = run_body(&body("mov.u32 %r4, 4;", ""), 1, 32, 32);
    assert_eq!(past.kinds(), [OutOfBounds]);
    let place = &past.report.findings[0].address.as_ref().unwrap().place;
    assert_eq!(place, "0 bytes past an array in the thread's own memory");
    let text = body("mov.u32 %r4, -1;", "").replace("%rd5, %rd2", "%rd5, %rd3");
    let before = run_body(&text, 1, 32, 32);
    let place = &before.report.findings[0].address.as_ref().unwrap().place;
    assert_eq!(place, "4 bytes before an array in the thread's own memory");
    // Where the address goes elsewhere, nothing is known of arrays.
    let elsewhere = body("mov.u32 %r4, 4;", "st.global.u64 [%rd0+128], %SP;");
    assert_eq!(run_body(&elsewhere, 1, 32, 64).report.findings, []);
}

#[test]
fn endless_loops_end() {
    assert_eq!(kinds("LOOP: add.s32 %r4, %r4, 1; bra.uni LOOP;", 1, 32, 1), [OverBudget]);
    assert_eq!(kinds("LOOP: bra.uni LOOP;", 3, 64, 1)[0], Endless);
    assert_eq!(kinds("trap;", 1, 32, 1), [Trap]);
}

#[test]
fn a_block_of_endless_warps_ends_with_the_first() {
    let endless = "LOOP: add.s32 %r4, %r4, 1; bra.uni LOOP;";
    for seed in 0..2 {
        let options = Options { seed, budget: 4_000_000, ..Options::default() };
        let run = run_seeded(endless, 1, 1024, 1, &options);
        assert_eq!(run.kinds(), [OverBudget]);
        let executed = run.report.counters.warp_instructions;
        assert!(executed < 8 * options.budget, "{executed} of 32 warps");
    }
}

#[test]
fn copies_arrive_when_waited_for() {
    let body = |wait: &str| {
        format!(
            "cp.async.ca.shared.global [%r2], [%rd1], 4;
            cp.async.commit_group;
            {wait}
            bar.sync 0;
            ld.shared.u32 %r4, [%r2];
            add.s32 %r4, %r4, %r0;
            st.global.u32 [%rd1+512], %r4;"
        )
    };
    let run = run_body(&body("cp.async.wait_group 0;"), 1, 64, 192);
    assert_eq!(run.report.findings, []);
    assert_eq!(run.words()[128..], (0..64).collect::<Vec<u32>>());
    assert_eq!(kinds(&body(""), 1, 64, 192), [Uninitialised]);
}

#[test]
fn of_two_copies_to_one_place_nobody_knows_the_last() {
    let copy = |offset: u32| {
        format!("cp.async.ca.shared.global [%r2], [%rd1+{offset}], 4; cp.async.commit_group;\n")
    };
    let read = "ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd1+512], %r4;";
    let wait = "cp.async.wait_group 0;\n";
    let (one, other) = (copy(0), copy(256));
    let both = format!("{one}{other}{wait}{read}");
    assert_eq!(kinds(&both, 1, 64, 192), [Uninitialised]);
    let each = format!("{one}{wait}{other}{wait}{read}");
    assert_eq!(kinds(&each, 1, 64, 192), []);
    // What is written there afterwards is known.
    let written = format!("{one}{other}{wait}st.shared.u32 [%r2], %r0;\n{read}");
    assert_eq!(kinds(&written, 1, 64, 192), []);
}

#[test]
fn a_barrier_covers_what_came_before_it_only() {
    // The producer writes again before the consumer has come to the first barrier.
    let body = "
        setp.ge.u32 %p0, %r0, 32;
        @%p0 bra CONSUME;
        st.shared.u32 [%r2], %r0;
        bar.arrive 1, 64;
        st.shared.u32 [%r2], 7;
        bar.arrive 2, 64;
        bra END;
        CONSUME:
        bar.sync 1, 64;
        ld.shared.u32 %r4, [%r2+-128];
        bar.sync 2, 64;
        st.global.u32 [%rd1], %r4;
        END:";
    assert_eq!(kinds(body, 1, 64, 64), [Race]);
}

#[test]
fn copies_are_aligned_to_all_that_they_write() {
    let copy = |at: u32, bytes: u32| {
        format!(
            "mul.wide.u32 %rd2, %r0, 8;
            add.s64 %rd2, %rd2, %rd0;
            mul.lo.s32 %r5, %r0, 8;
            mov.u32 %r6, tile;
            add.s32 %r6, %r6, %r5;
            mov.u32 %r4, {bytes};
            cp.async.ca.shared.global [%r6], [%rd2+{at}], 8, %r4;
            cp.async.wait_all;"
        )
    };
    for bytes in 1..=8 {
        assert_eq!(kinds(&copy(0, bytes), 1, 32, 66), [], "{bytes} bytes");
        assert_eq!(kinds(&copy(4, bytes), 1, 32, 66), [Misaligned], "{bytes} bytes");
    }
    // Nothing is read.
    assert_eq!(kinds(&copy(4, 0), 1, 32, 66), []);
}
