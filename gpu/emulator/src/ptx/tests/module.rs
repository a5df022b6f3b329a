//! What is around instructions.

use super::super::Module;
use super::super::lexer::{Token, tokens};
use super::{HEAD, error, held, kernel, kernel_of, op, ops};
use crate::code::{Address, Op, Parameter, Register, SourceLocation, Space, VARIABLES};

fn token(text: &str) -> Token<'_> {
    tokens(text).unwrap()[0].token
}

#[test]
fn numbers() {
    assert_eq!(token("12"), Token::Integer(12));
    assert_eq!(token("12U"), Token::Integer(12));
    assert_eq!(token("0x1FU"), Token::Integer(31));
    assert_eq!(token("017"), Token::Integer(15));
    assert_eq!(token("0"), Token::Integer(0));
    assert_eq!(token("0U"), Token::Integer(0));
    assert_eq!(token("0b101"), Token::Integer(5));
    assert_eq!(token("18446744073709551615"), Token::Integer(u64::MAX));
    assert_eq!(token("0f3F800000"), Token::Single(1_f32.to_bits()));
    assert_eq!(token("0d3FF0000000000000"), Token::Double(1_f64.to_bits()));
    assert_eq!(token("1.5e-3"), Token::Double(1.5e-3_f64.to_bits()));
    for wrong in ["0x", "08", "0f3F80000", "0f+F800000", "18446744073709551616", "1z", "é"] {
        assert!(tokens(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn words_and_comments() {
    let text = "ld.global.L2::128B /* a\nb */ %tid.x // c\n$L1: .reg";
    let all: Vec<_> = tokens(text).unwrap().iter().map(|t| (t.token, t.line)).collect();
    let expected = [
        (Token::Word("ld.global.L2::128B"), 1),
        (Token::Word("%tid.x"), 2),
        (Token::Word("$L1"), 3),
        (Token::Mark(b':'), 3),
        (Token::Word(".reg"), 3),
        (Token::End, 3),
    ];
    assert_eq!(all, expected);
    assert!(tokens("/* no end").is_err());
    assert!(tokens("\"no end\n\"").is_err());
}

#[test]
fn kernels_are_listed_without_functions_and_declarations() {
    let text = format!(
        "{HEAD}.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .func f() {{ ret; }}\n.visible .entry k() {{ ret; }}\n.weak .entry l() {{ }}"
    );
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.kernels(), ["k", "l"]);
    assert_eq!(module.kernel("l").unwrap().code.len(), 1);
    assert_eq!(
        module.kernel("m").unwrap_err().to_string(),
        "PTX line 0: no kernel `m`; there is k, l"
    );
    assert!(module.kernel("f").is_err());
}

#[test]
fn parameters_lie_by_their_alignment() {
    let text = ".entry k(.param .u32 a, .param .u64 .ptr .global .align 1 b, .param .u8 c,\n\
                .param .align 16 .b8 d[20], .param .f64 e) .maxntid 8, 4, 2 .minnctapersm 2\n{ ret; }";
    let kernel = kernel_of(text).unwrap();
    let starts = [0..4, 8..16, 16..17, 32..52, 56..64];
    assert_eq!(kernel.parameters, starts.map(|bytes| Parameter { bytes }));
    assert_eq!((kernel.parameter_bytes, kernel.most_threads), (64, Some(64)));
}

#[test]
fn parameters_are_read_by_name_and_by_address() {
    let Op::Load { address, .. } = op("ld.param.u32 %r1, [k_param_0+4];") else { panic!() };
    assert_eq!(address, Address { space: Space::Parameter, base: None, offset: 4 });
    let Op::Load { address, .. } = op("ld.param.u32 %r1, [%rd1+-8];") else { panic!() };
    let base = Some(Register::Long(0));
    assert_eq!(address, Address { space: Space::Parameter, base, offset: -8 });
    assert!(error("st.param.u32 [k_param_0], %r1;").contains("cannot be written"));
}

#[test]
fn variables_lie_one_after_the_other_with_gaps() {
    let text = ".global .align 4 .u32 a = -2;\n.const .align 8 .b8 b[6] = {1, 0xFF};\n\
                .global .u64 c[3] = {generic(a), b+4};\n.global .f32 d[2] = {0f3F800000, 2};\n\
                .global .align 2 .b8 e[2] = {0xFF(b), 0xFF00(generic(a)+513)};\n\
                .entry k() { .reg .b32 %r<2>; ld.const.u8 %r1, [b+1]; ret; }";
    let kernel = kernel_of(text).unwrap();
    let start = VARIABLES.start;
    let found: Vec<_> =
        kernel.variables.iter().map(|v| (v.name.as_str(), v.address - start, v.constant)).collect();
    let far = |gaps: u64, offset: u64| (gaps << 20) + offset;
    let expected = [
        ("a", 0, false),
        ("b", far(1, 8), true),
        ("c", far(2, 16), false),
        ("d", far(3, 40), false),
        ("e", far(4, 48), false),
    ];
    assert_eq!(found, expected);
    assert_eq!(kernel.variables[0].initial, [0xFE, 0xFF, 0xFF, 0xFF]);
    assert_eq!(kernel.variables[1].initial, [1, 0xFF, 0, 0, 0, 0]);
    let addresses = [start, start + far(1, 12), 0].map(u64::to_le_bytes).concat();
    assert_eq!(kernel.variables[2].initial, addresses);
    let floats = [1_f32, 2.0].map(f32::to_le_bytes).concat();
    assert_eq!(kernel.variables[3].initial, floats);
    assert_eq!(kernel.variables[4].initial, [8, 2]);
    let Op::Load { address, .. } = kernel.code[0].op else { panic!() };
    assert_eq!((address.space, address.offset), (Space::Global, (start + far(1, 9)) as i64));
}

#[test]
fn wrong_variables_are_refused() {
    for (text, reason) in [
        (".global .u32 a[2] = {1, 2, 3};", "too many initial values"),
        (".global .u32 a; .global .u32 a;", "a second time"),
        (".global .b8 a[100000000];", "larger than"),
        (".global .b8 a[99999999999999];", "too large"),
        (".global .u64 a = b;", "no address of `b`"),
        (".global .u32 b; .global .u32 a = b;", "does not fit"),
        (".global .align 3 .u32 a;", "no alignment"),
        (".global .texref a;", "cannot be `.texref`"),
    ] {
        let error = kernel_of(&format!("{text}\n.entry k() {{ ret; }}")).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn dynamic_shared_memory_comes_last() {
    let text = ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 unused[400];\n\
                .shared .align 4 .f32 first;\n.entry k() { .reg .b32 %r<4>;\n\
                { .shared .align 8 .b8 second[12]; ld.shared.u32 %r1, [second]; }\n\
                ld.shared.u32 %r1, [first]; ld.shared.u32 %r2, [dynamic+4]; ret; }";
    let kernel = kernel_of(text).unwrap();
    assert_eq!(kernel.shared_bytes, 32);
    let offsets = kernel.code.iter().filter_map(|i| match &i.op {
        Op::Load { address, .. } => Some((address.space, address.offset)),
        _ => None,
    });
    let expected = [(Space::Shared, 264), (Space::Shared, 0), (Space::Shared, 548)];
    assert_eq!(kernel.shared_dynamic, 544);
    assert_eq!(offsets.collect::<Vec<_>>(), expected);
    assert!(error(".shared .b8 a[50000];").contains("static shared memory"));
}

#[test]
fn local_memory() {
    let kernel = kernel(".local .align 8 .b8 depot[12]; .local .u16 x; st.local.u16 [x], %rs1;");
    let kernel = kernel.unwrap();
    assert_eq!(kernel.local_bytes, 14);
    let Op::Store { address, .. } = kernel.code[0].op else { panic!() };
    assert_eq!(address, Address { space: Space::Local, base: None, offset: 12 });
}

#[test]
fn scopes_have_their_own_registers_and_labels() {
    let kernel = kernel(
        "L: activemask.b32 %r1;\n{ .reg .b32 %r1; activemask.b32 %r1; bra L; L: }\n\
         activemask.b32 %r1; bra L;",
    )
    .unwrap();
    let ops: Vec<_> = kernel.code.into_iter().map(|i| i.op).collect();
    let mask = |n| Op::ActiveMask { destination: Register::Word(n) };
    let expected =
        [mask(0), mask(1), Op::Branch { target: 3 }, mask(0), Op::Branch { target: 0 }, Op::Exit];
    assert_eq!(ops, expected);
    assert_eq!(kernel.registers.words, 2);
}

#[test]
fn registers_of_a_range() {
    let declared = |name| kernel(&format!(".reg .b32 %x1<12>, y; activemask.b32 {name};"));
    for name in ["%x10", "%x111", "y"] {
        assert!(declared(name).is_ok(), "{name}");
    }
    for name in ["%x1", "%x112", "%x101", "%x2", "%y", "%r9"] {
        assert!(declared(name).unwrap_err().contains("is not declared"), "{name}");
    }
}

#[test]
fn locations() {
    let kernel = kernel_of(
        ".entry k() { .reg .b32 %r<2>;\nactivemask.b32 %r1;\n.loc 1 7 3\nactivemask.b32 %r1;\n\
         .loc 2 9 0, function_name $L__info_string0, inlined_at 1 8 3\nactivemask.b32 %r1;\n\
         .loc 2 4 1, function_name $L__info_string0, inlined_at 2 9 0\nactivemask.b32 %r1;\n\
         .loc 1 2 5, function_name $L__info_string0, inlined_at 1 8 3\nactivemask.b32 %r1;\n\
         .loc 1 7 5\nret; }\n.file 1 \"a b.cu\"\n.file 2 \"c.h\", 123, 456\n\
         .section .debug_str\n{\n$L__info_string0:\n.b8 95, 90\n.b8 0\n}",
    )
    .unwrap();
    let place = |line| SourceLocation { file: "a b.cu".to_owned(), line, called_at: None };
    // Functions of another file are named by the line that calls them, also one by way of another;
    // of others that line is named, too.
    let called = SourceLocation { called_at: Some(8), ..place(2) };
    assert_eq!(called.to_string(), "a b.cu:2, called at line 8");
    assert_eq!(kernel.locations, [place(7), place(8), called]);
    let found: Vec<_> = kernel.code.iter().map(|i| (i.ptx_line, i.location)).collect();
    assert_eq!(
        found,
        [(5, None), (7, Some(0)), (9, Some(1)), (11, Some(1)), (13, Some(2)), (15, Some(0))]
    );
}

#[test]
fn equal_constants_share_a_register() {
    let kernel = kernel("shfl.sync.idx.b32 %r1, %tid.x, 31, 31, -1;").unwrap();
    let Op::Shuffle { source, lane, clamp, members, .. } = kernel.code[0].op else { panic!() };
    assert_eq!(lane, clamp);
    assert_eq!(held(&kernel, source), Some(crate::code::Constant::Thread(0)));
    assert_eq!(held(&kernel, members), Some(crate::code::Constant::Bits(0xFFFF_FFFF)));
    assert_eq!(kernel.constants.len(), 3);
}

#[test]
fn the_last_instruction_never_falls_through() {
    assert_eq!(ops("bra L; L:").last(), Some(&Op::Exit));
    let open = kernel_of(".entry k() { .reg .pred %p; @%p bra L; L: @%p ret; }").unwrap();
    assert_eq!(open.code.len(), 3);
    assert_eq!((open.code[2].guard, &open.code[2].op), (None, &Op::Exit));
    let end = kernel_of(".entry k() { bra L; ret; L: }").unwrap();
    assert_eq!((&end.code[0].op, end.code.len()), (&Op::Branch { target: 2 }, 3));
}

#[test]
fn text_that_is_no_ptx_names_the_line() {
    for (text, expected) in [
        (".frob", "PTX line 4: unknown directive `.frob`"),
        (".entry k(\n.param u32 a)", "PTX line 5: expected a type, found `u32`"),
        (".entry k() {\nld.u32 %r1 [a];", "PTX line 5: expected `,`, found `[`"),
        (".entry k() {\n", "PTX line 5: expected a statement, found the end of the text"),
        (".entry k() { @%p }", "PTX line 4: expected a name, found `}`"),
        (".entry k() {}\n.entry k() {}", "PTX line 5: `k` is defined a second time"),
    ] {
        assert_eq!(kernel_of(text).unwrap_err(), expected);
    }
    let wrong = Module::parse(".address_size 32").unwrap_err();
    assert!(wrong.reason.contains("64-bit"));
}
