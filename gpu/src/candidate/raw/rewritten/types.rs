//! Types of more bits in the place of narrow ones.

use std::collections::BTreeMap;

use super::super::listing::{Lines, words};
use super::Change;

/// A type with more bits, if a word is a narrow one.
fn wider(word: &str, has_double: bool) -> Option<&'static str> {
    match word {
        "char" | "short" | "int8_t" | "int16_t" => Some("int"),
        "uint8_t" | "uint16_t" | "uchar" | "ushort" => Some("unsigned"),
        "half" | "__half" | "__nv_bfloat16" => Some("float"),
        "float" => has_double.then_some("double"),
        _ => None,
    }
}

/// Changes of narrow types to wider ones: of one line each, and of one type everywhere. What is
/// behind a pointer keeps its size, and so do bytes that arrays are carved out of. `code` is as
/// long as the source, and blank where that is no code.
pub(super) fn widened(source: &str, code: &str) -> Vec<Change> {
    let has_double = words(code, 0..code.len()).any(|(_, word)| word == "double");
    let lines = Lines::of(code);
    let mut by_line: BTreeMap<u32, Vec<(usize, &str)>> = BTreeMap::new();
    let mut by_type: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    let (mut done, mut is_extern) = (0, false);
    for (at, word) in words(code, 0..code.len()) {
        let between = code.get(done..at).unwrap_or_default();
        done = at + word.len();
        is_extern &= !between.contains([';', '{', '}']);
        is_extern |= word == "extern";
        if wider(word, has_double).is_none() {
            continue;
        }
        let behind = code.get(done..).unwrap_or_default().trim_start();
        let is_kept =
            is_extern || between.trim_end().ends_with("::") || behind.starts_with(['*', '&', '(']);
        if !is_kept {
            by_line.entry(lines.of_place(at)).or_default().push((at, word));
            by_type.entry(word).or_default().push((at, word));
        }
    }
    let is_one_line = |places: &[(usize, &str)]| {
        let mut of = places.iter().map(|(at, _)| lines.of_place(*at));
        let first = of.next();
        of.all(|line| Some(line) == first)
    };
    let everywhere = by_type.into_values().filter(|places| !is_one_line(places));
    let all = by_line.into_values().chain(everywhere);
    let wider = all.filter_map(|places| replaced(source, &places, has_double));
    wider.chain(names_of_reals(code)).collect()
}

/// Changes of names that are given to whole numbers, to names of real ones.
fn names_of_reals(code: &str) -> impl Iterator<Item = Change> {
    code.match_indices("using ").filter_map(|(at, _)| {
        let (head, _) = code.get(at..)?.split_once(';')?;
        let (_, given) = head.split_once('=')?;
        let from = at + head.len() - given.len();
        let words = || format!("float instead of {}", given.trim());
        let is_whole = matches!(given.trim(), "int" | "unsigned" | "unsigned int" | "long long");
        is_whole.then(|| Change::of(from, at + head.len(), " float".to_owned(), words()))
    })
}

/// Wider types in some places.
fn replaced(source: &str, places: &[(usize, &str)], has_double: bool) -> Option<Change> {
    let (&(from, word), &(last, last_word)) = (places.first()?, places.last()?);
    let (mut new, mut done) = (String::new(), from);
    for (at, word) in places {
        new += source.get(done..*at)?;
        new += wider(word, has_double)?;
        done = at + word.len();
    }
    let words = format!("{} instead of {word}", wider(word, has_double)?);
    Some(Change::of(from, last + last_word.len(), new, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: &str = "float a;\ndouble b;\n";

    #[test]
    fn narrow_types_are_widened_line_by_line_and_everywhere() {
        let code = "extern __shared__ char memory[];\nunsigned char a;\n\
                    f((char)b, (float*)c);\nfloat d;\n";
        let of = |mut change: Change| {
            let first = change.replacements.remove(0);
            (first.from, first.new, change.words)
        };
        let all: Vec<(usize, String, String)> = widened(code, code).into_iter().map(of).collect();
        let of = |from, new: &str| (from, new.to_owned(), "int instead of char".to_owned());
        assert_eq!(all, [of(42, "int"), of(53, "int"), of(42, "int a;\nf((int")]);
        assert_eq!(widened(DOUBLE, DOUBLE).len(), 1);
    }
}
