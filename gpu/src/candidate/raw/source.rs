//! Finding kernels in a source, without a compiler.

use super::namespaces::{Braces, end_of_function, namespace};
use super::rule_error::RuleError;
use super::words::{integers, is_name};

/// Lines that a launch comment goes on for, at most.
const MOST_LINES: usize = 100;
const GLOBAL: &str = "__global__";
const STATIC: &str = "static";
/// Stands before parameters that a device function may not have so.
const GRID_CONSTANT: &str = "__grid_constant__";

/// A source, with what is no code out of the way.
#[derive(Debug)]
pub(super) struct Code<'s> {
    source: &'s str,
    /// As long as the source: comments, directives, and what stands in quotes are blank; all is
    /// ASCII.
    pub(super) code: String,
    comments: Vec<Comment<'s>>,
    /// Where directives begin and end.
    directives: Vec<(usize, usize)>,
}

/// A `//` comment.
#[derive(Debug)]
struct Comment<'s> {
    /// Behind its slashes.
    text: &'s str,
    from: usize,
    to: usize,
}

/// A `__global__` function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function<'c> {
    pub(super) name: &'c str,
    /// The namespaces that it is in, from the outermost on, but for those without a name.
    pub(super) namespaces: Vec<&'c str>,
    /// What stands between the parentheses.
    pub(super) parameters: &'c str,
    pub(super) is_defined: bool,
    /// What stands between the angle brackets of a template.
    pub(super) template: Option<Template<'c>>,
    /// Such as `__launch_bounds__(256)`, and where.
    pub(super) attributes: Vec<(usize, &'c str)>,
    /// Where `__global__` stands.
    at: usize,
    /// Where its declaration begins, when `extern "C"` belongs there.
    linkage: Option<usize>,
    /// Where its declaration or body ends, when the innermost namespace that it is in has no name:
    /// nothing there can be found from outside.
    hidden_until: Option<usize>,
}

/// A template that a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template<'c> {
    /// With these parameters.
    Of(&'c str),
    /// With parameters that are not understood.
    Unclear,
}

impl Function<'_> {
    /// Its name behind those of its namespaces.
    pub(super) fn qualified(&self) -> String {
        self.namespaces.iter().map(|name| format!("{name}::")).collect::<String>() + self.name
    }

    /// Whether both declare one kernel.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.namespaces == other.namespaces
    }
}

impl<'s> Code<'s> {
    pub(super) fn read(source: &'s str) -> Self {
        let bytes = source.as_bytes();
        let mut blanker = Blanker { bytes, at: 0, code: Vec::new(), directives: Vec::new() };
        let comments = blanker.run().into_iter().filter_map(|(from, to)| {
            let text = source.get(from..to)?;
            Some(Comment { text, from, to })
        });
        let comments = comments.collect();
        // ASCII, so nothing is lost.
        let code = String::from_utf8_lossy(&blanker.code).into_owned();
        Self { source, code, comments, directives: blanker.directives }
    }

    /// Texts of the directives, from `#` on, each behind where it begins.
    pub(super) fn directives(&self) -> impl Iterator<Item = (usize, &'s str)> {
        self.directives.iter().filter_map(|&(from, to)| Some((from, self.source.get(from..to)?)))
    }

    /// What stands before each semicolon, from the semicolon or brace before it, and whether that
    /// is outside of all braces but those of namespaces.
    pub(super) fn statements(&self) -> impl Iterator<Item = (&str, bool)> {
        let (mut open, mut from) = (Vec::new(), 0);
        self.code.match_indices([';', '{', '}']).filter_map(move |(at, mark)| {
            let text = self.code.get(from..at)?;
            from = at + 1;
            match mark {
                "{" => open.push(namespace(text).is_some()),
                "}" => drop(open.pop()),
                _ => return Some((text, !open.contains(&false))),
            }
            None
        })
    }

    /// What stands between the braces of each enumeration whose names need no other before them,
    /// outside of all braces but those of namespaces.
    pub(super) fn enumerations(&self) -> impl Iterator<Item = &str> {
        let mut braces = Braces::of(&self.code);
        self.code.match_indices('{').filter_map(move |(at, _)| {
            let mut words = self.before(at).rsplit([';', '{', '}']).next()?.split_whitespace();
            let is_unscoped =
                words.next() == Some("enum") && !matches!(words.next(), Some("class" | "struct"));
            let is_global = is_unscoped && braces.around(at).iter().all(Option::is_some);
            is_global.then(|| self.after(at + 1).split('}').next())?
        })
    }

    /// Functions that only return an expression: what stands before the body, and the expression.
    pub(super) fn returned_expressions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.code.match_indices('{').filter_map(|(at, _)| {
            let body = self.after(at + 1).trim_start().strip_prefix("return")?;
            let (expression, behind) = body.split_once(';')?;
            let ends = behind.trim_start().starts_with('}');
            let returns = ends && !expression.starts_with(is_name);
            returns.then_some((self.before(at), expression))
        })
    }

    /// The integers that it has as numbers, in code and directives.
    pub(super) fn integers(&self) -> impl Iterator<Item = u64> {
        let directives = self.directives().map(|(_, text)| text);
        std::iter::once(self.code.as_str()).chain(directives).flat_map(integers)
    }

    /// Whether there are comments and directives only.
    pub(super) fn is_blank(&self) -> bool {
        self.code.trim().is_empty()
    }

    /// The text after `// launch:`, with the comments on the next lines until its parentheses and
    /// angle brackets are closed.
    pub(super) fn launch_comment(&self) -> Result<Option<(String, u32)>, RuleError> {
        let opening = |comment: &Comment<'s>| {
            let text = comment.text.trim_start_matches(['/', '!', '<']).trim_start();
            let (word, rest) = text.split_at_checked("launch".len())?;
            let is_launch = word.eq_ignore_ascii_case("launch");
            rest.trim_start().strip_prefix(':').filter(|_| is_launch)
        };
        let mut found = None;
        for (index, comment) in self.comments.iter().enumerate() {
            let Some(text) = opening(comment) else { continue };
            let mut whole = text.trim().to_owned();
            let mut following = self.following(index).take(MOST_LINES);
            while !is_closed(&whole)
                && let Some(next) = following.next()
            {
                whole.push(' ');
                whole.push_str(next.trim());
            }
            let before = self.source.get(..comment.from).unwrap_or_default();
            let line = before.matches('\n').count() as u32 + 1;
            if found.replace((whole, line)).is_some() {
                return Err(RuleError::Several);
            }
        }
        Ok(found)
    }

    /// The program that a comment holds: what stands behind its word `program:`, and the next
    /// comments as far as they are indented.
    pub(super) fn program_comment(&self) -> Option<String> {
        self.comments.iter().enumerate().find_map(|(index, comment)| {
            let marks = ["program:", "Program:"];
            let (_, first) = marks.iter().find_map(|mark| comment.text.split_once(mark))?;
            let lines = self.following(index).take_while(|text| text.starts_with("   "));
            let lines = std::iter::once(first).chain(lines).map(str::trim);
            let lines = lines.skip_while(|line| line.is_empty());
            let program: String = lines.map(|line| format!("{line}\n")).collect();
            program.starts_with("sparserl ").then_some(program)
        })
    }

    /// The texts of the comments on the lines behind a comment, as long as each is alone on the
    /// next line.
    fn following(&self, index: usize) -> impl Iterator<Item = &'s str> {
        let comments = self.comments.get(index..).unwrap_or_default();
        let is_next = move |pair: &&[Comment<'s>]| {
            let [one, next] = pair else { return false };
            let between = self.source.get(one.to..next.from).unwrap_or_default();
            between
                .strip_prefix('\n')
                .is_some_and(|indent| indent.trim_matches([' ', '\t']) == "//")
        };
        comments.windows(2).take_while(is_next).filter_map(|pair| Some(pair.last()?.text))
    }

    /// All `__global__` functions, in their order.
    pub(super) fn kernels(&self) -> Vec<Function<'_>> {
        let places = self.code.match_indices(GLOBAL).map(|(at, _)| at);
        let is_word = |&at: &usize| self.is_word(at, GLOBAL);
        let mut braces = Braces::of(&self.code);
        places.filter(is_word).filter_map(|at| self.function(at, &mut braces)).collect()
    }

    /// The source with `extern "C"` before every declaration of a kernel that lacks it, in the
    /// place of `static`, with which it does not go.
    pub(super) fn with_c_linkage(
        &self,
        functions: &[Function<'_>],
        kernel: &Function<'_>,
    ) -> String {
        let mut out = String::with_capacity(self.source.len() + 16);
        let mut copied = 0;
        let same = functions.iter().filter(|function| function.is_same(kernel));
        for function in same {
            let Some(at) = function.linkage else { continue };
            if let Some(text) = self.source.get(copied..at) {
                out.push_str(text);
                // A namespace without a name is left for as long as the kernel is.
                out.push_str(if function.hidden_until.is_some() { "} " } else { "" });
                out.push_str("extern \"C\" ");
                copied = at;
            }
            if let Some(at) = self.storage_class(at, function.at)
                && let Some(text) = self.source.get(copied..at)
            {
                out.push_str(text);
                copied = at + STATIC.len();
            }
            if let Some(end) = function.hidden_until
                && let Some(text) = self.source.get(copied..end)
            {
                out.push_str(text);
                out.push_str(" namespace {");
                copied = end;
            }
        }
        out.push_str(self.source.get(copied..).unwrap_or_default());
        out
    }

    /// Where `static` stands in a declaration that begins somewhere, with `__global__` behind that.
    fn storage_class(&self, begin: usize, global: usize) -> Option<usize> {
        let end = global + self.after(global).find('(')?;
        let head = self.code.get(begin..end)?;
        let mut places = head.match_indices(STATIC).map(|(at, _)| begin + at);
        places.find(|&at| self.is_word(at, STATIC))
    }

    /// Whether a text that stands somewhere is a word there, and no part of one.
    fn is_word(&self, at: usize, text: &str) -> bool {
        !self.before(at).ends_with(is_name) && !self.after(at + text.len()).starts_with(is_name)
    }

    /// The source with every declaration of a kernel as that of a device function, which is part of
    /// whoever calls it. Instances that it asks for are left out.
    pub(super) fn as_device_function(
        &self,
        functions: &[Function<'_>],
        kernel: &Function<'_>,
    ) -> String {
        let same = functions.iter().filter(|function| function.is_same(kernel));
        let mut edits: Vec<(usize, usize, &str)> = Vec::new();
        for function in same {
            edits.push((function.at, GLOBAL.len(), "__device__ __forceinline__"));
            edits.extend(function.attributes.iter().map(|&(from, text)| (from, text.len(), "")));
            let declared = self.after(function.at);
            let end = declared.find(['{', ';']).unwrap_or(declared.len());
            let constants = declared.get(..end).unwrap_or_default().match_indices(GRID_CONSTANT);
            edits.extend(constants.map(|(at, word)| (function.at + at, word.len(), "")));
        }
        edits.extend(self.instances(kernel.name).map(|(from, length)| (from, length, "")));
        edits.sort_unstable();
        let (mut out, mut copied) = (String::with_capacity(self.source.len() + 256), 0);
        for (from, length, by) in edits {
            out.push_str(self.source.get(copied..from).unwrap_or_default());
            out.push_str(by);
            let left_out = self.source.get(from..from + length).unwrap_or_default();
            // Lines keep their numbers.
            out.extend(left_out.matches('\n'));
            copied = from + length;
        }
        out.push_str(self.source.get(copied..).unwrap_or_default());
        out
    }

    /// Where `template __global__ void NAME<…>(…)` stands, without its semicolon.
    fn instances(&self, name: &str) -> impl Iterator<Item = (usize, usize)> {
        self.heads_naming(name).filter_map(|(from, text)| {
            let asks = text.strip_prefix("template")?.trim_start().starts_with(GLOBAL);
            asks.then_some((from, text.strip_suffix(';')?.len()))
        })
    }

    /// Whether there is a `template <> __global__ void NAME<…>(…)`.
    pub(super) fn has_specialization(&self, name: &str) -> bool {
        self.heads_naming(name).any(|(_, text)| {
            let empty = |text: &str| {
                let behind = text.strip_prefix("template")?.trim_start().strip_prefix('<')?;
                Some(behind.trim_start().starts_with('>'))
            };
            empty(text).unwrap_or(false) && text.contains(GLOBAL)
        })
    }

    /// What stands before a semicolon or brace and has a name among its words: where it begins, and
    /// the text, with what ends it.
    fn heads_naming(&self, name: &str) -> impl Iterator<Item = (usize, &str)> {
        let parts = self.code.split_inclusive([';', '{', '}']).scan(0, |end, part| {
            let from = *end;
            *end += part.len();
            Some((from, part))
        });
        let heads = parts.map(|(from, part)| {
            let text = part.trim_start();
            (from + part.len() - text.len(), text)
        });
        heads.filter(move |(_, text)| text.split(|c| !is_name(c)).any(|word| word == name))
    }

    /// Whether a function stands within braces that are not those of namespaces.
    pub(super) fn is_enclosed(&self, function: &Function<'_>) -> bool {
        Braces::of(&self.code).around(function.at).contains(&None)
    }

    fn before(&self, at: usize) -> &str {
        self.code.get(..at).unwrap_or_default()
    }

    fn after(&self, at: usize) -> &str {
        self.code.get(at..).unwrap_or_default()
    }

    /// The function whose `__global__` stands at `at`.
    fn function<'c>(&'c self, at: usize, braces: &mut Braces<'c>) -> Option<Function<'c>> {
        let before = self.before(at);
        let begin = before.rfind([';', '{', '}']).map_or(0, |separator| separator + 1);
        let specifiers = before.get(begin..).unwrap_or_default();
        let indent = specifiers.len() - specifiers.trim_start().len();
        let has_word = |word| specifiers.split(|c| !is_name(c)).any(|other| other == word);
        let quoted = self.source.get(begin..at).unwrap_or_default();
        let has_linkage = has_word("extern") && quoted.contains("\"C\"");

        let mut rest = self.after(at + GLOBAL.len());
        let mut attributes = attributes_in(specifiers, begin);
        loop {
            rest = rest.trim_start();
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let after = after.trim_start();
            if word.is_empty() {
                return None;
            }
            if !after.starts_with('(') {
                rest = after;
                continue;
            }
            let (inside, behind) = parenthesised(after)?;
            // Such as __launch_bounds__(256).
            if word.starts_with("__") {
                let text = rest.get(..rest.len() - behind.len()).unwrap_or_default();
                attributes.push((self.code.len() - rest.len(), text));
                rest = behind;
                continue;
            }
            let around = braces.around(at);
            let is_hidden = around.last().is_some_and(|of| of.as_ref().is_some_and(Vec::is_empty));
            let names = around.iter().flatten().flatten().filter(|name| !name.is_empty());
            let end = || Some(self.code.len() - behind.len() + end_of_function(behind)?);
            return Some(Function {
                name: word,
                namespaces: names.copied().collect(),
                hidden_until: if is_hidden { end() } else { None },
                parameters: inside,
                is_defined: behind.trim_start().starts_with('{'),
                template: template(specifiers),
                attributes,
                at,
                linkage: (!has_linkage).then_some(begin + indent),
            });
        }
    }
}

/// The last template in a text that stands before a function.
fn template(text: &str) -> Option<Template<'_>> {
    let (_, behind) = text.rsplit_once("template")?;
    let parameters = || {
        let list = behind.trim_start().strip_prefix('<')?;
        // A shift opens nothing.
        let has_shift = list.contains("<<");
        let mut depth = 1_usize;
        let end = list.find(|c| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        list.get(..end?).filter(|_| !has_shift)
    };
    Some(parameters().map_or(Template::Unclear, Template::Of))
}

/// Attributes such as `__launch_bounds__(256)` in a text, and where: it begins at `begin`.
fn attributes_in(text: &str, begin: usize) -> Vec<(usize, &str)> {
    let words = text.match_indices("__").filter_map(|(at, _)| {
        let (before, word) = text.split_at_checked(at)?;
        let name = word.find(|c| !is_name(c))?;
        let list = word.get(name..)?.trim_start();
        let (_, behind) = parenthesised(list).filter(|_| !before.ends_with(is_name))?;
        Some((begin + at, word.get(..word.len() - behind.len())?))
    });
    words.collect()
}

/// Splits a text that begins with `(` into what is inside and what follows.
pub(super) fn parenthesised(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(1..at)?, text.get(at + 1..)?));
        }
    }
    None
}

/// Whether every parenthesis that a launch opens is closed in it, and its angle brackets are.
fn is_closed(text: &str) -> bool {
    let all_closed =
        |open: &str, close: &str| text.matches(open).count() <= text.matches(close).count();
    all_closed("(", ")") && all_closed("<<<", ">>>")
}

/// Copies a source with blanks for all that is no code.
struct Blanker<'b> {
    bytes: &'b [u8],
    at: usize,
    code: Vec<u8>,
    directives: Vec<(usize, usize)>,
}

impl Blanker<'_> {
    /// Runs to the end; gives where the texts of `//` comments begin and end.
    fn run(&mut self) -> Vec<(usize, usize)> {
        let mut comments = Vec::new();
        let mut line_begins = true;
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'/', Some(b'/')) => {
                    let from = self.at + 2;
                    self.blank_line(false);
                    comments.push((from, self.at));
                }
                (b'/', Some(b'*')) => self.blank_until(2, b"*/"),
                (b'#', _) if line_begins => {
                    let from = self.at;
                    self.blank_line(true);
                    self.directives.push((from, self.at));
                }
                (b'"', _) if self.is_raw_string() => self.raw_string(),
                (b'"', _) => self.quoted(b'"'),
                // Not what separates digits.
                (b'\'', _) if !self.code.last().is_some_and(u8::is_ascii_alphanumeric) => {
                    self.quoted(b'\'');
                }
                _ => {
                    self.code.push(if byte.is_ascii() { byte } else { b'?' });
                    self.at += 1;
                    line_begins = byte == b'\n' || line_begins && byte.is_ascii_whitespace();
                    continue;
                }
            }
        }
        comments
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            let Some(byte) = self.peek(0) else { return };
            self.code.push(if byte == b'\n' { b'\n' } else { b' ' });
            self.at += 1;
        }
    }

    /// Blanks to the end of the line, which a backslash or, in a directive, a comment may carry
    /// over.
    fn blank_line(&mut self, is_directive: bool) {
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1), self.peek(2)) {
                (b'\n', ..) => return,
                (b'\\', Some(b'\n'), _) => self.blank(2),
                (b'\\', Some(b'\r'), Some(b'\n')) => self.blank(3),
                (b'/', Some(b'/'), _) if is_directive => return,
                (b'/', Some(b'*'), _) if is_directive => self.blank_until(2, b"*/"),
                _ => self.blank(1),
            }
        }
    }

    /// Blanks `opening` bytes and on to the end of `closing`.
    fn blank_until(&mut self, opening: usize, closing: &[u8]) {
        self.blank(opening);
        while self.at < self.bytes.len() {
            if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(closing)) {
                return self.blank(closing.len());
            }
            self.blank(1);
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.blank(1);
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.blank(2),
                // An unclosed quote ends with its line.
                b'\n' => return,
                _ => {
                    self.blank(1);
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }

    fn is_raw_string(&self) -> bool {
        let prefix =
            self.code.iter().rev().take_while(|c| c.is_ascii_alphanumeric() || **c == b'_');
        let prefix: Vec<u8> = prefix.copied().collect();
        matches!(prefix.as_slice(), b"R" | b"Ru" | b"RU" | b"RL" | b"R8u")
    }

    fn raw_string(&mut self) {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().take(17).position(|&byte| byte == b'(') else {
            return self.quoted(b'"');
        };
        let mut closing = vec![b')'];
        closing.extend_from_slice(rest.get(..length).unwrap_or_default());
        closing.push(b'"');
        self.blank_until(length + 2, &closing);
    }
}
