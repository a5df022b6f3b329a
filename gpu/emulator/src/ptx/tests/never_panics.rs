//! Whatever the text, there is an answer.

use proptest::prelude::*;

use super::super::Module;

fn read(text: &str) {
    if let Ok(module) = Module::parse(text) {
        for name in module.kernels() {
            let _ = module.kernel(name);
        }
    }
}

/// Pieces of PTX that make many parses go far.
const PIECES: &[&str] = &[
    ".entry k",
    ".func f",
    "(",
    ")",
    "{",
    "}",
    ";",
    ",",
    "[",
    "]",
    ".param .u64 a",
    ".param .b8 b[4]",
    ".reg .b32 %r<4>;",
    ".reg .pred %p<4>;",
    ".reg .b64 %rd<4>;",
    ".reg .b128 %q;",
    "%r1",
    "%r2",
    "%rd1",
    "%p1",
    "@%p1",
    "@!%p2",
    "ld.param.u64",
    "ld.global.v2.f32",
    "st.shared.u8",
    "bra",
    "L:",
    "L",
    "call f",
    "call (a), f, (b);",
    "ret;",
    ".shared .align 8 .b8 s[16];",
    ".local .b8 l[9];",
    ".global .u32 g = ",
    ".extern",
    ".visible",
    "1",
    "-1",
    "0f3F800000",
    "0xFFFFFFFFFFFFFFFF",
    "+",
    "-",
    "|",
    "!",
    "_",
    ":",
    "=",
    "<",
    ">",
    ".loc 1 2 3",
    ".file 1 \"a\"",
    ".branchtargets",
    "brx.idx",
    "shfl.sync.bfly.b32",
    "atom.global.add.u32",
    "bar.sync 0;",
    "cp.async.wait_group",
    "mov.u32",
    "vote.sync.all.pred",
    "%tid.x",
    ".section .debug {",
    "\n",
    "cvta.shared.u64",
    ".align",
    "generic(",
    ".const .b8 c[",
    "bar.red.popc.u32",
    "s",
    "g",
    "[s+4]",
    "[%rd1+-4]",
    "{%r1, %r2}",
    ".maxntid",
];

proptest! {
    #[test]
    fn of_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn of_token_soup(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        read(&pieces.join(" "));
    }

    #[test]
    fn of_statements(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)) {
        let registers = ".reg .b32 %r<4>; .reg .pred %p<4>; .reg .b64 %rd<4>;";
        let body = pieces.join(" ");
        read(&format!(".func f() {{ ret; }} .entry k(.param .u64 a) {{ {registers} {body}; ret; }}"));
    }
}

#[test]
fn deep_and_long_text() {
    for (open, count) in [("{", 100_000), ("(", 100_000), ("[", 100_000), ("!", 1000), ("-", 1000)]
    {
        let many = open.repeat(count);
        read(&format!(".entry k() {{ {many}"));
        read(&format!(".entry k() {{ ld.u32 {many}"));
        read(&format!(".global .u32 a = {many}"));
        read(&format!(".section a {many}"));
    }
}
