//! Branches and calls.

use super::{error, kernel, kernel_of, op, ops};
use crate::code::{Callee, Guard, Op, Register, Space};

#[test]
fn branches_go_forwards_and_backwards() {
    let code = kernel("L1: @%p1 bra L2; @!%p1 bra.uni L1; L2: exit;").unwrap().code;
    let guard = |expected| Some(Guard { predicate: 0, expected });
    assert_eq!((code[0].guard, &code[0].op), (guard(true), &Op::Branch { target: 2 }));
    assert_eq!((code[1].guard, &code[1].op), (guard(false), &Op::Branch { target: 0 }));
    assert_eq!(error("bra nowhere;"), "PTX line 7: no label `nowhere`");
    assert!(error("L: L:").contains("a second time"));
    assert!(error("@%r1 ret;").contains("no predicate"));
}

#[test]
fn branch_tables() {
    let statements = "$T: .branchtargets\n$A, $B,\n$A;\nbrx.idx %r1, $T;\n$A: trap;\n$B: brkpt;";
    let targets = [1, 2, 1].into();
    assert_eq!(op(statements), Op::BranchIndexed { index: Register::Word(0), targets });
    assert!(error("brx.idx %r1, T;").contains("no branch table"));
}

const HELPER: &str = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
    .extern .func __assertfail(.param .b64 a) .noreturn;\n\
    .func (.param .b32 out) helper(.param .b32 a, .param .align 4 .b8 b[8])\n{\n\
    .reg .b32 %r<3>; .reg .pred %p<2>;\n\
    ld.param.b32 %r1, [b+4];\n@%p1 ret;\nst.param.b32 [out+0], %r1;\nret;\n}\n";

fn calling(statements: &str) -> Result<crate::code::Kernel, String> {
    kernel_of(&format!(
        "{HELPER}.entry k(.param .u32 n)\n{{ .reg .b32 %r<4>; .reg .pred %p<2>;\n{statements}\nret; }}"
    ))
}

const CALL: &str = "{ // callseq 0, 0\n.reg .b32 temp_param_reg;\n.param .b32 param0;\n\
    .param .align 4 .b8 param1[8];\nst.param.b32 [param1+4], %r1;\n.param .b32 retval0;\n\
    call.uni (retval0),\nhelper,\n(\nparam0,\nparam1\n);\nld.param.b32 %r2, [retval0+0];\n}\n";

#[test]
fn functions_are_inlined_with_registers_and_parameters_of_their_own() {
    let kernel = calling(&format!("{CALL}{CALL}")).unwrap();
    let steps: Vec<(&str, i64, u16)> = kernel
        .code
        .iter()
        .map(|i| match &i.op {
            Op::Load { address, destinations, .. } => {
                assert_eq!(address.space, Space::Local);
                let Register::Word(number) = destinations[0] else { panic!() };
                ("load", address.offset, number)
            }
            Op::Store { address, sources, .. } => {
                assert_eq!(address.space, Space::Local);
                let Register::Word(number) = sources[0] else { panic!() };
                ("store", address.offset, number)
            }
            Op::Branch { target } => ("branch", i64::from(*target), 0),
            Op::Exit => ("exit", 0, 0),
            op => panic!("{op:?}"),
        })
        .collect();
    let expected = [
        ("store", 8, 0),
        ("load", 8, 1),
        ("branch", 4, 0),
        ("store", 12, 1),
        ("load", 12, 2),
        ("store", 24, 0),
        ("load", 24, 3),
        ("branch", 9, 0),
        ("store", 28, 3),
        ("load", 28, 2),
        ("exit", 0, 0),
    ];
    assert_eq!(steps, expected);
    assert_eq!(kernel.local_bytes, 32);
}

#[test]
fn a_guarded_call_is_jumped_over() {
    let call = CALL.replace("call.uni", "@%p1 call");
    let code = calling(&call).unwrap().code;
    assert_eq!(code[1].op, Op::Branch { target: 5 });
    assert_eq!(code[1].guard, Some(Guard { predicate: 0, expected: false }));
}

#[test]
fn what_cannot_be_called() {
    for (statements, reason) in [
        ("call helper;", "another number of parameters"),
        ("call (%r1), helper, (%r1, %r2);", "is no `.param` variable"),
        ("call %r1, ();", "has 32 bits, not 64"),
        ("call k;", "is a kernel"),
        ("call printf;", "`printf` is not part of the module"),
    ] {
        let error = calling(statements).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let printed = calling("@%p1 call vprintf, (%r1);").unwrap().code;
    assert_eq!(printed[0].op, Op::Nothing);
    let code = calling("@%p1 call __assertfail, (%r1);").unwrap().code;
    assert_eq!(code[0].op, Op::Trap);
    assert!(code[0].guard.is_some());
}

#[test]
fn functions_that_call_themselves_have_code_of_their_own() {
    let text = ".func (.param .b32 r) g(.param .b32 n);\n\
        .func (.param .b32 r) f(.param .b32 n) { .local .b32 l; .param .b32 a; .param .b32 b;\n\
        call (b), g, (a); }\n\
        .func (.param .b32 r) g(.param .b32 n) { .param .b32 a; .param .b32 b; call (b), f, (a); }\n\
        .entry k() { .param .b32 a; .param .b32 b; call (b), f, (a); call (b), f, (a); }";
    let kernel = kernel_of(text).unwrap();
    let [function] = kernel.functions.as_slice() else { panic!("{:?}", kernel.functions) };
    assert_eq!((function.name.as_str(), function.stack_bytes), ("f", 12));
    assert_eq!((&function.results[0], &function.parameters[0]), (&(0..4), &(4..8)));
    assert_eq!((function.results.len(), function.parameters.len()), (1, 1));
    let calls = kernel.code.iter().filter_map(|i| match &i.op {
        Op::Call(call) => Some((call.callee, call.caller)),
        _ => None,
    });
    let callee = Callee::Function(0);
    assert_eq!(calls.collect::<Vec<_>>(), [(callee, None), (callee, None), (callee, Some(0))]);
    assert_eq!(kernel.code[function.entry as usize - 1].op, Op::Exit);
    assert_eq!(kernel.code.last().unwrap().op, Op::Return);
}

#[test]
fn what_does_not_fit_the_registers_is_passed_on_the_stack() {
    let text = ".func f(.param .b8 n[3000]) { .param .b8 a[3000]; call f, (a); }\n\
        .entry k() { .param .b8 a[3000]; call f, (a); }";
    assert_eq!(kernel_of(text).unwrap().functions[0].stack_bytes, 6000 - 1020);
}

#[test]
fn functions_whose_address_is_taken() {
    let text = ".func (.param .b32 r) f(.param .b32 n);\n\
        .func other() { }\n\
        .global .u64 inner[2] = {0, f};\n.global .u64 table[1] = {inner};\n\
        .func (.param .b32 r) f(.param .b32 n) { ret; }\n\
        .entry k() { .reg .b64 %rd<2>; .param .b32 a; .param .b32 b; mov.u64 %rd1, table;\n\
        P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (b), %rd1, (a), P; }\n\
        .entry direct() { .reg .b64 %rd<2>; mov.u64 %rd1, other; }";
    let module = crate::ptx::Module::parse(text).unwrap();
    let kernel = module.kernel("k").unwrap();
    let [function] = kernel.functions.as_slice() else { panic!("{:?}", kernel.functions) };
    assert_eq!(function.name, "f");
    assert_eq!(kernel.variables[0].initial[8..], function.address.to_le_bytes());
    let Op::Call(call) = &kernel.code[1].op else { panic!("{:?}", kernel.code) };
    assert!(matches!(call.callee, Callee::Pointer(Register::Long(_))));
    // What is not called needs no code.
    assert!(module.kernel("direct").unwrap().functions.is_empty());
}

#[test]
fn growth_is_refused() {
    let mut doubling = ".func f0() { }\n".to_owned();
    for n in 1..30 {
        doubling += &format!(".func f{n}() {{ call f{}; call f{}; }}\n", n - 1, n - 1);
    }
    doubling += ".entry k() { call f29; }";
    assert!(kernel_of(&doubling).unwrap_err().contains("too long"));
}

#[test]
fn shared_variables_of_functions_are_the_same_in_each_call() {
    let text = ".func f() { .shared .u32 s; .reg .b32 %r; st.shared.u32 [s], %r; }\n\
                .entry k() { .shared .u32 t; .reg .b32 %r; st.shared.u32 [t], %r; call f; call f; }";
    let kernel = kernel_of(text).unwrap();
    assert_eq!(kernel.shared_bytes, 8);
    let offsets = kernel.code.iter().filter_map(|i| match i.op {
        Op::Store { address, .. } => Some(address.offset),
        _ => None,
    });
    assert_eq!(offsets.collect::<Vec<_>>(), [0, 260, 260]);
}

#[test]
fn kernels_wait_for_those_before_them() {
    assert_eq!(op("griddepcontrol.wait;"), Op::WaitForGrids);
}

#[test]
fn hints_do_nothing() {
    for statement in [
        "nanosleep.u32 10;",
        "prefetch.global.L2 [%rd1];",
        "discard.global.L2 [%rd1], 128;",
        "griddepcontrol.launch_dependents;",
    ] {
        assert_eq!(op(statement), Op::Nothing, "{statement}");
    }
    assert_eq!(ops(".pragma \"nounroll\";").len(), 1);
}
