//! Functions that call themselves, and functions that are called by their address.

#![allow(clippy::unwrap_used)]

mod harness;

use harness::Case;
use sparserl_emulator::finding::FindingKind::{self, *};

/// `f` gives n + f(n - 1), by a variable of its own; `twice` and `half` double and halve. `y[i]` is
/// what the body leaves in `%r4` of thread i.
fn text(body: &str) -> String {
    format!(
        ".func (.param .b32 out) f(.param .b32 n);
        .func (.param .b32 out) twice(.param .b32 n);
        .func (.param .b32 out) half(.param .b32 n);
        .func nothing();
        .global .u64 table[4] = {{twice, half, f, nothing}};
        .func (.param .b32 out) f(.param .b32 n)
        {{
            .reg .b32 %r<8>; .reg .pred %p<2>;
            .local .b32 own;
            ld.param.b32 %r1, [n];
            st.local.b32 [own], %r1;
            mov.b32 %r3, 0;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra DONE;
            sub.u32 %r2, %r1, 1;
            {{ .param .b32 a; .param .b32 b;
            st.param.b32 [a], %r2;
            call.uni (b), f, (a);
            ld.param.b32 %r3, [b]; }}
            DONE:
            ld.local.b32 %r4, [own];
            add.u32 %r5, %r1, %r3;
            sub.u32 %r6, %r4, %r1;
            add.u32 %r5, %r5, %r6;
            st.param.b32 [out], %r5;
            ret;
        }}
        .func (.param .b32 out) twice(.param .b32 n)
        {{ .reg .b32 %r1; ld.param.b32 %r1, [n]; shl.b32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }}
        .func (.param .b32 out) half(.param .b32 n)
        {{ .reg .b32 %r1; ld.param.b32 %r1, [n]; shr.u32 %r1, %r1, 1; st.param.b32 [out], %r1; ret; }}
        .func nothing() {{ ret; }}
        .entry k(.param .u64 y)
        {{
            .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
            ld.param.u64 %rd0, [y];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd1, %r0, 4;
            add.s64 %rd1, %rd1, %rd0;
            mov.u64 %rd2, table;
            {body}
            st.global.u32 [%rd1], %r4;
            ret;
        }}"
    )
}

fn case(text: String) -> Case {
    Case { text, grid: 1, block: 40, words: 40 }
}

fn calls(callee: &str) -> String {
    format!(
        "{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3;
        P: .callprototype (.param .b32 _) _ (.param .b32 _);
        {callee}
        ld.param.b32 %r4, [b]; }}"
    )
}

fn results(body: &str) -> Vec<u32> {
    case(text(body)).results()
}

fn kinds(body: &str) -> Vec<FindingKind> {
    case(text(body)).kinds()
}

#[test]
fn each_thread_calls_as_deep_as_it_has_to() {
    let sum = |n: u32| n * (n + 1) / 2;
    let direct = format!("rem.u32 %r3, %r0, 7; {}", calls("call (b), f, (a);"));
    assert_eq!(results(&direct), (0..40).map(|i| sum(i % 7)).collect::<Vec<_>>());
    // Lanes that do not call go on.
    let some = format!(
        "mov.u32 %r4, 77; mov.u32 %r3, %r0; setp.lt.u32 %p1, %r0, 5; @!%p1 bra OUT; {} OUT:",
        calls("call (b), f, (a);")
    );
    let expected = (0..40).map(|i| if i < 5 { sum(i) } else { 77 }).collect::<Vec<_>>();
    assert_eq!(results(&some), expected);
}

#[test]
fn lanes_call_functions_of_their_own() {
    let body = format!(
        "mov.u32 %r3, %r0; rem.u32 %r2, %r0, 3; mul.wide.u32 %rd3, %r2, 8; add.s64 %rd3, %rd3, %rd2;
        ld.global.u64 %rd4, [%rd3]; setp.gt.u32 %p1, %r2, 1; @%p1 mov.u32 %r3, 4; {}",
        calls("call (b), %rd4, (a), P;")
    );
    let expected = (0..40).map(|i| [2 * i, i / 2, 10][i as usize % 3]).collect::<Vec<_>>();
    assert_eq!(results(&body), expected);
    let constant =
        format!("mov.u64 %rd4, twice; mov.u32 %r3, 21; {}", calls("call (b), %rd4, (a), P;"));
    assert_eq!(results(&constant), [42; 40]);
}

#[test]
fn calls_that_go_wrong() {
    let deep = format!("mov.u32 %r3, 200; {}", calls("call (b), f, (a);"));
    assert_eq!(kinds(&deep), [StackOverflow]);
    let no_function =
        format!("mov.u64 %rd4, table; mov.u32 %r3, 1; {}", calls("call (b), %rd4, (a), P;"));
    assert_eq!(kinds(&no_function), [Trap]);
    let other_parameters = format!(
        "ld.global.u64 %rd4, [%rd2+24]; mov.u32 %r3, 1; {}",
        calls("call (b), %rd4, (a), P;")
    );
    assert_eq!(kinds(&other_parameters), [Trap]);
    let undefined = format!("mov.u32 %r3, 1; {}", calls("call (b), %rd7, (a), P;"));
    assert_eq!(kinds(&undefined), [Uninitialised]);
}

#[test]
fn frames_are_apart_and_new() {
    // `own` is read before it is written, after a call that has written it there.
    let stale = text(&format!("mov.u32 %r3, 0; {0} {0}", calls("call (b), f, (a);")))
        .replace(
            "st.local.b32 [own], %r1;",
            "setp.eq.u32 %p1, %r1, 1; @%p1 st.local.b32 [own], %r1;",
        )
        .replace("mov.u32 %r3, 0; {", "mov.u32 %r3, 1; {");
    assert_eq!(case(stale).kinds(), [Uninitialised]);
    let past = text(&format!("mov.u32 %r3, 1; {}", calls("call (b), f, (a);")))
        .replace("ld.local.b32 %r4, [own];", "ld.local.b32 %r4, [own+64];");
    assert_eq!(case(past).run(0).1.findings[0].kind, OutOfBounds);
}
