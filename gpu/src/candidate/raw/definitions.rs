//! Names that a source defines and its launch may use: macros, constants, enumerators, `dim3`
//! variables, functions that return an expression, names of types, and the kernel's own parameters.
//!
//! As a preprocessor does, a name is replaced by the text that it stands for.

use std::collections::BTreeMap;

use super::choose;
use super::launch::{elements, named_kernel, parenthesised};
use super::parameter::{Element, Kind, is_type, read_parameters};
use super::source::{Code, Function};
use super::template::Instance;
use super::words::{is_name, last_name, replaced, split_name, unqualified};

/// More than launches need: a text could be doubled again and again.
const MOST_REPLACED: usize = 256;
const LONGEST: usize = 4096;

/// What names stand for; those that are defined in several ways stand for nothing.
#[derive(Debug, Default)]
pub(super) struct Definitions(BTreeMap<String, Option<Definition>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    /// Of what is called; none of what is only named.
    parameters: Option<Vec<String>>,
    body: String,
}

impl Definitions {
    pub(super) fn of(code: &Code<'_>) -> Self {
        let mut found = Self::default();
        for (_, directive) in code.directives() {
            found.macro_of(directive);
        }
        for (statement, is_global) in code.statements() {
            // Constants within functions are not known where kernels are launched.
            if is_global {
                found.constant_of(statement);
                found.type_of(statement);
            }
            found.extents_of(statement);
        }
        for list in code.enumerations() {
            found.enumerators_of(list);
        }
        for (head, expression) in code.returned_expressions() {
            found.function_of(head, expression);
        }
        found
    }

    fn define(&mut self, name: &str, parameters: Option<Vec<String>>, body: String) {
        if is_word(name) {
            let definition = Some(Definition { parameters, body });
            let known = self.0.entry(name.to_owned()).or_insert_with(|| definition.clone());
            if *known != definition {
                *known = None;
            }
        }
    }

    /// `#define NAME body` or `#define NAME(a, b) body`.
    fn macro_of(&mut self, directive: &str) {
        let words = directive.trim_start_matches('#').trim_start();
        let Some(rest) = words.strip_prefix("define").filter(|rest| rest.starts_with([' ', '\t']))
        else {
            return;
        };
        let (name, rest) = split_name(rest.trim_start());
        let (parameters, body) = match parenthesised_first(rest) {
            Some((inside, body)) => (Some(names(inside)), body),
            None => (None, rest),
        };
        let body = body.split("/*").next().unwrap_or_default().replace(['\\', '\n', '\r'], " ");
        if !body.trim().is_empty() {
            self.define(name, parameters, body.trim().to_owned());
        }
    }

    /// `constexpr int NAME = expression`.
    fn constant_of(&mut self, statement: &str) {
        const KEPT: [&str; 8] = [
            "const",
            "constexpr",
            "static",
            "inline",
            "auto",
            "__device__",
            "__host__",
            "__constant__",
        ];
        let Some((declared, value)) = statement.split_once('=') else { return };
        let mut words: Vec<&str> = declared.split_whitespace().collect();
        let Some(name) = words.pop() else { return };
        let is_constant = words.iter().any(|&word| matches!(word, "const" | "constexpr"));
        let is_integer = words.iter().all(|word| {
            let is_float = matches!(*word, "float" | "double");
            KEPT.contains(word) || is_type(word) && !is_float
        });
        if is_constant && is_integer && !value.starts_with('=') && elements(value).len() == 1 {
            self.define(name, None, format!("({})", value.trim()));
        }
    }

    /// `NAME = expression` of an enumeration, or `NAME`, which is one more than the one before it.
    fn enumerators_of(&mut self, list: &str) {
        let mut next = "0".to_owned();
        for enumerator in elements(list) {
            let (name, value) = enumerator.split_once('=').unwrap_or((enumerator, &next));
            let (name, value) = (name.trim(), format!("({})", value.trim()));
            self.define(name, None, value);
            next = format!("{name} + 1");
        }
    }

    /// `typedef long long NAME` or `using NAME = long long`.
    fn type_of(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let type_of = |words: &[&str]| unqualified(&words.join(" "));
        match words.as_slice() {
            ["typedef", ty @ .., name] => self.define(name, None, type_of(ty)),
            ["using", name, "=", ty @ ..] => self.define(name, None, type_of(ty)),
            _ => {}
        }
    }

    /// The declarations of a kernel's parameters, with the types that names stand for and the
    /// arguments of a template.
    pub(super) fn declarations(
        &self,
        function: &Function<'_>,
        instance: Option<&Instance<'_>>,
    ) -> String {
        let text = function.parameters;
        let text = instance.map_or_else(|| text.to_owned(), |instance| instance.of_text(text));
        replaced(&text, &|word| {
            let stands_for = self.expanded(word);
            let mut words = stands_for.split_whitespace().peekable();
            let is_one =
                words.peek().is_some() && words.all(|word| is_type(word) || word == "const");
            (is_one && stands_for != word).then_some(stands_for)
        })
    }

    /// `dim3 NAME(x, y)`.
    fn extents_of(&mut self, statement: &str) {
        let statement = statement.trim();
        let statement = statement.strip_prefix("const ").unwrap_or(statement).trim_start();
        let Some(rest) =
            statement.strip_prefix("dim3").filter(|rest| rest.starts_with([' ', '\t']))
        else {
            return;
        };
        let (name, rest) = split_name(rest.trim_start());
        if let Some(inside) = parenthesised(rest.trim()) {
            self.define(name, None, format!("dim3({inside})"));
        }
    }

    /// `int NAME(int a, int b) { return expression; }`.
    fn function_of(&mut self, head: &str, expression: &str) {
        let Some((declared, parameters)) =
            head.trim_end().strip_suffix(')').and_then(|head| head.rsplit_once('('))
        else {
            return;
        };
        let name = last_name(declared);
        let parameters = names(parameters);
        let body = replaced(expression, &|word| {
            parameters.iter().any(|parameter| parameter == word).then(|| format!("({word})"))
        });
        self.define(name, Some(parameters), format!("({})", body.trim()));
    }

    /// The text of a launch with what its names stand for. Among the sizes of a launch a parameter
    /// of the kernel stands for the number that it is given.
    pub(super) fn in_launch(&self, text: &str, functions: &[Function<'_>]) -> String {
        let split = || {
            let (kernel, rest) = text.split_once("<<<")?;
            let (configuration, rest) = rest.split_once(">>>")?;
            Some((kernel, configuration, rest))
        };
        let Some((kernel, configuration, rest)) = split() else { return text.to_owned() };
        let rest = self.expanded(rest);
        let listed = rest.trim().trim_end_matches(';').trim_end();
        let arguments = parenthesised(listed).map(elements).unwrap_or_default();
        let parameters = named_kernel(kernel).and_then(|(name, given)| {
            let function = choose(functions, name).ok()?;
            let instance = Instance::of(function, given, functions).ok()?;
            read_parameters(&self.declarations(function, instance.as_ref())).ok()
        });
        let mut known = self.0.clone();
        for (parameter, argument) in parameters.iter().flatten().zip(arguments) {
            let is_number = matches!(parameter.kind, Kind::Number(Element::Integer { .. }));
            if is_number && parameter.name != argument.trim() {
                let body = format!("({})", argument.trim());
                let definition = Definition { parameters: None, body };
                known.insert(parameter.name.clone(), Some(definition));
            }
        }
        format!("{kernel}<<<{}>>>{rest}", Self(known).expanded(configuration))
    }

    fn expanded(&self, text: &str) -> String {
        Expansion { known: &self.0, replaced: Vec::new(), left: MOST_REPLACED }.of(text)
    }
}

/// Replaces names by what they stand for.
struct Expansion<'d> {
    known: &'d BTreeMap<String, Option<Definition>>,
    /// Those that are being replaced, which stand for themselves, or that would go on for ever.
    replaced: Vec<&'d str>,
    /// How many more names may be replaced.
    left: usize,
}

impl<'d> Expansion<'d> {
    fn of(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (between, after) = rest.split_at(rest.find(is_name).unwrap_or(rest.len()));
            let (word, after) = split_name(after);
            rest = after;
            out.push_str(between);
            match self.standing_for(word, rest) {
                None => out.push_str(word),
                Some((name, body, behind)) => {
                    rest = behind;
                    self.replaced.push(name);
                    out.push_str(&self.of(&body));
                    self.replaced.pop();
                }
            }
            if out.len() > LONGEST {
                self.left = 0;
            }
        }
        out
    }

    /// What a word stands for that `rest` follows: its name, the text, and what of `rest` is left.
    fn standing_for<'t>(
        &mut self,
        word: &str,
        rest: &'t str,
    ) -> Option<(&'d str, String, &'t str)> {
        let known: &'d BTreeMap<_, _> = self.known;
        let (name, definition) = known.get_key_value(word)?;
        let Definition { parameters, body } = definition.as_ref()?;
        if self.left == 0 || self.replaced.contains(&name.as_str()) {
            return None;
        }
        let Some(parameters) = parameters else {
            self.left -= 1;
            return Some((name, body.clone(), rest));
        };
        let (inside, behind) = parenthesised_first(rest.trim_start())?;
        let arguments = elements(inside);
        if arguments.len() != parameters.len() {
            return None;
        }
        self.left -= 1;
        let arguments: Vec<String> = arguments.iter().map(|argument| self.of(argument)).collect();
        if self.left == 0 {
            return None;
        }
        Some((name, with_arguments(body, parameters, &arguments), behind))
    }
}

/// The body of a macro with arguments in the place of its parameters.
fn with_arguments(body: &str, parameters: &[String], arguments: &[String]) -> String {
    replaced(body, &|word| {
        let place = parameters.iter().position(|parameter| parameter == word)?;
        arguments.get(place).map(|argument| argument.trim().to_owned())
    })
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The last word of each part of a list: names of parameters.
fn names(list: &str) -> Vec<String> {
    elements(list).into_iter().map(|part| last_name(part).to_owned()).collect()
}

/// What stands between the parentheses that a text begins with, and what follows.
fn parenthesised_first(text: &str) -> Option<(&str, &str)> {
    text.starts_with('(').then(|| super::source::parenthesised(text)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The launch of the only kernel, with what its names stand for.
    fn launch(source: &str, text: &str) -> String {
        let code = Code::read(source);
        let functions = code.kernels();
        Definitions::of(&code).in_launch(text, &functions)
    }

    #[test]
    fn names_stand_for_what_the_source_says() {
        let kernel =
            "__global__ void k(const float* x, float* y, int n, float alpha) { int row = 1; }";
        for (defined, configuration, expected) in [
            ("", "n, n * 2", "(num_rows), (num_rows) * 2"),
            ("", "alpha, row, num_rows", "alpha, row, num_rows"),
            ("#define B 256 // threads", "B, B1, aB", "256, B1, aB"),
            ("# define B 256 /* threads */", "B", "256"),
            (
                "#define UP(a, b) ((a + b - 1) / b)",
                "UP(n, 32), UP",
                "(((num_rows) + 32 - 1) / 32), UP",
            ),
            (
                "#define UP(a, b) ((a) / (b))\n#define B 8",
                "UP(UP(n, B), 2)",
                "(((((num_rows)) / (8))) / (2))",
            ),
            ("constexpr int B = 1 << 3, C = 4;", "B, C", "B, C"),
            ("static constexpr unsigned int B = 1 << 3;", "B", "(1 << 3)"),
            ("const int B = 9;", "B", "(9)"),
            ("void f() { const int x = 9; }", "x", "x"),
            ("int B = 8; const float C = 1; const int* D = 0;", "B, C, D", "B, C, D"),
            ("int up(int a, int b) { return a / b; }", "up(n + 1, 2)", "(((num_rows) + 1) / (2))"),
            ("void f() { dim3 grid(n / 8, 2); }", "grid, 8", "dim3((num_rows) / 8, 2), 8"),
            // Twice alike is once, twice otherwise is not clear, and nothing goes on for ever.
            ("#define B 8\n#define B 8\n#define C 1\n#define C 2", "B, C", "8, C"),
            ("#define B C\n#define C B", "B, C", "B, C"),
            ("/*\n#define B 8\n*/ const char* text = \"\\\n#define C 9\";", "B, C", "B, C"),
        ] {
            let source = format!("{defined}\n{kernel}");
            let text = format!("k<<<{configuration}>>>(x, y, num_rows, alpha)");
            let found = launch(&source, &text);
            assert_eq!(found, format!("k<<<{expected}>>>(x, y, num_rows, alpha)"), "{defined}");
        }
    }

    #[test]
    fn a_text_does_not_grow_beyond_reason() {
        let doubled = |i: usize| format!("#define A{} A{i} + A{i}\n", i + 1);
        let source: String = (0..60).map(doubled).collect();
        assert!(launch(&source, "k<<<A60, 1>>>").len() < 3 * LONGEST);
        let nested = format!("k<<<{}1{}, 1>>>", "D(".repeat(60), ")".repeat(60));
        for defined in ["#define D(x) x + x", "#define D(x) 1", "int D(int x) { return x + x; }"] {
            assert!(launch(defined, &nested).len() < 3 * LONGEST, "{defined}");
        }
    }
}
