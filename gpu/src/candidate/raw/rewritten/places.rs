//! Elements, dimensions and quotients that are taken elsewhere than a line says.

use std::collections::BTreeSet;

use super::super::listing::words;
use super::super::words::split_name;
use super::Change;

/// Bytes that an index may take.
const LONGEST_INDEX: usize = 60;

/// Changes of a line that starts there: of x to y and back, of elements to their neighbours.
pub(super) fn elsewhere(line: &str, begin: usize) -> Vec<Change> {
    let mut found: Vec<Change> = dimensions(line, begin).into_iter().collect();
    for (open, _) in line.match_indices('[') {
        let Some(index) = index_of(line, open + 1) else { continue };
        let from = begin + open + 1;
        found.extend(["+ 1", "- 1"].map(|beside| {
            let words = format!("[{index} {beside}] instead of [{index}]");
            Change::of(from, from + index.len(), format!("({index}) {beside}"), words)
        }));
    }
    found
}

/// What stands between brackets, unless that is a number or a declared size.
fn index_of(line: &str, from: usize) -> Option<&str> {
    let rest = line.get(from..)?;
    let mut depth = 0_usize;
    for (at, mark) in rest.char_indices() {
        match mark {
            '[' => depth += 1,
            ']' if depth == 0 => {
                let index = rest.get(..at)?;
                let is_of_name =
                    |(_, word): (usize, &str)| !word.starts_with(|c: char| c.is_ascii_digit());
                let has_name = words(index, 0..index.len()).any(is_of_name);
                return (has_name && index.len() <= LONGEST_INDEX).then_some(index);
            }
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The numbers of threads and blocks along x and along y the other way round.
fn dimensions(line: &str, begin: usize) -> Option<Change> {
    let is_special = |owner: &str| ["Idx", "Dim"].iter().any(|end| owner.ends_with(end));
    let (mut new, mut done, mut seen) = (String::new(), 0, BTreeSet::new());
    for (at, word) in words(line, 0..line.len()) {
        let other = match word {
            "x" => "y",
            "y" => "x",
            _ => continue,
        };
        let owner = line.get(..at).and_then(|before| before.strip_suffix('.'));
        if owner.is_some_and(is_special) {
            new += line.get(done..at)?;
            new += other;
            done = at + word.len();
            seen.insert(word);
        }
    }
    new += line.get(done..)?;
    let words = "x and y of threads and blocks the other way round".to_owned();
    (seen.len() > 1).then(|| Change::of(begin, begin + line.len(), new, words))
}

/// Changes of quotients, and of bits that are moved down, to quotients by what a remainder
/// elsewhere in the source is of: which round of a ring it is goes with which place in it.
pub(super) fn quotients(code: &str, line: &str, begin: usize) -> Vec<Change> {
    let after = |at: usize| {
        let (name, _) = split_name(code.get(at..).unwrap_or_default().trim_start());
        (!name.is_empty()).then_some(name)
    };
    let rings: BTreeSet<&str> =
        code.match_indices('%').filter_map(|(at, _)| after(at + 1)).take(2).collect();
    let mut found = Vec::new();
    for (sign, by) in [(">>", ""), ("/", ""), ("&", "% ")] {
        for (at, _) in line.match_indices(sign) {
            let from = at + sign.len();
            let rest = line.get(from..).unwrap_or_default();
            let (divisor, _) = split_name(rest.trim_start());
            let is_number = divisor.starts_with(|first: char| first.is_ascii_digit());
            let to = from + (rest.len() - rest.trim_start().len()) + divisor.len();
            let said = line.get(at..to).unwrap_or_default();
            for ring in rings.iter().filter(|ring| is_number && **ring != divisor) {
                let sign = if by.is_empty() { "/ " } else { by };
                let words = format!("{sign}{ring} instead of {}", said.trim());
                found.push(Change::of(begin + at, begin + to, format!("{sign}{ring}"), words));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(of: &[Change]) -> Vec<(&str, &str)> {
        of.iter().map(|of| (of.replacements[0].new.as_str(), of.words.as_str())).collect()
    }

    #[test]
    fn dimensions_and_elements_are_taken_elsewhere() {
        let swapped = elsewhere("threadIdx.x * blockDim.y + a.x;", 0);
        let words = "x and y of threads and blocks the other way round";
        assert_eq!(all(&swapped), [("threadIdx.y * blockDim.x + a.x;", words)]);
        let beside = elsewhere("a[i] = b[2];", 7);
        assert_eq!(beside[0].replacements[0].from, 9);
        let (plus, minus) = ("[i + 1] instead of [i]", "[i - 1] instead of [i]");
        assert_eq!(all(&beside), [("(i) + 1", plus), ("(i) - 1", minus)]);
    }

    #[test]
    fn quotients_go_with_remainders() {
        let code = "stage = t % STAGES;\nround = t >> 1;\n";
        let changes = quotients(code, "round = t >> 1;\n", 20);
        assert_eq!(all(&changes), [("/ STAGES", "/ STAGES instead of >> 1")]);
    }
}
