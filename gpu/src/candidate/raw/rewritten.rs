//! A source with one thing said otherwise, where what the compiler makes of it does not show what:
//! macros and arguments of templates are gone, and constants are folded into others.

mod alike;
mod arrays;
mod places;
mod types;

use std::collections::BTreeSet;

use super::RawKernel;
use super::listing::{Lines, parts, words};
use super::source::{Code, parenthesised};
use super::words::{integers, is_name, last_name, split_name};

/// Bytes that the arguments of a template may take.
const LONGEST_ARGUMENTS: usize = 160;

/// Bytes that the arguments of a function may take.
const LONGEST_CALL: usize = 60;
/// Changes of a kind that are no numbers.
const MOST_OF_A_KIND: usize = 8;

/// Members that one is replaced by.
const MOST_MEMBERS: usize = 3;

/// A source with a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rewritten {
    /// The lines that are changed, or that it is about.
    pub(crate) lines: BTreeSet<u32>,
    /// What is changed to what, in words.
    pub(crate) change: String,
    /// All of the source.
    pub(crate) text: String,
    /// Bytes of dynamic shared memory that it takes in addition.
    pub(crate) shared: u32,
}

impl RawKernel {
    /// Sources to compile in which an array in dynamic shared memory lies elsewhere, a type has
    /// more bits, or what a function gives is taken with or without what it was given, likewise.
    pub(crate) fn with_other_forms(&self) -> impl Iterator<Item = Rewritten> {
        let code = Code::read(&self.written).code;
        let apart = rewritten(&self.written, arrays::apart(&code)).take(MOST_OF_A_KIND);
        let apart = apart.map(|of| Rewritten { shared: arrays::APART, ..of });
        let wider =
            rewritten(&self.written, types::widened(&self.written, &code)).take(MOST_OF_A_KIND);
        let calls = rewritten(&self.written, calls_changed(&code)).take(MOST_OF_A_KIND);
        self.compilable(apart.chain(wider).chain(calls))
    }

    /// Sources to compile in which one definition says something else, each made when it is asked
    /// for.
    pub(crate) fn with_other_definitions(&self) -> impl Iterator<Item = Rewritten> {
        self.compilable(definitions(&self.written))
    }

    /// Sources to compile in which an expression of some lines says something else, likewise.
    pub(crate) fn with_other_expressions(
        &self,
        lines: &BTreeSet<u32>,
    ) -> impl Iterator<Item = Rewritten> {
        self.compilable(expressions(&self.written, lines))
    }

    fn compilable(&self, all: impl Iterator<Item = Rewritten>) -> impl Iterator<Item = Rewritten> {
        let before = self.source.strip_suffix(self.written.as_str()).unwrap_or_default();
        all.map(move |of| Rewritten { text: format!("{before}{}", of.text), ..of })
    }
}

/// What is put in the place of parts of a source.
struct Change {
    /// In order.
    replacements: Vec<Replacement>,
    words: String,
}

/// What is put in the place of one part.
struct Replacement {
    from: usize,
    to: usize,
    new: String,
}

impl Change {
    fn of(from: usize, to: usize, new: String, words: String) -> Self {
        Self { replacements: vec![Replacement { from, to, new }], words }
    }

    /// Names what begins there, too, and leaves it as it is.
    fn and_about(mut self, places: impl IntoIterator<Item = usize>) -> Self {
        let about = |from| Replacement { from, to: from, new: String::new() };
        self.replacements.extend(places.into_iter().map(about));
        self.replacements.sort_by_key(|one| one.from);
        self
    }

    /// A text with that in the place of what was there.
    fn text(&self, source: &str) -> Option<String> {
        let (mut text, mut done) = (String::new(), 0);
        for Replacement { from, to, new } in &self.replacements {
            text += source.get(done..*from)?;
            text += new;
            done = *to;
        }
        text += source.get(done..)?;
        Some(text)
    }
}

/// Sources in which definitions say something else: of macros, of constants, of what templates
/// are given.
fn definitions(source: &str) -> impl Iterator<Item = Rewritten> {
    let code = Code::read(source);
    let mut changes: Vec<Change> = Vec::new();
    for (at, directive) in code.directives() {
        changes.extend(with_parentheses(directive, at));
    }
    changes.extend(arguments_swapped(&code.code));
    for (at, directive) in code.directives() {
        if directive.trim_start_matches('#').trim_start().starts_with("define") {
            changes.extend(numbers_changed(directive, at));
        }
    }
    for (from, to) in constants(&code.code) {
        changes.extend(
            code.code.get(from..to).map(|text| numbers_changed(text, from)).unwrap_or_default(),
        );
    }
    rewritten(source, changes)
}

/// Sources in which some lines say something else: other numbers that belong together first, then
/// each another number, another element or another member.
fn expressions<'s>(
    source: &'s str,
    lines: &BTreeSet<u32>,
) -> impl Iterator<Item = Rewritten> + use<'s> {
    let code = Code::read(source);
    let all: BTreeSet<&str> = members(&code.code).map(|(_, word)| word).collect();
    let mut changes = alike::alike(&code.code, lines);
    let (mut of_numbers, mut of_members) = (Vec::new(), Vec::new());
    let mut begin = 0;
    for (number, line) in (1..).zip(code.code.split_inclusive('\n')) {
        if lines.contains(&number) {
            of_members.extend(members_changed(line, begin, &all));
            of_numbers.extend(places::quotients(&code.code, line, begin));
            of_numbers.extend(numbers_changed(line, begin));
            of_members.extend(places::elsewhere(line, begin));
        }
        begin += line.len();
    }
    changes.extend(in_turn(of_numbers, of_members));
    rewritten(source, changes)
}

/// One of each in turn.
fn in_turn<T>(some: Vec<T>, others: Vec<T>) -> impl Iterator<Item = T> {
    let (mut some, mut others) = (some.into_iter(), others.into_iter());
    std::iter::from_fn(move || {
        std::mem::swap(&mut some, &mut others);
        others.next().or_else(|| some.next())
    })
}

fn rewritten(source: &str, changes: Vec<Change>) -> impl Iterator<Item = Rewritten> {
    let lines = Lines::of(source);
    let one = move |change: Change| {
        let text = change.text(source)?;
        let lines = change.replacements.iter().map(|one| lines.of_place(one.from)).collect();
        Some(Rewritten { lines, change: change.words, text, shared: 0 })
    };
    changes.into_iter().filter_map(one)
}

/// A macro with parameters whose expression, and each parameter in it, is in parentheses.
fn with_parentheses(directive: &str, at: usize) -> Option<Change> {
    let define = directive.find("define")? + "define".len();
    let rest = directive.get(define..)?;
    let (name, behind) = split_name(rest.trim_start());
    let list = behind.strip_prefix('(')?;
    let (parameters, body) = list.split_once(')')?;
    let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let body = body.trim();
    let is_expression = !body.is_empty() && !body.contains([';', '{', '#', '"']);
    if name.is_empty() || !is_expression {
        return None;
    }
    let mut new = String::from("(");
    let mut done = 0;
    for (place, word) in words(body, 0..body.len()) {
        if parameters.contains(&word) {
            new += body.get(done..place)?;
            new += &format!("({word})");
            done = place + word.len();
        }
    }
    new += body.get(done..)?;
    new.push(')');
    let from = directive.rfind(body)?;
    let words = format!("parentheses around {name} and its parameters");
    Some(Change::of(at + from, at + from + body.len(), new, words))
}

/// Arguments of templates, two neighbours the other way round.
fn arguments_swapped(code: &str) -> Vec<Change> {
    let mut found = Vec::new();
    for (at, word) in words(code, 0..code.len()) {
        let open = at + word.len();
        let is_list = code.get(open..).is_some_and(|rest| rest.starts_with('<'));
        if !is_list || word == "template" {
            continue;
        }
        let end = (open + LONGEST_ARGUMENTS).min(code.len());
        let Some(close) = code.get(open..end).and_then(closing).map(|end| open + end) else {
            continue;
        };
        let arguments = parts(code, open + 1, close);
        for pair in arguments.windows(2) {
            let [(first, first_end), (second, second_end)] = *pair else { continue };
            let texts = [code.get(first..first_end), code.get(second..second_end)];
            let [Some(one), Some(other)] = texts.map(|text| text.map(str::trim)) else { continue };
            if one != other && !one.is_empty() && !other.is_empty() {
                let (new, words) =
                    (format!("{other}, {one}"), format!("<{other}, {one}> for <{one}, {other}>"));
                found.push(Change::of(first, second_end, new, words));
            }
        }
    }
    found
}

/// Calls of functions of numbers, less and plus the first that they are given: a sum with that of
/// its own, and without.
fn calls_changed(code: &str) -> Vec<Change> {
    let heads = code.match_indices("__device__").filter_map(|(at, _)| {
        let head = code.get(at..)?.split(['(', ';', '{']).next()?;
        let gives_none = ["float", "double", "void", "half"].iter().any(|of| head.contains(of));
        let name = last_name(head);
        (!gives_none && !name.is_empty() && name != "__device__").then_some((at + head.len(), name))
    });
    let functions: Vec<(usize, &str)> = heads.collect();
    let mut found = Vec::new();
    for (at, word) in words(code, 0..code.len()) {
        let open = at + word.len();
        if !functions.iter().any(|&(head, name)| name == word && head != open) {
            continue;
        }
        let call = || {
            let room = code.floor_char_boundary(open + LONGEST_CALL + "()".len());
            let (inside, _) = parenthesised(code.get(open..room)?)?;
            let to = open + inside.len() + "()".len();
            let &(from, end) = parts(code, open + 1, to - 1).first()?;
            let first = code.get(from..end)?.trim();
            Some((to, code.get(at..to)?, first)).filter(|_| !first.is_empty())
        };
        let Some((to, call, first)) = call() else { continue };
        // What it gives is as wrong as what is taken of it.
        let head = functions.iter().find(|&&(_, name)| name == word).map(|&(head, _)| head);
        let given = head.and_then(|head| given_at(code, head));
        found.extend(["-", "+"].map(|sign| {
            let words = format!("{call} {sign} {first} instead of {call}");
            Change::of(at, to, format!("({call} {sign} ({first}))"), words).and_about(given)
        }));
    }
    found
}

/// Where the last `return` of a function is whose parameters begin there.
fn given_at(code: &str, head: usize) -> Option<usize> {
    let rest = code.get(head..)?;
    let (body, _) = rest.split_at(rest.find("\n}")?);
    Some(head + body.rfind("return ")?)
}

/// Where the angle brackets end that a text begins with, if they may be those of a template.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, mark) in text.char_indices() {
        match mark {
            '<' => depth += 1,
            '>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            ';' | '{' | '}' | '=' | '&' | '|' => return None,
            _ => {}
        }
    }
    None
}

/// Definitions of constants, and of what parameters are when they are not given.
fn constants(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut begin = 0;
    for line in code.split_inclusive('\n') {
        let is_constant = ["constexpr", "const ", "template", "enum", "using", "typedef"];
        let is_default = || {
            let list = line.rfind('(').and_then(|at| line.get(at..));
            line.contains("__device__") && list.is_some_and(|list| list.contains(" = "))
        };
        if is_constant.iter().any(|word| line.contains(word)) || is_default() {
            found.push((begin, begin + line.len()));
        }
        begin += line.len();
    }
    found
}

/// A whole number of a text.
struct Number<'s> {
    from: usize,
    digits: &'s str,
    /// What says its type.
    suffix: &'s str,
    value: u64,
}

impl Number<'_> {
    /// Another number in its place, in a text that begins there.
    fn with(&self, other: u64, begin: usize) -> Replacement {
        let from = begin + self.from;
        let to = from + self.digits.len() + self.suffix.len();
        Replacement { from, to, new: format!("{other}{}", self.suffix) }
    }
}

/// The whole numbers of a text.
fn whole_numbers(text: &str) -> Vec<Number<'_>> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(from) = text.get(at..).and_then(|rest| rest.find(|c: char| c.is_ascii_digit())) {
        let from = at + from;
        let rest = text.get(from..).unwrap_or_default();
        let end = rest.find(|c: char| !is_name(c) && c != '.');
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        at = from + word.len().max(1);
        let before = from.checked_sub(1).and_then(|before| bytes.get(before)).copied();
        if word.contains('.')
            || before.is_some_and(|before| is_name(before.into()) || before == b'.')
        {
            continue;
        }
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = word.get(digits.len()..).unwrap_or_default();
        if let Some(value) = integers(digits).next() {
            found.push(Number { from, digits, suffix, value });
        }
    }
    found
}

/// Other whole numbers in the place of those of a text.
fn numbers_changed(text: &str, begin: usize) -> Vec<Change> {
    let mut found = Vec::new();
    for number in whole_numbers(text) {
        found.extend(whole_others(number.value).into_iter().map(|other| Change {
            replacements: vec![number.with(other, begin)],
            words: format!("{other} instead of {}", number.digits),
        }));
    }
    found
}

/// Whole numbers that may have been meant instead of one.
fn whole_others(value: u64) -> Vec<u64> {
    let mut others = vec![value.checked_add(1), value.checked_sub(1)];
    if value > 1 {
        others.extend([value.checked_mul(2), Some(value / 2)]);
        // A mask of a bit more; elements of four bytes.
        let is_mask = value & value.wrapping_add(1) == 0;
        let scaled = if is_mask {
            value.checked_mul(2).and_then(|twice| twice.checked_add(1))
        } else {
            value.checked_mul(4)
        };
        others.push(scaled);
    }
    let mut known = BTreeSet::from([value]);
    others.into_iter().flatten().filter(|&other| known.insert(other)).collect()
}

/// Other members in the place of those that a line takes, of those that are taken anywhere.
fn members_changed(line: &str, begin: usize, all: &BTreeSet<&str>) -> Vec<Change> {
    let mut found = Vec::new();
    for (at, word) in members(line) {
        let others = all.iter().filter(|other| **other != word).take(MOST_MEMBERS);
        for other in others {
            let (from, words) = (begin + at, format!(".{other} instead of .{word}"));
            found.push(Change::of(from, from + word.len(), (*other).to_owned(), words));
        }
    }
    found
}

/// Members that are taken of variables which are no part of CUDA, and where.
fn members(code: &str) -> impl Iterator<Item = (usize, &str)> {
    words(code, 0..code.len()).filter(|&(at, word)| {
        let owner = code.get(..at).and_then(|before| before.strip_suffix('.'));
        let is_special = ["Idx", "Dim"].iter().any(|end| owner.is_some_and(|of| of.ends_with(end)));
        let behind = code.get(at + word.len()..).unwrap_or_default();
        owner.is_some()
            && !is_special
            && !behind.starts_with(['(', '<'])
            && !word.starts_with(|first: char| first.is_ascii_digit())
            && !owner.is_some_and(|of| of.ends_with(|last: char| last.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(of: &[Rewritten]) -> Vec<(u32, &str)> {
        let first = |of: &Rewritten| of.lines.first().copied().unwrap_or(0);
        of.iter().map(|of| (first(of), of.change.as_str())).collect()
    }

    #[test]
    fn definitions_are_said_otherwise() {
        let source = "#define SLOT(r, k) r * 32 + k\nusing Of = Tile<4, Rows>;\nint f();\n";
        let all: Vec<Rewritten> = definitions(source).collect();
        let first = all.first().unwrap();
        assert_eq!(first.change, "parentheses around SLOT and its parameters");
        assert!(first.text.starts_with("#define SLOT(r, k) ((r) * 32 + (k))\nusing"));
        assert_eq!(
            changes(&all)[1..],
            [
                (2, "<Rows, 4> for <4, Rows>"),
                (1, "33 instead of 32"),
                (1, "31 instead of 32"),
                (1, "64 instead of 32"),
                (1, "16 instead of 32"),
                (1, "128 instead of 32"),
                (2, "5 instead of 4"),
                (2, "3 instead of 4"),
                (2, "8 instead of 4"),
                (2, "2 instead of 4"),
                (2, "16 instead of 4"),
            ]
        );
    }

    #[test]
    fn sums_are_taken_with_and_without_what_they_were_given() {
        let code = "__device__ int scan(int v, int* s);\n__device__ float f(int);\n\
                    int a = scan(n + 1, s) + f(n);\n";
        let all = calls_changed(code);
        let new: Vec<&str> = all.iter().map(|of| of.replacements[0].new.as_str()).collect();
        assert_eq!(new, ["(scan(n + 1, s) - (n + 1))", "(scan(n + 1, s) + (n + 1))"]);
    }

    #[test]
    fn long_sources_are_not_copied_before_they_are_asked_for() {
        let source = format!("const int table[] = {{{}}};\n", "17, ".repeat(50_000));
        let first = definitions(&source).next().unwrap();
        assert_eq!((first.lines, first.text.len()), (BTreeSet::from([1]), source.len()));
    }

    #[test]
    fn expressions_are_said_otherwise() {
        let source = "a.x + threadIdx.x + a.y;\nb[1u] = f32(0.5f); // 7\n";
        let all: Vec<Rewritten> = expressions(source, &BTreeSet::from([1, 2])).collect();
        assert_eq!(
            changes(&all),
            [
                (2, "2 instead of 1"),
                (1, ".y instead of .x"),
                (2, "0 instead of 1"),
                (1, ".x instead of .y"),
            ]
        );
        assert_eq!(all[2].text, "a.x + threadIdx.x + a.y;\nb[0u] = f32(0.5f); // 7\n");
        assert_eq!(expressions(source, &BTreeSet::new()).count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", like in "[a-z0-9(){}<>;,.=x \n#]{0,60}") {
            for source in [text.as_str(), &like, &format!("#define f(a){like}\nf<1,{like}")] {
                definitions(source).count();
                expressions(source, &(0..9).collect()).count();
                calls_changed(source);
                types::widened(source, source);
                arrays::apart(&format!("extern __shared__ int a[];{source};{source}"));
            }
        }
    }
}
