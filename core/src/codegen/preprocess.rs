//! A preprocessor for the statements of layouts: what it writes is of one program.
//!
//! It knows what the files of `core/cuda` need of C's: `#if` over products of numbers, `#include`,
//! `#define` of names, and the macros that a program gives it. Factors that are 1 drop out. Other
//! directives, such as `#pragma unroll`, are left to CUDA's compiler.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::lines::MOST_COLUMNS;

/// Files that statements may include.
const INCLUDED: [(&str, &str); 4] = [
    ("\"lanes.cuh\"", include_str!("../../cuda/lanes.cuh")),
    ("\"walk.cuh\"", include_str!("../../cuda/walk.cuh")),
    ("\"fours.cuh\"", include_str!("../../cuda/fours.cuh")),
    ("\"row_sum.cuh\"", include_str!("../../cuda/row_sum.cuh")),
];

/// What a macro becomes, by its arguments: lines, of which only a call that is a line by itself may
/// get several, or none.
type Expansion<'a> = Box<dyn Fn(&[String]) -> Vec<String> + 'a>;

/// What a program gives to the preprocessor.
#[derive(Default)]
pub(super) struct Macros<'a> {
    /// Numbers, which statements name.
    pub(super) numbers: Vec<(&'static str, u32)>,
    /// Numbers that drop out of products and quotients where they are 1.
    pub(super) factors: Vec<(&'static str, u32)>,
    names: Vec<(String, String)>,
    functions: Vec<(&'static str, Expansion<'a>)>,
}

impl<'a> Macros<'a> {
    /// Gives a name a meaning.
    pub(super) fn define(&mut self, name: &str, meaning: &str) {
        self.names.retain(|(known, _)| known != name);
        self.names.push((name.to_owned(), meaning.to_owned()));
    }

    /// Defines a macro with arguments.
    pub(super) fn function(
        &mut self,
        name: &'static str,
        expansion: impl Fn(&[String]) -> Vec<String> + 'a,
    ) {
        self.functions.push((name, Box::new(expansion)));
    }

    /// The lines that a file becomes, indented.
    pub(super) fn preprocess(&mut self, text: &str, indent: &str) -> Vec<String> {
        let mut lines = Vec::new();
        self.file(text, indent, &mut lines);
        lines
    }

    fn file(&mut self, text: &str, indent: &str, out: &mut Vec<String>) {
        // Of each open `#if`: whether its branch is taken, and whether one of its branches was.
        let mut open: Vec<(bool, bool)> = Vec::new();
        for line in text.lines() {
            let directive = line.trim_start();
            let own_indent = &line[..line.len() - directive.len()];
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            let is_taken = open.iter().all(|(is_taken, _)| *is_taken);
            match word {
                "#if" => {
                    let holds = self.holds(rest);
                    open.push((holds, holds));
                }
                "#elif" | "#else" => {
                    if let Some((is_taken, was_taken)) = open.last_mut() {
                        *is_taken = !*was_taken && (word == "#else" || self.holds(rest));
                        *was_taken |= *is_taken;
                    }
                }
                "#endif" => _ = open.pop(),
                _ if !is_taken => {}
                "" => out.push(String::new()),
                "#include" => {
                    if let Some((_, text)) = INCLUDED.iter().find(|(name, _)| *name == rest) {
                        self.file(text, &format!("{indent}{own_indent}"), out);
                    }
                }
                "#define" => {
                    let (name, meaning) = rest.split_once(' ').unwrap_or((rest, ""));
                    self.define(name, meaning);
                }
                "#pragma" if rest == "once" => {}
                "#pragma" => out.push(line.to_owned()),
                _ => self.line(&format!("{indent}{line}"), out),
            }
        }
    }

    /// Whether a condition holds: products of numbers that are compared, joined by `&&`.
    fn holds(&self, condition: &str) -> bool {
        condition.split(" && ").all(|comparison| {
            let mut words = comparison.split(' ');
            let (mut sides, mut operator) = ([1, 1], "!=");
            let mut side = 0;
            for word in words.by_ref() {
                match word {
                    "*" => {}
                    "==" | ">" => (operator, side) = (word, 1),
                    _ => sides[side] *= word.parse().unwrap_or_else(|_| self.number(word)),
                }
            }
            let [left, right] = sides;
            match operator {
                "==" => left == right,
                ">" => left > right,
                _ => left != 0,
            }
        })
    }

    /// A number by its name; what has none is 0, as in C.
    fn number(&self, name: &str) -> u32 {
        let all = self.numbers.iter().chain(&self.factors);
        all.into_iter().find(|(known, _)| *known == name).map_or(0, |(_, number)| *number)
    }

    fn line(&self, line: &str, out: &mut Vec<String>) {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if code.starts_with("//") {
            out.push(line.to_owned());
            return;
        }
        let lines = match self.whole_call(code) {
            Some(lines) => lines,
            None => alloc::vec![self.expand(code)],
        };
        out.extend(lines.iter().flat_map(|code| wrapped(indent, code)));
    }

    /// What a call that is the whole line becomes.
    fn whole_call(&self, code: &str) -> Option<Vec<String>> {
        let (name, rest) = code.split_at(end_of_name(code));
        let (_, expansion) = self.functions.iter().find(|(known, _)| *known == name)?;
        let (arguments, rest) = arguments(rest)?;
        (rest == ";").then(|| expansion(&self.expand_all(&arguments)))
    }

    fn expand_all(&self, arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|argument| self.expand(argument)).collect()
    }

    /// Code with its macros expanded.
    fn expand(&self, code: &str) -> String {
        let mut out = String::new();
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let length = end_of_name(rest);
            if length == 0 {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (name, after) = rest.split_at(length);
            rest = after;
            if let Some((_, expansion)) = self.functions.iter().find(|(known, _)| *known == name)
                && let Some((arguments, after)) = arguments(rest)
            {
                rest = after;
                // Behind the call comes the end of the statement.
                let lines = expansion(&self.expand_all(&arguments)).join(" ");
                out.push_str(lines.trim_end_matches(';'));
            } else if let Some((_, meaning)) = self.names.iter().find(|(known, _)| known == name) {
                out.push_str(&self.expand(meaning));
            } else if !self.factors.contains(&(name, 1)) {
                out.push_str(name);
            } else if out.ends_with(" * ") || out.ends_with(" / ") {
                out.truncate(out.len() - 3);
            } else if let Some(factor) = rest.strip_prefix(" * ") {
                rest = factor;
            } else {
                out.push('1');
            }
        }
        out
    }
}

/// The identifiers of a text, keywords among them, without those of its comments.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Whether statements that were written name something: what they do not is not defined for them.
/// Only the preprocessor knows that, by its text, since conditions and macros decide it.
pub(super) fn is_named(name: &str, statements: &[String]) -> bool {
    statements.iter().any(|line| identifiers(line).any(|word| word == name))
}

/// Bytes of the identifier that a text begins with; 0 if it does not.
fn end_of_name(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c: char| !is_of_name(c)).unwrap_or(text.len());
    // Numbers, their suffixes with them, are no names.
    if text.starts_with(|c: char| c.is_ascii_digit()) { 0 } else { end }
}

/// The arguments in parentheses that a text begins with, and what follows them.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let inner = text.strip_prefix('(')?;
    let (mut depth, mut from) = (0, 0);
    let mut arguments = Vec::new();
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                arguments.push(inner[from..at].trim());
                return Some((arguments, &inner[at + 1..]));
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// A line, or several where it is too long: what it assigns to stands before the others, which are
/// cut between arguments.
fn wrapped(indent: &str, code: &str) -> Vec<String> {
    let indent = if code.starts_with('#') { "" } else { indent };
    let mut rest = format!("{indent}{code}");
    let mut lines = Vec::new();
    let mut cut = rest.find(" = ").map(|at| at + " =".len());
    while rest.len() > MOST_COLUMNS
        && let Some(at) = cut
    {
        let further = format!("{indent}    {}", rest[at..].trim_start());
        rest.truncate(at);
        lines.push(core::mem::replace(&mut rest, further));
        let room = rest.get(..MOST_COLUMNS);
        cut = room.and_then(|room| room.rfind(", ")).map(|at| at + ",".len());
    }
    lines.push(rest);
    lines
}

/// One line.
pub(super) fn one(line: impl Into<String>) -> Vec<String> {
    alloc::vec![line.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preprocessed(text: &str, numbers: &[(&'static str, u32)]) -> String {
        let mut macros = Macros { factors: numbers.to_vec(), ..Macros::default() };
        macros.function("LOAD", |args| one(format!("__ldg({} + {})", args[0], args[1])));
        macros.function("STORE", |args| {
            alloc::vec![format!("const float v = {};", args[1]), format!("y[{}] = v;", args[0])]
        });
        macros.function("NOTHING", |_| Vec::new());
        macros.preprocess(text, "").join("\n")
    }

    #[test]
    fn branches_are_chosen_by_numbers() {
        let text = "#if A == 1\none\n#elif A * B > 4 && C\nmany\n#else\nfew\n#endif\nend";
        assert_eq!(preprocessed(text, &[("A", 1), ("B", 9)]), "one\nend");
        assert_eq!(preprocessed(text, &[("A", 2), ("B", 3), ("C", 1)]), "many\nend");
        assert_eq!(preprocessed(text, &[("A", 2), ("B", 3)]), "few\nend");
        let nested = "#if A\n#if B\nboth\n#else\none\n#endif\n#else\n#if B\nother\n#endif\n#endif";
        assert_eq!(preprocessed(nested, &[("A", 1)]), "one");
        assert_eq!(preprocessed(nested, &[("B", 1)]), "other");
    }

    #[test]
    fn a_number_that_is_1_drops_out() {
        let text = "a / A * B + i * A;\nf(A * B, A);\n#define C A * 2\nx * C;";
        let folded = "a * B + i;\nf(B, 1);\nx * 2;";
        assert_eq!(preprocessed(text, &[("A", 1), ("B", 3)]), folded);
        let kept = "a / A * B + i * A;\nf(A * B, A);\nx * A * 2;";
        assert_eq!(preprocessed(text, &[("A", 2), ("B", 3)]), kept);
    }

    #[test]
    fn macros_become_what_they_are_defined_as() {
        let text =
            "  v = LOAD(a, LOAD(b, f(i, 1)));\n  STORE(i, v[0]);\n  NOTHING(i);\n  // LOAD(a)";
        assert_eq!(
            preprocessed(text, &[]),
            "  v = __ldg(a + __ldg(b + f(i, 1)));\n  const float v = v[0];\n  y[i] = v;\n  // LOAD(a)"
        );
        // Without arguments it is a name like others.
        assert_eq!(preprocessed("LOAD", &[]), "LOAD");
    }

    #[test]
    fn includes_are_indented_and_unrolled_loops_are_left() {
        let text = "#pragma once\n#include \"types.cuh\"\nif (a) {\n  #include \"row_sum.cuh\"\n}";
        let lines = preprocessed(text, &[("LANES", 1)]);
        assert_eq!(
            lines,
            "if (a) {\n  if (position < row_count) {\n    const float v = sum;\n    \
             y[position] = v;\n  }\n}"
        );
    }

    #[test]
    fn long_lines_are_cut_behind_what_they_assign_to_and_between_arguments() {
        let long = format!("  value[u] = f({}, {});", "a".repeat(60), "b".repeat(40));
        let lines: Vec<String> = preprocessed(&long, &[]).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "  value[u] =");
        assert!(lines[1].starts_with("      f(aaa") && lines[1].ends_with("aa,"), "{lines:?}");
        assert!(lines[2].starts_with("      bbb") && lines[2].ends_with("b);"), "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}
