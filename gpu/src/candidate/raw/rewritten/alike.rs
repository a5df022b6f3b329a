//! Numbers that stand in several places of a source and belong together: a width and its masks, and
//! numbers that are alike.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Number, Replacement, whole_numbers, whole_others};

/// Numbers that are changed where they are alike.
const MOST_ALIKE: usize = 12;
/// Lines that one number may stand in.
const MOST_LINES: usize = 6;

/// Changes of fields of words, and of numbers that are alike, each in all places at once.
pub(super) fn alike(code: &str, lines: &BTreeSet<u32>) -> Vec<Change> {
    let numbers = numbers(code, lines);
    let mut found = fields(&numbers);
    let mut same: BTreeMap<u64, Vec<&Placed<'_>>> = BTreeMap::new();
    for of in numbers.iter().filter(|of| of.number.value > 1) {
        same.entry(of.number.value).or_default().push(of);
    }
    let several = same.into_iter().filter(|(_, of)| {
        let lines: BTreeSet<u32> = of.iter().map(|number| number.line).collect();
        (2..=MOST_LINES).contains(&lines.len())
    });
    for (value, of) in several.take(MOST_ALIKE) {
        for other in whole_others(value) {
            let replacements = of.iter().map(|number| number.with(other)).collect();
            found.push(Change { replacements, words: format!("{other} instead of {value}") });
        }
    }
    found
}

/// A number of a source.
struct Placed<'s> {
    line: u32,
    /// Where the line begins.
    begin: usize,
    number: Number<'s>,
    /// Whether bits are moved by it.
    shifts: bool,
}

impl Placed<'_> {
    fn with(&self, other: u64) -> Replacement {
        self.number.with(other, self.begin)
    }
}

/// The whole numbers of some lines.
fn numbers<'s>(code: &'s str, lines: &BTreeSet<u32>) -> Vec<Placed<'s>> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (line, text) in (1..).zip(code.split_inclusive('\n')) {
        if lines.contains(&line) {
            found.extend(whole_numbers(text).into_iter().map(|number| {
                let before = text.get(..number.from).unwrap_or_default().trim_end();
                let shifts = before.ends_with("<<") || before.ends_with(">>");
                Placed { line, begin, number, shifts }
            }));
        }
        begin += text.len();
    }
    found
}

/// Changes of the width of a field: of what bits are moved by and of masks.
fn fields(numbers: &[Placed<'_>]) -> Vec<Change> {
    let widths = numbers.iter().filter(|of| of.shifts).map(|of| of.number.value);
    let widths: BTreeSet<u64> = widths.filter(|width| (2..31).contains(width)).collect();
    let mut found = Vec::new();
    for width in widths {
        for other in [width + 1, width + 2, width - 1, width * 2] {
            let mask = |width: u64| (1_u64 << width) - 1;
            let replacement = |of: &Placed<'_>| {
                if of.shifts {
                    (of.number.value == width).then(|| of.with(other))
                } else {
                    (of.number.value == mask(width)).then(|| of.with(mask(other)))
                }
            };
            let replacements: Vec<Replacement> = numbers.iter().filter_map(replacement).collect();
            if replacements.len() > 1 {
                found.push(Change {
                    replacements,
                    words: format!("{other} bits instead of {width}"),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_and_masks_change_together() {
        let code = "w = r << 6 | c & 63u;\na = w & 63u;\nb = w >> 6;\n";
        let all = alike(code, &BTreeSet::from([1, 2, 3]));
        let first = all.first().unwrap();
        assert_eq!(first.words, "7 bits instead of 6");
        let new: Vec<&str> = first.replacements.iter().map(|one| one.new.as_str()).collect();
        assert_eq!(new, ["7", "127u", "127u", "7"]);
        let masks = all.iter().find(|change| change.words == "127 instead of 63").unwrap();
        assert_eq!(masks.replacements.len(), 2);
        assert!(alike(code, &BTreeSet::new()).is_empty());
    }
}
