//! Namespaces of a source, told by what stands before braces.

use super::words::is_name;

/// Where the declaration or the body ends whose parameters a text follows.
pub(super) fn end_of_function(behind: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, mark) in behind.match_indices([';', '{', '}']) {
        match mark {
            "{" => depth += 1,
            "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The names of the namespace that a text before a brace opens, none of one without a name; nothing
/// where it opens something else. What `extern "C"` encloses (what stands in quotes is blank) is as
/// in a namespace that adds nothing to a name.
pub(super) fn namespace(text: &str) -> Option<Vec<&str>> {
    let text = text.trim();
    if text == "extern" {
        return Some(vec![""]);
    }
    let names =
        text.strip_prefix("inline").unwrap_or(text).trim_start().strip_prefix("namespace")?;
    let names: Vec<&str> = names.split("::").map(str::trim).filter(|n| !n.is_empty()).collect();
    names.iter().all(|name| name.chars().all(is_name)).then_some(names)
}

/// The braces that are open at places of a code, of which each is behind the one before: a source
/// may have a million kernels.
pub(super) struct Braces<'c> {
    code: &'c str,
    /// Up to where it was looked through.
    seen: usize,
    /// Behind the last brace or semicolon.
    from: usize,
    open: Vec<Option<Vec<&'c str>>>,
}

impl<'c> Braces<'c> {
    pub(super) fn of(code: &'c str) -> Self {
        Self { code, seen: 0, from: 0, open: Vec::new() }
    }

    /// What the braces before a place belong to that are not closed there: the names of a
    /// namespace, or nothing that is one.
    pub(super) fn around(&mut self, at: usize) -> &[Option<Vec<&'c str>>] {
        let unseen = self.code.get(self.seen..at).unwrap_or_default();
        for (place, mark) in unseen.match_indices([';', '{', '}']) {
            let place = self.seen + place;
            let text = self.code.get(self.from..place).unwrap_or_default();
            self.from = place + 1;
            match mark {
                "{" => self.open.push(namespace(text)),
                "}" => drop(self.open.pop()),
                _ => {}
            }
        }
        self.seen = self.seen.max(at);
        &self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_around_places_are_those_that_are_open_there() {
        let code = "int x; namespace a { namespace { void f() { x; } int y; } int z; }";
        let mut braces = Braces::of(code);
        let mut around = |word: &str| {
            let at = code.find(word).unwrap();
            let found = braces.around(at).to_vec();
            assert_eq!(Braces::of(code).around(at), found, "{word}");
            found
        };
        assert_eq!(around("namespace a"), []);
        assert_eq!(around("void"), [Some(vec!["a"]), Some(vec![])]);
        assert_eq!(around("x; }"), [Some(vec!["a"]), Some(vec![]), None]);
        assert_eq!(around("y;"), [Some(vec!["a"]), Some(vec![])]);
        assert_eq!(around("z;"), [Some(vec!["a"])]);
    }

    #[test]
    fn braces_are_told_by_what_stands_before_them() {
        for (text, names) in [
            ("namespace a", Some(vec!["a"])),
            (" inline namespace a::b ", Some(vec!["a", "b"])),
            ("namespace", Some(vec![])),
            ("extern    ", Some(vec![""])),
            ("namespace a = b", None),
            ("struct namespaces", None),
            ("void f()", None),
        ] {
            assert_eq!(namespace(text), names, "{text}");
        }
    }

    #[test]
    fn functions_end_with_their_bodies() {
        for (behind, end) in
            [(";{}", Some(1)), (" { { ; } } }", Some(10)), (" {", None), ("}", None), ("", None)]
        {
            assert_eq!(end_of_function(behind), end, "{behind}");
        }
    }
}
