//! What a source says of its lines where machine code has no trace of it: of loops that are
//! unrolled and of constants that are folded, no instruction is left whose line could be named.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Code;
use super::words::{is_name, last_name, split_name};

/// Bytes of a declaration that are looked at.
const LONGEST_DECLARATION: usize = 2048;
/// Lines on each side of one that are looked at for where a sum begins.
const NEAR: u32 = 6;
/// Bytes that a loop's begin may lie before a line.
const FARTHEST: usize = 4096;

/// A source, line by line.
pub(crate) struct Listing<'s> {
    code: Code<'s>,
    /// Where each constant is defined; those that are defined in several places are in none.
    constants: BTreeMap<String, Option<u32>>,
    /// Macros among them that stand for an expression of what they are given.
    of_arguments: BTreeSet<String>,
}

impl<'s> Listing<'s> {
    pub(super) fn of(source: &'s str) -> Self {
        let code = Code::read(source);
        let mut constants = BTreeMap::new();
        let lines = Lines::of(source);
        let mut define = |name: &str, at: usize| {
            let line = Some(lines.of_place(at));
            let known = constants.entry(name.to_owned()).or_insert(line);
            if *known != line {
                *known = None;
            }
        };
        let mut of_arguments = BTreeSet::new();
        for (at, directive) in code.directives() {
            let Some(Macro { name, takes_arguments }) = macro_of(directive) else { continue };
            define(name, at);
            if takes_arguments {
                of_arguments.insert(name.to_owned());
            }
        }
        for (at, name) in constants_of(&code.code) {
            define(name, at);
        }
        Self { code, constants, of_arguments }
    }

    /// The line on which the innermost loop begins that a line is in and does not begin itself.
    pub(crate) fn loop_around(&self, line: u32) -> Option<u32> {
        let (start, text) = self.line(line)?;
        let inside = start + text.len() - text.trim_start().len();
        let code = self.code.code.as_str();
        let far = inside.saturating_sub(FARTHEST);
        let heads = words(code, far..inside).filter(|(_, word)| matches!(*word, "for" | "while"));
        let around = heads.filter(|&(at, word)| is_in_loop(code, at + word.len(), inside));
        let at = around.last()?.0;
        Some(Lines::of(code).of_place(at)).filter(|&head| head != line)
    }

    /// The constants that a line names, each with the line that defines it, if that is another:
    /// those that are given nothing first.
    pub(crate) fn constants_at(&self, line: u32) -> Vec<(&str, u32)> {
        let Some((start, text)) = self.line(line) else { return Vec::new() };
        let names = words(&self.code.code, start..start + text.len());
        let mut found: Vec<(&str, u32)> = Vec::new();
        for (_, word) in names {
            if let Some((name, &Some(defined))) = self.constants.get_key_value(word)
                && defined != line
                && found.iter().all(|(known, _)| known != name)
            {
                found.push((name, defined));
            }
        }
        found.sort_by_key(|&(name, _)| self.of_arguments.contains(name));
        found
    }

    /// The line of an element of a table, by the name of the variable, which may be mangled, and
    /// the element's number among all, whatever braces they are in.
    pub(crate) fn line_of_element(&self, symbol: &str, element: usize) -> Option<u32> {
        let names = self.constants.iter().filter(|(name, _)| symbol.contains(name.as_str()));
        let (name, line) = names.max_by_key(|(name, _)| name.len())?;
        let (start, text) = self.line((*line)?)?;
        let code = self.code.code.as_str();
        let at = start + text.find(name.as_str())?;
        let begin = at + code.get(at..)?.find('{')?;
        let end = end_of_declaration(code, begin)?;
        let elements = code.get(begin..end)?;
        let mut at = begin;
        let places = elements.split_inclusive([',', '{', '}']).filter_map(|part| {
            let from = at;
            at += part.len();
            let number = part.trim_end_matches([',', '{', '}']);
            let blanks = number.len() - number.trim_start().len();
            (!number.trim().is_empty()).then_some(from + blanks)
        });
        let place = places.into_iter().nth(element)?;
        Some(Lines::of(code).of_place(place))
    }

    /// The line next to one, before it rather than behind, that gives zero to what may be a sum of
    /// numbers with fractions.
    pub(crate) fn zero_near(&self, line: u32) -> Option<u32> {
        let is_zero = |&line: &u32| {
            self.line(line).is_some_and(|(_, text)| {
                let is_integer = words(text, 0..text.len()).any(|(_, word)| is_integer_type(word));
                !is_integer && gives_zero(text)
            })
        };
        let before = (line.saturating_sub(NEAR)..=line).rev();
        before.chain(line.saturating_add(1)..=line.saturating_add(NEAR)).find(is_zero)
    }

    /// Where a line begins, and what of it is code.
    fn line(&self, line: u32) -> Option<(usize, &str)> {
        let number = usize::try_from(line.checked_sub(1)?).ok()?;
        let code = self.code.code.as_str();
        let text = code.split_inclusive('\n').nth(number)?;
        // The lines of a text lie in it one behind the other.
        let start = code.split_inclusive('\n').take(number).map(str::len).sum();
        Some((start, text))
    }
}

/// Where the lines of a text end.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    pub(super) fn of_place(&self, at: usize) -> u32 {
        self.0.partition_point(|&end| end < at) as u32 + 1
    }
}

/// Words that begin in a part of a text, and where.
pub(super) fn words(
    text: &str,
    part: std::ops::Range<usize>,
) -> impl Iterator<Item = (usize, &str)> {
    let mut at = part.start;
    std::iter::from_fn(move || {
        let rest = text.get(at..part.end)?;
        let from = at + rest.find(is_name)?;
        let (word, _) = split_name(text.get(from..)?);
        at = from + word.len();
        Some((from, word))
    })
}

fn is_integer_type(word: &str) -> bool {
    let is_sized = word.ends_with("_t") && word.contains("int");
    is_sized || matches!(word, "int" | "unsigned" | "long" | "short" | "char" | "bool" | "size_t")
}

/// Whether a line assigns zero to something, or makes something of it.
fn gives_zero(text: &str) -> bool {
    text.match_indices(['=', '(', '{']).any(|(at, _)| {
        let value = text.get(at + 1..).unwrap_or_default().trim_start();
        let number = value.find([',', ';', ')', '}']).and_then(|end| value.get(..end));
        number.is_some_and(|number| {
            let number = number.trim().trim_end_matches(['f', 'F']);
            number.contains('0') && number.chars().all(|digit| matches!(digit, '0' | '.'))
        })
    })
}

/// A macro that stands for something, and for an expression where it takes arguments.
struct Macro<'s> {
    name: &'s str,
    takes_arguments: bool,
}

fn macro_of(directive: &str) -> Option<Macro<'_>> {
    let rest = directive.trim_start_matches('#').trim_start().strip_prefix("define")?;
    let (name, body) = split_name(rest.trim_start());
    let (takes_arguments, body) = match body.strip_prefix('(') {
        Some(rest) => (true, rest.split_once(')')?.1),
        None => (false, body),
    };
    let is_statement = takes_arguments && body.contains([';', '{']);
    let stands_for_something = !name.is_empty() && !body.trim().is_empty() && !is_statement;
    stands_for_something.then_some(Macro { name, takes_arguments })
}

/// Whether what follows the head of a loop, from its parenthesis on, goes as far as a place.
fn is_in_loop(code: &str, from: usize, inside: usize) -> bool {
    let Some(text) = code.get(from..inside) else { return false };
    let (mut depth, mut in_head) = (0_usize, true);
    for mark in text.chars() {
        match mark {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                let Some(less) = depth.checked_sub(1) else { return false };
                depth = less;
                if depth == 0 && mark == '}' {
                    return false;
                }
                in_head = in_head && depth > 0;
            }
            ';' if depth == 0 => return false,
            _ => {}
        }
    }
    !in_head
}

/// The constants of a code, and where they are named first.
fn constants_of(code: &str) -> Vec<(usize, &str)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (at, word) in words(code, 0..code.len()) {
        let begin = at + word.len();
        match word {
            "enum" => found.extend(enumerators(code, begin)),
            "constexpr" | "__constant__" | "const" => {
                let Some(end) = end_of_declaration(code, begin) else { continue };
                for (from, to) in parts(code, begin, end) {
                    let Some(text) = code.get(from..to) else { continue };
                    let Some(behind) = text.find(['=', '{', '[']) else { break };
                    let (head, value) = text.split_at(behind);
                    if head.contains('(') {
                        break;
                    }
                    let is_known = |(_, name): (usize, &str)| {
                        name.starts_with(|c: char| c.is_ascii_digit())
                            || found.iter().any(|(_, known)| *known == name)
                    };
                    // What only may not change may be computed from anything.
                    let is_fixed = word != "const" || words(value, 0..value.len()).all(is_known);
                    let name = last_name(head);
                    if is_fixed && !name.is_empty() {
                        let blanks = head.len() - head.trim_end().len();
                        found.push((from + behind - blanks - name.len(), name));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Where a declaration ends, unless that is not a statement's.
fn end_of_declaration(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from).take(LONGEST_DECLARATION) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b';' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// What is between the commas of a part of a code, but for those in parentheses and braces.
pub(super) fn parts(code: &str, from: usize, to: usize) -> Vec<(usize, usize)> {
    let (mut depth, mut begin, mut found) = (0_usize, from, Vec::new());
    for (at, byte) in code.bytes().enumerate().take(to).skip(from) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push((begin, at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push((begin, to));
    found
}

/// The numbers that an enumeration names.
fn enumerators(code: &str, from: usize) -> Vec<(usize, &str)> {
    let Some(end) = end_of_declaration(code, from) else { return Vec::new() };
    let Some(text) = code.get(from..end) else { return Vec::new() };
    let (Some(open), Some(close)) = (text.find('{'), text.rfind('}')) else { return Vec::new() };
    let names = parts(code, from + open + 1, from + close);
    names.into_iter().filter_map(|(from, to)| words(code, from..to).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
#define BLOCK 256
#define MIN(a, b) ((a) < (b) ? (a) : (b))
enum { FULL = 1, EMPTY = FULL + 2 };
constexpr int ROWS = 64, WARPS = BLOCK / 32; // const int NOT = 1;
__constant__ int steps[2] = {32, 16};
template <unsigned N> struct Lanes {
    static constexpr unsigned half = N / 4;
};
__device__ constexpr int twice(int a) { return 2 * a; }
__global__ void f(const int* rows, float* y) {
    const int row = blockIdx.x, TILE = 8;
    const unsigned MASK = (1u << ROWS) - 1;
    for (int d = Lanes<8>::half; d; d >>= 1)
        y[row] += steps[d] * (ROWS & MASK);
    while (row < EMPTY) {
        y[0] = BLOCK;
        for (;;) { break; }
        y[1] = twice(TILE);
    }
    y[2] = MIN(y[1], TILE);
}
";

    #[test]
    fn constants_are_known_by_the_lines_that_define_them() {
        let listing = Listing::of(SOURCE);
        assert_eq!(listing.constants_at(3), []);
        assert_eq!(listing.constants_at(4), [("BLOCK", 1)]);
        assert_eq!(listing.constants_at(20), [("TILE", 11), ("MIN", 2)]);
        assert_eq!(listing.constants_at(13), [("half", 7)]);
        assert_eq!(listing.constants_at(14), [("steps", 5), ("ROWS", 4), ("MASK", 12)]);
        assert_eq!(listing.constants_at(15), [("EMPTY", 3)]);
        assert_eq!(listing.constants_at(18), [("TILE", 11)]);
        assert_eq!(listing.constants_at(99), []);
        assert_eq!(listing.constants_at(0), []);
    }

    #[test]
    fn a_constant_with_two_definitions_is_in_no_line() {
        let listing = Listing::of("constexpr int N = 1;\nconstexpr int N = 2;\nint a = N;\n");
        assert_eq!(listing.constants_at(3), []);
    }

    #[test]
    fn an_element_of_a_table_is_in_a_line_of_its_own() {
        let source = "__constant__ int lengths[2] = {1, 2};\n\
                      __constant__ Bin bins[2][2] = {\n    {0,\n  2},\n    {3, 1 << 4}};\n";
        let listing = Listing::of(source);
        let lines: Vec<Option<u32>> =
            (0..5).map(|element| listing.line_of_element("_Z4bins", element)).collect();
        assert_eq!(lines, [Some(3), Some(4), Some(5), Some(5), None]);
        assert_eq!(listing.line_of_element("lengths", 1), Some(1));
        assert_eq!(listing.line_of_element("others", 0), None);
    }

    #[test]
    fn a_sum_begins_where_it_is_set_to_zero() {
        let source = "int a = 0;\nfloat sum = 0.f;\nfor (int k = 0; k < 2; ++k)\n  f(sum);\n\
                      D s{0};\nreturn s == 10;\n";
        let listing = Listing::of(source);
        let lines: Vec<Option<u32>> = (1..=6).map(|line| listing.zero_near(line)).collect();
        assert_eq!(lines, [2, 2, 2, 2, 5, 5].map(Some));
        assert_eq!(Listing::of("int a = 0;\n").zero_near(1), None);
    }

    #[test]
    fn a_line_is_in_the_innermost_loop_around_it() {
        let listing = Listing::of(SOURCE);
        let loops: Vec<Option<u32>> = (12..=20).map(|line| listing.loop_around(line)).collect();
        let expected = [None, None, Some(13), None, Some(15), Some(15), Some(15), Some(15), None];
        assert_eq!(loops, expected);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(
            text in "\\PC*",
            like in "[a-z0-9(){}\\[\\];,= \n#]{0,60}",
            line in 0..9_u32,
        ) {
            for source in [text.as_str(), &like, &format!("enum{like}const int a={like}")] {
                let listing = Listing::of(source);
                listing.loop_around(line);
                listing.constants_at(line);
                listing.zero_near(line);
                listing.line_of_element("const a", line as usize);
            }
        }
    }
}
