//! Instructions on memory and of warps and blocks.

use super::{error, held, kernel, op, ops};
use crate::code::{
    Access, Address, AtomicOperation, AtomicType, BarrierOperation, Constant, Op, Order, Register,
    Scope, ShuffleMode, Space, VoteMode,
};

const WEAK: Order = Order::Weak;

#[test]
fn loads() {
    let load = |statement| match op(statement) {
        Op::Load { address, access, destinations } => (address.space, access, destinations.len()),
        op => panic!("{op:?}"),
    };
    let access = |bytes, signed, order| Access {
        bytes,
        signed,
        order,
        scope: Scope::Device,
        read_only_path: false,
    };
    for (statement, space, expected, count) in [
        (
            "ld.global.nc.u32 %r1, [%rd1];",
            Space::Global,
            Access { read_only_path: true, ..access(4, false, WEAK) },
            1,
        ),
        (
            "ld.acquire.cta.global.u32 %r1, [%rd1];",
            Space::Global,
            Access { scope: Scope::Block, ..access(4, false, Order::Acquire) },
            1,
        ),
        ("ld.f64 %fd1, [%rd1+8];", Space::Generic, access(8, false, WEAK), 1),
        ("ld.global.cs.s8 %r1, [%rd1];", Space::Global, access(1, true, WEAK), 1),
        ("ld.shared.v4.f32 {%f1, %f2, %f3, _}, [%r1];", Space::Shared, access(4, false, WEAK), 4),
        ("ld.global.v2.b64 {%rd1, %rd2}, [%rd1];", Space::Global, access(8, false, WEAK), 2),
        ("ld.volatile.u16 %rs1, [%rd1];", Space::Generic, access(2, false, Order::Relaxed), 1),
        (
            "ld.relaxed.gpu.global.u64 %rd1, [%rd1];",
            Space::Global,
            access(8, false, Order::Relaxed),
            1,
        ),
        ("ld.acquire.sys.u32 %r1, [%rd1];", Space::Generic, access(4, false, Order::Acquire), 1),
        (
            "ld.global.L1::no_allocate.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
            Space::Global,
            access(4, false, WEAK),
            1,
        ),
        ("ld.const.u8 %rs1, [%rd1];", Space::Global, access(1, false, WEAK), 1),
        ("ld.local.b32 %r1, [%rd1];", Space::Local, access(4, false, WEAK), 1),
        ("ld.u32 %rd1, [%rd2];", Space::Generic, access(4, false, WEAK), 1),
    ] {
        assert_eq!(load(statement), (space, expected, count), "{statement}");
    }
    for (statement, reason) in [
        ("ld.global.frob.u32 %r1, [%rd1];", "unknown modifier `.frob` of `ld.global.frob.u32`"),
        ("ld.global.u32 %rs1, [%rd1];", "has 16 bits, fewer than 32"),
        ("ld.global.u32 %r1, [%r2];", "which no address has"),
        ("ld.global.v2.u32 %r1, [%rd1];", "expected 2 elements"),
        ("ld.global.u32 %r1, [k_param_0];", "another space"),
        ("ld.global.u32 %r1, [%tid.x];", "is no address"),
        ("ld.global.u32 %r1, [%rd1, {%r1, %r2}];", "expected an address"),
        ("ld.release.u32 %r1, [%rd1];", "unknown modifier `.release`"),
    ] {
        assert!(error(statement).contains(reason), "{}", error(statement));
    }
}

#[test]
fn stores() {
    let kernel = kernel("st.release.gpu.global.v2.f32 [%rd1+4], {%f1, 0f3F800000};").unwrap();
    let Op::Store { address, access, sources } = &kernel.code[0].op else { panic!() };
    let base = Some(Register::Long(0));
    assert_eq!(*address, Address { space: Space::Global, base, offset: 4 });
    let (order, scope) = (Order::Release, Scope::Device);
    let expected = Access { bytes: 4, signed: false, order, scope, read_only_path: false };
    assert_eq!(*access, expected);
    assert_eq!(held(&kernel, sources[1]), Some(Constant::Bits(0x3F80_0000)));
    let Op::Store { sources, .. } = op("st.u8 [%rd1], %rd2;") else { panic!() };
    assert_eq!(*sources, [Register::Long(1)]);
    assert!(error("st.u32 [%rd1], %rs1;").contains("has 16 bits, not 32"));
    assert!(error("st.u32 [%rd1], !%r1;").contains("`!` is not allowed"));
}

#[test]
fn atomics() {
    let cas = "atom.acq_rel.cta.shared.cas.b64 %rd1, [%r1], %rd2, 5;";
    let read = kernel(&format!("{cas} st.u64 [%rd3], %rd1;")).unwrap();
    let Op::Atomic(atomic) = &read.code[0].op else { panic!() };
    assert_eq!((atomic.operation, atomic.ty), (AtomicOperation::CompareAndSwap, AtomicType::U64));
    assert_eq!((atomic.order, atomic.scope), (Order::AcquireRelease, Scope::Block));
    assert!(!atomic.destinations.is_empty() && atomic.replacement.is_some());
    // Of a result that nobody reads there is none.
    let Op::Atomic(atomic) = op(cas) else { panic!() };
    assert!(atomic.destinations.is_empty() && atomic.replacement.is_some());
    for (statement, operation, ty) in [
        ("red.global.add.f64 [%rd1], %fd1;", AtomicOperation::Add, AtomicType::F64),
        ("atom.add.noftz.f16x2 %r1, [%rd1], %r2;", AtomicOperation::Add, AtomicType::F16x2),
        ("atom.global.add.noftz.bf16 %rs1, [%rd1], %rs2;", AtomicOperation::Add, AtomicType::BF16),
        ("atom.global.min.s32 _, [%rd1], %r2;", AtomicOperation::Min, AtomicType::S32),
        ("red.relaxed.gpu.global.inc.u32 [%rd1], 7;", AtomicOperation::Increment, AtomicType::U32),
        ("atom.exch.b32 %r1, [%rd1], %r2;", AtomicOperation::Exchange, AtomicType::U32),
        (
            "atom.cas.b16 %rs1, [%rd1], %rs2, %rs3;",
            AtomicOperation::CompareAndSwap,
            AtomicType::B16,
        ),
    ] {
        let reads = "st.global.b32 [%rd1], %r1; st.global.b16 [%rd1], %rs1;";
        let read = kernel(&format!("{statement} {reads}")).unwrap();
        let Op::Atomic(atomic) = &read.code[0].op else { panic!() };
        assert_eq!((atomic.operation, atomic.ty), (operation, ty), "{statement}");
        assert_eq!((atomic.order, atomic.scope), (Order::Relaxed, Scope::Device));
        let has_destination = statement.starts_with("atom") && !statement.contains(" _,");
        assert_eq!(atomic.destinations.len(), usize::from(has_destination), "{statement}");
    }
    for (statement, ty, elements) in [
        ("atom.global.add.v2.f32 {%f1, _}, [%rd1], {%f2, %f3};", AtomicType::F32, 2),
        ("red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f1};", AtomicType::F32, 4),
        ("red.global.max.noftz.v4.bf16x2 [%rd1], {%r1, %r2, %r3, %r1};", AtomicType::BF16x2, 4),
        (
            "red.add.noftz.v8.f16 [%rd1], {%rs1, %rs2, %rs3, %rs1, %rs2, %rs3, %rs1, %rs2};",
            AtomicType::F16,
            8,
        ),
    ] {
        let read = kernel(&format!("{statement} st.global.f32 [%rd1], %f1;")).unwrap();
        let Op::Atomic(atomic) = &read.code[0].op else { panic!() };
        assert_eq!((atomic.ty, atomic.operands.len()), (ty, elements), "{statement}");
        let results = if statement.starts_with("atom") { elements } else { 0 };
        assert_eq!(atomic.destinations.len(), results, "{statement}");
    }
    for statement in [
        "red.global.inc.s32 [%rd1], %r1;",
        "red.global.add.v8.f32 [%rd1], {%f1, %f2, %f3, %f1, %f2, %f3, %f1, %f2};",
        "red.global.min.v2.f32 [%rd1], {%f1, %f2};",
        "red.global.add.v2.u32 [%rd1], {%r1, %r2};",
        "red.global.add.noftz.v8.f16x2 [%rd1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};",
        "red.global.add.v4.f32 [%rd1], {%f1, %f2};",
        "red.shared.add.v2.f32 [%r1], {%f1, %f2};",
        "atom.global.and.f32 %f1, [%rd1], %f2;",
        "atom.global.add.b128 %rd1, [%rd1], %rd2;",
        "atom.global.cas.b32 %r1, [%rd1], %r2;",
        "red.local.add.u32 [%rd1], %r2;",
    ] {
        assert!(kernel(statement).is_err(), "{statement}");
    }
}

#[test]
fn copies() {
    let kernel = kernel(
        "cp.async.cg.shared.global.L2::128B [%r1], [%rd1+16], 16;\n\
         cp.async.ca.shared::cta.global [%r1+4], [%rd1], 4, 2;\n\
         cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;",
    )
    .unwrap();
    let Op::CopyAsync { destination, source, bytes: 16, source_bytes: None } = kernel.code[0].op
    else {
        panic!()
    };
    assert_eq!((destination.space, source.space), (Space::Shared, Space::Global));
    let Op::CopyAsync { bytes: 4, source_bytes: Some(count), .. } = kernel.code[1].op else {
        panic!()
    };
    assert_eq!(held(&kernel, count), Some(Constant::Bits(2)));
    assert_eq!(kernel.code[2].op, Op::CopyAsyncCommit);
    assert_eq!(kernel.code[3].op, Op::CopyAsyncWait { groups: Some(1) });
    assert_eq!(kernel.code[4].op, Op::CopyAsyncWait { groups: None });
    assert!(error("cp.async.cg.shared.global [%r1], [%rd1], 8;").contains("8 bytes"));
    let bulk = "cp.async.bulk.shared::cluster.global [%r1], [%rd1], 16;";
    assert!(error(bulk).contains("unknown instruction `cp.async.bulk.shared::cluster.global`"));
}

#[test]
fn shuffles_and_votes() {
    let Op::Shuffle { mode, destination, in_range, .. } =
        op("shfl.sync.up.b32 %r1|%p1, %r2, %r3, 0, -1;")
    else {
        panic!()
    };
    assert_eq!((mode, destination), (ShuffleMode::Up, Register::Word(0)));
    assert_eq!(in_range, Some(Register::Predicate(0)));
    let Op::Shuffle { in_range: None, .. } = op("shfl.sync.down.b32 %r1, %f1, 1, 31, -1;") else {
        panic!()
    };
    let Op::Vote { mode: VoteMode::Ballot, negated: true, destination: Register::Word(_), .. } =
        op("vote.sync.ballot.b32 %r1, !%p1, -1;")
    else {
        panic!()
    };
    let Op::Vote { mode: VoteMode::Uniform, negated: false, .. } =
        op("vote.sync.uni.pred %p1, %p2, %r1;")
    else {
        panic!()
    };
    let Op::Match { all: true, is_equal: Some(_), source: Register::Long(_), .. } =
        op("match.all.sync.b64 %r1|%p1, %rd1, -1;")
    else {
        panic!()
    };
    let Op::Reduce { operation: AtomicOperation::Min, signed: true, .. } =
        op("redux.sync.min.s32 %r1, %r2, -1;")
    else {
        panic!()
    };
    let Op::Elect { destination: None, .. } = op("elect.sync _|%p1, -1;") else { panic!() };
    assert_eq!(op("activemask.b32 %r4;"), Op::ActiveMask { destination: Register::Word(0) });
    assert!(error("shfl.up.b32 %r1, %r2, 1, 0;").contains("unknown instruction `shfl.up.b32`"));
    assert!(error("vote.sync.ballot.b32 %r1, %r2, -1;").contains("has 32 bits, not 1"));
}

#[test]
fn barriers_and_fences() {
    let barrier = |statement| match op(statement) {
        Op::Barrier { waits, threads, aligned, reduction, .. } => {
            (waits, threads.is_some(), aligned, reduction.map(|r| (r.operation, r.negated)))
        }
        op => panic!("{op:?}"),
    };
    let count = Some((BarrierOperation::Count, false));
    for (statement, expected) in [
        ("bar.sync 0;", (true, false, true, None)),
        ("bar.sync %r1, 64;", (true, true, true, None)),
        ("bar.cta.arrive 1, 64;", (false, true, true, None)),
        ("barrier.sync 1, 64;", (true, true, false, None)),
        ("barrier.cta.sync.aligned 1;", (true, false, true, None)),
        ("bar.red.popc.u32 %r1, 0, %p1;", (true, false, true, count)),
        ("barrier.red.popc.aligned.u32 %r1, 0, 64, %p1;", (true, true, true, count)),
        ("bar.red.or.pred %p1, 0, !%p1;", (true, false, true, Some((BarrierOperation::Or, true)))),
    ] {
        assert_eq!(barrier(statement), expected, "{statement}");
    }
    let Op::WarpBarrier { .. } = op("bar.warp.sync -1;") else { panic!() };
    for (statement, scope, sequential) in [
        ("membar.cta;", Scope::Block, true),
        ("membar.gl;", Scope::Device, true),
        ("fence.acq_rel.gpu;", Scope::Device, false),
        ("fence.sc.cluster;", Scope::Block, true),
        ("fence.sys;", Scope::Device, false),
    ] {
        assert_eq!(op(statement), Op::Fence { scope, sequential }, "{statement}");
    }
    for (statement, expected) in [
        ("barrier.cluster.arrive;", Op::ClusterArrive { releases: true, aligned: false }),
        (
            "barrier.cluster.arrive.relaxed.aligned;",
            Op::ClusterArrive { releases: false, aligned: true },
        ),
        ("barrier.cluster.wait.acquire.aligned;", Op::ClusterWait),
    ] {
        assert_eq!(op(statement), expected, "{statement}");
    }
    for statement in ["bar.arrive 1;", "barrier.cluster.sync;", "membar.frob;", "bar.sync;"] {
        assert!(error(statement).contains("unknown instruction `"), "{statement}");
    }
}

#[test]
fn clocks_are_read_when_they_are_named() {
    let ops = ops("st.u64 [%rd1], %clock64; st.u32 [%rd1], %clock;");
    let Op::Clock { destination } = ops[0] else { panic!() };
    let Op::Store { sources, .. } = &ops[1] else { panic!() };
    assert_eq!((**sources).first(), Some(&destination));
    assert_eq!(ops[2], Op::Clock { destination: Register::Word(0) });
}

#[test]
fn special_registers_and_addresses_are_constants() {
    let first = |statement: &str| {
        let kernel = kernel(statement).unwrap();
        let Op::Store { sources, .. } = &kernel.code[0].op else { panic!() };
        held(&kernel, sources[0])
    };
    for (name, constant) in [
        ("%ntid.y", Constant::BlockSize(1)),
        ("%ctaid.z", Constant::Block(2)),
        ("%nctaid.x", Constant::GridSize(0)),
        ("%laneid", Constant::Lane),
        ("%lanemask_lt", Constant::LanesBelow),
        ("%smid", Constant::Multiprocessor),
        ("WARP_SZ", Constant::Bits(32)),
        ("-1", Constant::Bits(0xFFFF_FFFF)),
    ] {
        assert_eq!(first(&format!("st.u32 [%rd1], {name};")), Some(constant), "{name}");
    }
    let address = ".shared .b8 a[8]; .shared .b8 b[8]; st.u64 [%rd1], b+4;";
    assert_eq!(first(address), Some(Constant::Bits(268)));
    assert_eq!(first("st.u8 [%rd1], 511;"), Some(Constant::Bits(255)));
    assert!(error("st.u64 [%rd1], %tid.x;").contains("has 32 bits, not 64"));
    assert!(error("st.u32 [%rd1], %frob;").contains("`%frob` is not declared"));
}

#[test]
fn unknown_instructions_are_named() {
    for opcode in ["frobnicate.s32", "mma.sync.aligned.m16n8k8", "mapa.b32", "tcgen05.st"] {
        let expected = format!("PTX line 7: unknown instruction `{opcode}`");
        assert_eq!(error(&format!("{opcode} %r1, %r2;")), expected);
    }
}
