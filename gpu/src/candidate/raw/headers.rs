//! Headers that sources from elsewhere may include: the compiler finds none, and is given what
//! kernels use of them.

use std::collections::BTreeSet;

use super::words::is_name;

/// Headers of whose contents the compiler has what kernels use, or a source's own text declares it.
const KNOWN: [&str; 14] = [
    "cuda.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "vector_types.h",
    "inttypes.h",
    "stddef.h",
    "cstddef",
    "stdio.h",
    "cstdio",
    "stdlib.h",
    "cstdlib",
    "assert.h",
    "cassert",
    "math_functions.h",
];

/// Others with macros of numbers.
const LIMITS: [&str; 9] = [
    "cuda_runtime.h",
    "math.h",
    "cmath",
    "stdint.h",
    "cstdint",
    "limits.h",
    "climits",
    "float.h",
    "cfloat",
];
/// What kernels use of these.
const MACROS: [(&str, &str); 45] = [
    ("CHAR_BIT", "8"),
    ("SCHAR_MIN", "(-128)"),
    ("SCHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MIN", "(-32768)"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MIN", "(-2147483647 - 1)"),
    ("INT_MAX", "2147483647"),
    ("UINT_MAX", "4294967295u"),
    ("LONG_MIN", "(-9223372036854775807l - 1)"),
    ("LONG_MAX", "9223372036854775807l"),
    ("ULONG_MAX", "18446744073709551615ul"),
    ("LLONG_MIN", "(-9223372036854775807ll - 1)"),
    ("LLONG_MAX", "9223372036854775807ll"),
    ("ULLONG_MAX", "18446744073709551615ull"),
    ("INT8_MIN", "(-128)"),
    ("INT8_MAX", "127"),
    ("UINT8_MAX", "255"),
    ("INT16_MIN", "(-32768)"),
    ("INT16_MAX", "32767"),
    ("UINT16_MAX", "65535"),
    ("INT32_MIN", "(-2147483647 - 1)"),
    ("INT32_MAX", "2147483647"),
    ("UINT32_MAX", "4294967295u"),
    ("INT64_MIN", "(-9223372036854775807l - 1)"),
    ("INT64_MAX", "9223372036854775807l"),
    ("UINT64_MAX", "18446744073709551615ul"),
    ("SIZE_MAX", "18446744073709551615ul"),
    ("FLT_EPSILON", "1.19209290e-7f"),
    ("FLT_MIN", "1.17549435e-38f"),
    ("FLT_MAX", "3.40282347e+38f"),
    ("DBL_EPSILON", "2.2204460492503131e-16"),
    ("DBL_MIN", "2.2250738585072014e-308"),
    ("DBL_MAX", "1.7976931348623157e+308"),
    ("INFINITY", "__int_as_float(0x7f800000)"),
    ("NAN", "__int_as_float(0x7fffffff)"),
    ("HUGE_VALF", "__int_as_float(0x7f800000)"),
    ("HUGE_VAL", "__longlong_as_double(0x7ff0000000000000ll)"),
    ("M_E", "2.7182818284590452354"),
    ("M_LOG2E", "1.4426950408889634074"),
    ("M_LN2", "0.69314718055994530942"),
    ("M_PI", "3.14159265358979323846"),
    ("M_SQRT2", "1.41421356237309504880"),
    ("M_SQRT1_2", "0.70710678118654752440"),
];

/// A header of CUDA's with a type of 16 bits.
struct HalfHeader {
    name: &'static str,
    /// What stands for what in [`TEMPLATE`], longer names before those that they begin with.
    words: [(&'static str, &'static str); 9],
}

/// Headers of CUDA's cooperative groups, and what kernels use of them.
const GROUPS: [&str; 3] =
    ["cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h"];
const GROUPS_TEXT: &str = include_str!("../../../cuda/cooperative_groups.cuh");

/// The variable by which these let the blocks of a grid wait for each other: what has it in its
/// code has to be launched cooperatively.
pub(crate) const GRID_BARRIER: &str = "_ZZN18cooperative_groups7details12grid_barrierEvE6blocks";

/// What names of types and functions begin with that these declare.
const GROUPS_WORDS: [&str; 1] = ["cooperative_groups"];
const HALF_WORDS: [&str; 9] = [
    "__h",
    "__low",
    "__nv_b",
    "__float2",
    "__floats2",
    "__double2",
    "make_half",
    "make_bfloat",
    "nv_bfloat",
];
/// What a compiler says of what is not declared.
const LACKS: [&str; 5] =
    ["is undefined", "has no member", "no operator", "no instance of", "no suitable"];

/// What kernels use of both headers.
const TEMPLATE: &str = include_str!("../../../cuda/half_header.cuh");

const HALF_HEADERS: [HalfHeader; 2] = [
    HalfHeader {
        name: "cuda_fp16.h",
        words: [
            (
                "$TO_FLOAT",
                "float f; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(bits)); return f;",
            ),
            ("$PTX", "f16"),
            ("$ONE", "0x3c00"),
            ("$MAKE", "make_half2"),
            ("$T2", "__half2"),
            ("$T", "__half"),
            ("$N", "half"),
            ("$P", "half2"),
            ("$SHORT", "half"),
        ],
    },
    HalfHeader {
        name: "cuda_bf16.h",
        words: [
            ("$TO_FLOAT", "return __uint_as_float(unsigned(bits) << 16);"),
            ("$PTX", "bf16"),
            ("$ONE", "0x3f80"),
            ("$MAKE", "make_bfloat162"),
            ("$T2", "__nv_bfloat162"),
            ("$T", "__nv_bfloat16"),
            ("$N", "bfloat16"),
            ("$P", "bfloat162"),
            ("$SHORT", "nv_bfloat16"),
        ],
    },
];

impl HalfHeader {
    /// Its declarations, under its own name and lines.
    fn text(&self) -> String {
        let filled = |text: String, (word, by): &(&str, &str)| text.replace(word, by);
        let text = self.words.iter().fold(TEMPLATE.to_owned(), filled);
        format!("#line 1 \"{}\"\n{text}", self.name)
    }
}

/// The header that a line includes, if it is one of those that sources may include.
fn known(line: &str) -> Option<&'static str> {
    let line = line.split("//").next().unwrap_or_default().trim();
    let name = line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let enclosed = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    let name = enclosed('<', '>').or_else(|| enclosed('"', '"'))?;
    let halves = HALF_HEADERS.iter().map(|header| header.name);
    KNOWN.into_iter().chain(LIMITS).chain(halves).chain(GROUPS).find(|known| *known == name)
}

/// A text without the lines that include headers which sources may include.
pub(super) fn without(text: &str) -> String {
    let kept = text.split_inclusive('\n').map(|line| match known(line) {
        Some(_) if line.ends_with('\n') => "\n",
        Some(_) => "",
        None => line,
    });
    kept.collect()
}

/// Declares those of `<cstdint>`'s types that code uses and does not declare, and in the
/// namespace `std` those that it has from there: the compiler has no such header. A line of its
/// own, before the first.
pub(super) fn sized_integers(code: &str) -> String {
    const TYPES: [(&str, &str); 10] = [
        ("int8_t", "signed char"),
        ("int16_t", "short"),
        ("int32_t", "int"),
        ("int64_t", "long long"),
        ("uint8_t", "unsigned char"),
        ("uint16_t", "unsigned short"),
        ("uint32_t", "unsigned int"),
        ("uint64_t", "unsigned long long"),
        ("intptr_t", "long"),
        ("uintptr_t", "unsigned long"),
    ];
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c| !is_name(c)).filter(|word| !word.is_empty())
    }
    let used: BTreeSet<&str> = words(code).filter(|word| word.ends_with("_t")).collect();
    let mut declared = Vec::new();
    for statement in code.split(';') {
        let mut given = words(statement);
        let has = |word| words(statement).any(|given| given == word);
        if statement.contains('=') && given.any(|given| given == "using") {
            declared.extend(given.next());
        } else if has("typedef") {
            declared.extend(words(statement).last());
        }
    }
    let is_missing = |name: &&(&str, &str)| used.contains(name.0) && !declared.contains(&name.0);
    let missing = TYPES.iter().filter(is_missing);
    let mut line: String = missing.map(|(name, ty)| format!("typedef {ty} {name}; ")).collect();
    // Those of the compiler's own are not in its namespace, either. Who writes to it knows
    // best.
    const OWN: [(&str, &str); 2] = [("size_t", "decltype(sizeof 0)"), ("ptrdiff_t", "long")];
    let is_of_std = |name: &&(&str, &str)| code.contains(&format!("std::{}", name.0));
    if !code.contains("namespace std") {
        let of_std = TYPES.iter().chain(&OWN).filter(is_of_std);
        line.extend(of_std.map(|(name, ty)| format!("namespace std {{ typedef {ty} {name}; }} ")));
    }
    if !line.is_empty() {
        line.push('\n');
    }
    line
}

/// What kernels use of the headers with types of 16 bits, with cooperative groups and with macros
/// of numbers that a text includes, each once; nothing where it includes none.
pub(super) fn declarations(text: &str) -> String {
    let includes = |name: &str| text.lines().any(|line| known(line) == Some(name));
    let halves = HALF_HEADERS.iter().filter(|header| includes(header.name));
    let mut declared: String = halves.map(HalfHeader::text).collect();
    if GROUPS.into_iter().any(includes) {
        declared.push_str(&format!("#line 1 \"{}\"\n{GROUPS_TEXT}", GROUPS[0]));
    }
    if LIMITS.into_iter().any(includes) {
        let words: BTreeSet<&str> = text.split(|c| !is_name(c)).collect();
        let is_own = |name: &str| text.contains(&format!("define {name}"));
        let used = MACROS.into_iter().filter(|(name, _)| words.contains(name) && !is_own(name));
        declared.extend(used.map(|(name, number)| format!("#define {name} {number}\n")));
    }
    declared
}

/// Whether it is for the sake of declarations that a compiler refuses a source, for this reason:
/// the error is in them, or speaks of what they declare, or of functions for the host, which launch
/// kernels or call CUDA's runtime.
pub(super) fn are_at_fault(declared: &str, reason: &str) -> bool {
    let names = HALF_HEADERS.iter().map(|header| header.name).chain([GROUPS[0]]);
    let mut given = names.filter(|name| declared.contains(&format!("#line 1 \"{name}\"")));
    let is_of_given = given.any(|name| {
        let begins = if name == GROUPS[0] { &GROUPS_WORDS[..] } else { &HALF_WORDS[..] };
        let is_of = |quoted: &str| {
            let mut of = quoted.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            of.any(|word| begins.iter().any(|begin| word.starts_with(begin)))
        };
        reason.contains(&format!("{name}(")) || lacks(reason, is_of)
    });
    let is_of_runtime = |quoted: &str| {
        quoted.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(char::is_uppercase))
    };
    let launches = reason.contains("requires separate compilation mode");
    is_of_given || launches || lacks(reason, is_of_runtime)
}

/// Whether a reason is that something of a kind is not declared; a compiler quotes what it speaks
/// of.
fn lacks(reason: &str, is_of_kind: impl Fn(&str) -> bool) -> bool {
    let lacks = LACKS.iter().any(|lacks| reason.contains(lacks));
    lacks && reason.split('"').skip(1).step_by(2).any(is_of_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_cuda_and_c_are_left_out_and_lines_stay() {
        let text = "#include <cuda_runtime.h>  // for threadIdx\n # include \"stdint.h\"\n\
                    #include <cub/cub.cuh>\nint x;\n#include<cmath>";
        assert_eq!(without(text), "\n\n#include <cub/cub.cuh>\nint x;\n");
        assert_eq!(declarations("#include <cub/cub.cuh>\n#include <assert.h>\n"), "");
        assert_eq!(declarations(text), "", "nothing is used");
        let using = format!("{text}int most = INT_MAX;\n");
        assert_eq!(declarations(&using), "#define INT_MAX 2147483647\n");
    }

    #[test]
    fn cooperative_groups_are_declared_once() {
        let text = "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n";
        assert_eq!(without(text), "\n\n");
        let declared = declarations(text);
        assert!(declared.starts_with("#line 1 \"cooperative_groups.h\"\n"));
        assert_eq!(declared.matches("namespace cooperative_groups").count(), 2, "and its end");
        assert_eq!(without("#include <cooperative_groups/memcpy_async.h>\n").lines().count(), 1);
    }

    #[test]
    fn what_declarations_lack_is_told_from_errors_of_the_source() {
        let groups = declarations("#include <cooperative_groups.h>\n");
        let halves = declarations("#include <cuda_fp16.h>\n");
        let of_groups = [
            "k.cu(14): error: class \"cooperative_groups::cluster_group\" has no member \"f\"",
            "k.cu(3): error: namespace \"cooperative_groups\" has no member \"multi_grid\"",
            "cooperative_groups.h(70): error: static assertion failed with \"tiles\"",
        ];
        for reason in of_groups {
            assert!(are_at_fault(&groups, reason), "{reason}");
            assert!(!are_at_fault(&halves, reason), "{reason}");
        }
        let of_halves = "k.cu(9): error: identifier \"__hfma2_relu\" is undefined";
        assert!(are_at_fault(&halves, of_halves) && !are_at_fault(&groups, of_halves));
        for own in ["k.cu(9): error: identifier \"sun\" is undefined", "expected a \";\""] {
            assert!(!are_at_fault(&format!("{groups}{halves}"), own), "{own}");
        }
        assert!(!are_at_fault("", of_groups[0]));
    }

    #[test]
    fn headers_of_halves_are_declared_once_each() {
        let text = "#include <cuda_bf16.h>\n#include \"cuda_fp16.h\"\n#include <cuda_bf16.h>\n";
        assert_eq!(without(text), "\n\n\n");
        let declared = declarations(text);
        for line in ["#line 1 \"cuda_fp16.h\"", "#line 1 \"cuda_bf16.h\""] {
            assert_eq!(declared.lines().filter(|other| *other == line).count(), 1, "{line}");
        }
        let is_left = |word: &&str| word.starts_with('$');
        let words = declared.split(|c: char| !(c.is_alphanumeric() || c == '$'));
        assert_eq!(words.filter(is_left).collect::<Vec<_>>(), [""; 0]);
    }
}
