//! Checks that the modules of a crate depend downwards only, and that none use one another in a
//! circle.
//!
//! Paths are found in the text of the sources, however they are written: `crate::a`, a `super` that
//! climbs to the root of the crate, groups in braces. Comments, strings and tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// Checks the crate in a folder of the repository against an order: its modules, each above
/// everything that it may use. Gives how many uses of modules were found.
///
/// # Errors
/// Names the file that uses a module above it, or a module without a place in the order.
pub fn check(folder: &str, order: &[&str]) -> Result<usize> {
    check_inside(folder, &[], order)
}

/// Checks the modules inside of a module of the crate, given by its path from the root, in the same
/// way.
///
/// # Errors
/// As [`check`].
pub fn check_inside(folder: &str, outer: &[&str], order: &[&str]) -> Result<usize> {
    let source = crate::root().join(folder).join("src");
    let (root, inside) = place_of(&source, outer);
    let root = fs::read_to_string(root)?;
    let declared: BTreeSet<String> = declared_modules(&root).into_iter().collect();
    let placed: BTreeSet<String> = order.iter().map(|&module| module.to_owned()).collect();
    ensure!(declared == placed, "{folder} has {declared:?}, and the order has {placed:?}");
    let mut uses = 0;
    for module in order {
        for path in files(&inside, module)? {
            let at = || path.display().to_string();
            let code = fs::read_to_string(&path).with_context(at)?;
            let place = module_path(&source, &path);
            let used = used_modules(&code, &place, outer).with_context(at)?;
            check_uses(order, module, &used).with_context(at)?;
            uses += used.len();
        }
    }
    Ok(uses)
}

/// Checks that no modules of a crate that stand beside each other use one another in a circle,
/// whatever they stand in: the root of the crate or a module. What a module takes from the one that
/// it stands in counts where that hands on what another module has. Gives how many uses were found.
///
/// # Errors
/// Names the modules of the first circle.
pub fn check_circles(folder: &str) -> Result<usize> {
    let source = crate::root().join(folder).join("src");
    let mut uses = 0;
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(outer) = open.pop() {
        let path = outer.join("::");
        let outer: Vec<&str> = outer.iter().map(String::as_str).collect();
        let graph = uses_inside(&source, &outer).with_context(|| format!("{folder}: {path}"))?;
        uses += graph.values().map(BTreeSet::len).sum::<usize>();
        open.extend(graph.keys().map(|module| {
            outer.iter().copied().chain([module.as_str()]).map(str::to_owned).collect()
        }));
        let circle = circle(graph);
        ensure!(circle.is_empty(), "{folder}: {path}: {circle:?} use one another");
    }
    Ok(uses)
}

/// The modules inside of an outer one, each with those beside it that it uses.
fn uses_inside(source: &Path, outer: &[&str]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let (root, inside) = place_of(source, outer);
    let root = fs::read_to_string(&root).with_context(|| root.display().to_string())?;
    // Some tests are compiled on further conditions.
    let declared = declared_modules(&root).into_iter();
    let modules: BTreeSet<String> = declared.filter(|module| module != "tests").collect();
    let handed_on = handed_on(&root);
    let mut graph = BTreeMap::new();
    for module in &modules {
        let mut used = BTreeSet::new();
        for path in files(&inside, module)? {
            let at = || path.display().to_string();
            let code = fs::read_to_string(&path).with_context(at)?;
            let names = used_modules(&code, &module_path(source, &path), outer).with_context(at)?;
            let beside = names.into_iter().filter_map(|name| match modules.contains(&name) {
                true => Some(name),
                // What the outer module defines itself belongs to none inside of it.
                false => handed_on.get(&name).filter(|from| modules.contains(*from)).cloned(),
            });
            used.extend(beside.filter(|name| name != module));
        }
        graph.insert(module.clone(), used);
    }
    Ok(graph)
}

/// Names that a module takes from one inside of it, or elsewhere, with where their paths begin.
fn handed_on(root: &str) -> BTreeMap<String, String> {
    let tokens = without_tests(&tokens(root));
    let mut names = BTreeMap::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| *token == "use") {
        let mut paths = Vec::new();
        read_paths(&tokens, at + 1, &mut Vec::new(), &mut paths);
        for UsedPath { words, name } in paths {
            if let Some(first) = words.into_iter().find(|word| word != "self") {
                names.insert(name, first);
            }
        }
    }
    names
}

/// What is left of modules when those that use no other, and those that no other uses, are taken
/// away until there are none: circles, and what lies between them.
fn circle(mut graph: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let used: BTreeSet<String> = graph.values().flatten().cloned().collect();
        let before = graph.len();
        graph.retain(|module, uses| !uses.is_empty() && used.contains(module));
        if graph.len() == before {
            return graph.into_keys().collect();
        }
        let left: BTreeSet<String> = graph.keys().cloned().collect();
        graph.values_mut().for_each(|uses| uses.retain(|module| left.contains(module)));
    }
}

/// The file of a module, or of the crate's root, and the folder with the modules inside.
fn place_of(source: &Path, outer: &[&str]) -> (PathBuf, PathBuf) {
    match outer.split_last() {
        None => {
            let library = source.join("lib.rs");
            let root = if library.exists() { library } else { source.join("main.rs") };
            (root, source.to_owned())
        }
        Some((last, above)) => {
            let above = source.join(above.iter().collect::<PathBuf>());
            (above.join(format!("{last}.rs")), above.join(last))
        }
    }
}

/// Checks the modules that some code of `module` uses.
fn check_uses(order: &[&str], module: &str, used: &[String]) -> Result<()> {
    let height = |name: &str| order.iter().position(|other| *other == name);
    for name in used {
        let below = height(name).with_context(|| format!("`{name}` is no module of the order"))?;
        ensure!(Some(below) <= height(module), "{module} uses {name}, which is above");
    }
    Ok(())
}

/// The files of a module, without tests.
fn files(source: &Path, module: &str) -> Result<Vec<PathBuf>> {
    let file = source.join(format!("{module}.rs"));
    let mut found: Vec<PathBuf> = file.is_file().then_some(file).into_iter().collect();
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    ensure!(!found.is_empty(), "there is no module {module}");
    Ok(found)
}

/// The modules that a file stands in, itself included.
fn module_path(source: &Path, file: &Path) -> Vec<String> {
    let below = file.strip_prefix(source).unwrap_or(file).with_extension("");
    below.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

/// The modules that a crate's root declares.
fn declared_modules(root: &str) -> Vec<String> {
    let tokens = without_tests(&tokens(root));
    let declared = tokens.windows(3).filter_map(|three| match three {
        [word, name, end] if word == "mod" && end == ";" => Some(name.clone()),
        _ => None,
    });
    declared.collect()
}

/// The modules inside of an outer one, or at the root of the crate, that the code of a module
/// names.
fn used_modules(code: &str, module: &[String], outer: &[&str]) -> Result<Vec<String>> {
    let tokens = without_tests(&tokens(code));
    let mut used = Vec::new();
    // Inline modules that are open, each with the depth of braces outside of it.
    let (mut inside, mut depth) = (Vec::new(), 0usize);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let next = tokens.get(at + 1).map(String::as_str);
        match token.as_str() {
            "mod" if tokens.get(at + 2).is_some_and(|brace| brace == "{") => inside.push(depth),
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if inside.last() == Some(&depth) {
                    inside.pop();
                }
            }
            "crate" | "super" | "self"
                if next == Some("::") && before.is_none_or(|before| before != "::") =>
            {
                // `pub(in crate::a)` takes in nothing.
                let is_visibility = before.is_some_and(|before| before == "in");
                // Parents between this place and the root.
                let parents = module.len() + inside.len();
                let mut paths = Vec::new();
                at = read_paths(&tokens, at, &mut Vec::new(), &mut paths);
                for path in paths {
                    match module_inside(outer, &path.words, parents) {
                        Err(_) if is_visibility => {}
                        inside => used.extend(inside?),
                    }
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(used)
}

/// The module inside of an outer one that a path leads to, from a place in it with so many
/// `parents`; `None` where it stays in its own, or leads elsewhere.
fn module_inside(outer: &[&str], path: &[String], parents: usize) -> Result<Option<String>> {
    let mut words = path.iter().map(String::as_str).skip_while(|word| *word == "self").peekable();
    // What is left of the place.
    let mut depth = parents;
    if words.next_if_eq(&"crate").is_some() {
        depth = 0;
    }
    while words.next_if_eq(&"super").is_some() {
        depth = depth.saturating_sub(1);
    }
    if depth > outer.len() {
        return Ok(None);
    }
    for module in &outer[depth..] {
        if words.next_if_eq(module).is_none() {
            return Ok(None);
        }
    }
    match words.next() {
        Some("*") | None => bail!("{} takes in all that is there", path.join("::")),
        Some(name) => Ok(Some(name.to_owned())),
    }
}

/// A path as it is written.
struct UsedPath {
    words: Vec<String>,
    /// What it is called from here on.
    name: String,
}

/// Reads the path that begins at a token, with all that its groups hold. Gives where it ends.
fn read_paths(
    tokens: &[String],
    mut at: usize,
    prefix: &mut Vec<String>,
    paths: &mut Vec<UsedPath>,
) -> usize {
    let outside = prefix.len();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while let Some(token) = tokens.get(at).filter(|token| *token != "}") {
                    if token == "," {
                        at += 1;
                    } else {
                        at = read_paths(tokens, at, prefix, paths);
                    }
                }
                at += 1;
                break;
            }
            Some(word) => prefix.push(word.to_owned()),
            None => break,
        }
        at += 1;
        if tokens.get(at).is_none_or(|token| token != "::") {
            let mut name = prefix.last().cloned().unwrap_or_default();
            // Another name for it.
            if tokens.get(at).is_some_and(|token| token == "as") {
                name = tokens.get(at + 1).cloned().unwrap_or(name);
                at += 2;
            }
            paths.push(UsedPath { words: prefix.clone(), name });
            break;
        }
        at += 1;
    }
    prefix.truncate(outside);
    at
}

/// Leaves out the items behind `#[cfg(test)]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        if rest.len() < mark.len()
            || rest.iter().zip(mark).any(|(token, mark)| token.as_str() != mark)
        {
            kept.push(token.clone());
            rest = after;
            continue;
        }
        let mut depth = 0usize;
        let end = rest.iter().position(|token| {
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (token == "}" || token == ";")
        });
        rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
    }
    kept
}

/// Words, `::` and single other characters; no comments and no literals.
fn tokens(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else {
            let length = match first {
                ':' if rest.starts_with("::") => 2,
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// Length of the string or character that a text begins with; `None` where it begins with none.
fn literal(text: &str) -> Option<usize> {
    let raw = text.strip_prefix("br").or_else(|| text.strip_prefix('r'));
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(inside) = raw[hashes..].strip_prefix('"') {
            let closing = format!("\"{}", "#".repeat(hashes));
            let begin = text.len() - inside.len();
            return Some(inside.find(&closing).map_or(text.len(), |at| begin + at + closing.len()));
        }
    }
    let quote = text.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            c if c == quote => return Some(at + 1),
            // A lifetime, which nothing closes.
            c if quote == '\'' && at > 1 && !text[1..].starts_with('\\') && c != quote => {
                return None;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(module: &str, code: &str) -> Vec<String> {
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        used_modules(code, &module, &[]).unwrap()
    }

    #[test]
    fn paths_are_found_however_they_are_written() {
        for (module, code, expected) in [
            ("a", "use crate::b::c;", &["b"][..]),
            ("a", "pub use crate::{b::{c, d}, e, f as g};", &["b", "b", "e", "f"]),
            ("a", "let x = crate::b::c() + super::d::e();", &["b", "d"]),
            ("a", "use super::b;", &["b"]),
            ("a", "use super::{b, c::*};", &["b", "c"]),
            ("a::x", "use super::y; use super::super::b;", &["b"]),
            ("a::x", "use super::{super::b, y};", &["b"]),
            ("a::x::y", "use super::{x, super::{super::b, z}};", &["b"]),
            ("a", "use self::x; use self::super::b;", &["b"]),
            ("a", "mod x { use super::y; use super::super::b; } use super::c;", &["b", "c"]),
            ("a", "pub(in crate::b::c) fn d() { $crate::e!() }", &["b", "e"]),
            ("a", "fn f(&self) { self.x(); Self::y(); super_::z() } mod crate_ {}", &[]),
            (
                "a",
                "// crate::b\n/* crate::c */ /// [d](crate::d)\nx('\"', \"crate::e\", 'c');",
                &[],
            ),
            (
                "a",
                "let c = '\\''; use crate::b; fn f<'a>(x: &'a str) -> &'a str { crate::c }",
                &["b", "c"],
            ),
            ("a", "let c = r#\"\" crate::b \"#; crate::c(b'\\\\', '\\n')", &["c"]),
        ] {
            assert_eq!(used(module, code), expected, "{code}");
        }
    }

    #[test]
    fn tests_use_what_they_like() {
        let code = "#[cfg(test)]\nmod tests { use crate::b; fn f() {} }\nuse crate::c;
            #[cfg(test)] mod tests;\n#[cfg(test)] pub(crate) use crate::d; use crate::e;";
        assert_eq!(used("a", code), ["c", "e"]);
    }

    #[test]
    fn what_is_above_is_told_from_what_is_below() {
        let check = |code: &str| check_uses(&["a", "b", "c"], "b", &used("b::x", code));
        assert!(check("use crate::a; use crate::b::y; use super::super::a;").is_ok());
        for (code, message) in [
            ("use crate::c;", "b uses c, which is above"),
            ("use super::super::c::z;", "b uses c, which is above"),
            ("use super::{super::{a, c}};", "b uses c, which is above"),
            ("use crate::Name;", "`Name` is no module of the order"),
        ] {
            assert_eq!(check(code).unwrap_err().to_string(), message, "{code}");
        }
        let all = ["a".to_owned()];
        assert!(used_modules("use crate::*;", &all, &[]).is_err());
        assert!(used_modules("use super::*;", &all, &[]).is_err());
    }

    #[test]
    fn modules_inside_of_a_module_are_told_from_others() {
        let module = ["a", "x"].map(str::to_owned);
        let used = |code: &str| used_modules(code, &module, &["a"]);
        let code =
            "use super::y; use crate::{a::z::C, b}; use super::super::{a::w, c}; use self::v;
            mod t { use super::u; use super::super::r; }";
        assert_eq!(used(code).unwrap(), ["y", "z", "w", "r"]);
        assert!(used("use super::*;").is_err());
        assert!(used("use crate::a::*;").is_err());
        assert!(used("pub(in crate::a) fn f() {}").unwrap().is_empty());
    }

    #[test]
    fn names_are_known_by_where_they_come_from() {
        let root = "pub use a::{B, c::D as E}; use self::f::G;\n#[cfg(test)] use h::I;";
        let expected = [("B", "a"), ("E", "a"), ("G", "f")];
        let expected = expected.map(|(name, from)| (name.to_owned(), from.to_owned()));
        assert_eq!(handed_on(root), BTreeMap::from(expected));
    }

    #[test]
    fn circles_are_told_from_what_leads_to_them_and_away() {
        let graph = |edges: &[(&str, &[&str])]| {
            let uses = |used: &[&str]| used.iter().map(|&module| module.to_owned()).collect();
            edges.iter().map(|&(module, used)| (module.to_owned(), uses(used))).collect()
        };
        let tree = [("a", &["b", "c"][..]), ("b", &["c"]), ("c", &[])];
        assert!(circle(graph(&tree)).is_empty());
        let knot =
            [("a", &["b"][..]), ("b", &["c"]), ("c", &["d", "e"]), ("d", &["b"]), ("e", &[])];
        assert_eq!(circle(graph(&knot)), ["b", "c", "d"]);
    }

    #[test]
    fn a_root_declares_its_modules() {
        let root = "//! mod x;\npub mod a;\nmod b;\n#[cfg(feature = \"c\")]\npub mod c;\nmod d {}\n\
             #[cfg(test)]\nmod tests;\n";
        assert_eq!(declared_modules(root), ["a", "b", "c"]);
    }
}
