//! Arrays in dynamic shared memory, each far behind where it was: those that lay over others no
//! longer do.

use std::collections::BTreeSet;

use super::super::listing::{parts, words};
use super::super::words::{last_name, split_name};
use super::Change;

/// Bytes that an array is moved by.
pub(super) const APART: u32 = 1 << 15;

/// Changes that move an array which begins within dynamic shared memory, and those by which what is
/// added to anything counts elements of four bytes.
pub(super) fn apart(code: &str) -> Vec<Change> {
    let Some(begin) = code.find("extern __shared__") else { return Vec::new() };
    // Names of what shared memory is reached by.
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    let (mut from, mut head) = (begin, "");
    for (at, _) in code.match_indices([';', '{', '}']).filter(|(at, _)| *at > begin) {
        let Some(text) = code.get(from..at) else { return found };
        let start = std::mem::replace(&mut from, at + 1);
        let before = std::mem::replace(&mut head, text);
        if text.contains("extern") {
            known.insert(last_name(text.split('[').next().unwrap_or_default()));
            continue;
        }
        let names = |from, to| words(code, from..to).any(|(_, word)| known.contains(word));
        if !names(start, at) {
            continue;
        }
        let mut given = Vec::new();
        for (from, to) in parts(code, start, at) {
            let Some((declared, value)) = code.get(from..to).and_then(|of| of.split_once('='))
            else {
                continue;
            };
            let name = last_name(declared);
            if name.is_empty() || !names(to - value.len(), to) {
                continue;
            }
            given.push(name);
            let is_within = value.contains(['+', '[', '.']) || value.contains("->");
            if is_within && declared.contains('*') && !declared.contains("auto") {
                let new = format!(" (decltype({name}))((char*)({}) + {APART})", value.trim());
                let words = format!("{name} apart from what else is in shared memory");
                found.push(Change::of(to - value.len(), to, new, words));
            }
        }
        if given.is_empty() {
            given.push(last_name(before));
        }
        known.extend(given);
    }
    found.extend(code.match_indices("+=").filter_map(|(at, _)| in_bytes(code, at + 2)));
    found
}

/// What stands up to the semicolon, times four.
fn in_bytes(code: &str, from: usize) -> Option<Change> {
    let value = code.get(from..)?.split([';', '{', '}', ')', '(']).next()?;
    let (name, rest) = split_name(value.trim());
    let is_name = rest.is_empty() && name.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name.then(|| {
        let words = format!("4 * {name} instead of {name}");
        Change::of(from, from + value.len(), format!(" 4 * {name}"), words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_within_shared_memory_are_moved() {
        let code = "extern __shared__ char all[];\nint* a = (int*)all, n = 4;\nfloat* b = a + n;\n\
                    b += n;\nint c = b[0] + 1;\n";
        let all = apart(code).into_iter();
        let changes: Vec<(String, String)> =
            all.map(|mut of| (of.replacements.remove(0).new, of.words)).collect();
        let moved = " (decltype(b))((char*)(a + n) + 32768)";
        let expected = [
            (moved, "b apart from what else is in shared memory"),
            (" 4 * n", "4 * n instead of n"),
        ];
        assert_eq!(changes, expected.map(|(new, words)| (new.to_owned(), words.to_owned())));
        assert!(apart("__shared__ int a[2]; int* b = a + 1;").is_empty());
    }
}
