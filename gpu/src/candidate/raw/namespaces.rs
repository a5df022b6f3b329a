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

#[cfg(test)]
mod tests {
    use super::*;

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
