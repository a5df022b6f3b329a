//! Numbers that stand in several places of a source and belong together: a width and its masks, and
//! numbers that are alike.

use std::collections::{BTreeMap, BTreeSet};

use super::super::words::{integers, is_name};
use super::{Change, Place, whole_others};

/// Numbers that are changed where they are alike.
const MOST_ALIKE: usize = 12;
/// Lines that one number may stand in.
const MOST_LINES: usize = 6;

/// Changes of fields of words, and of numbers that are alike, each in all places at once.
pub(super) fn alike(code: &str, lines: &BTreeSet<u32>) -> Vec<Change> {
    let numbers = numbers(code, lines);
    let mut found = fields(&numbers);
    let mut same: BTreeMap<u64, Vec<&Number<'_>>> = BTreeMap::new();
    for number in numbers.iter().filter(|number| number.value > 1) {
        same.entry(number.value).or_default().push(number);
    }
    let several = same.into_iter().filter(|(_, of)| {
        let lines: BTreeSet<u32> = of.iter().map(|number| number.line).collect();
        (2..=MOST_LINES).contains(&lines.len())
    });
    for (value, of) in several.take(MOST_ALIKE) {
        for other in whole_others(value) {
            let places = of.iter().map(|number| number.with(other)).collect();
            found.push(Change { places, words: format!("{other} instead of {value}") });
        }
    }
    found
}

/// A number of a source.
struct Number<'s> {
    value: u64,
    line: u32,
    from: usize,
    word: &'s str,
    /// Whether bits are moved by it.
    shifts: bool,
}

impl Number<'_> {
    fn with(&self, other: u64) -> Place {
        let digits = self.word.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = self.word.get(digits.len()..).unwrap_or_default();
        Place { from: self.from, to: self.from + self.word.len(), new: format!("{other}{suffix}") }
    }
}

/// The whole numbers of some lines.
fn numbers<'s>(code: &'s str, lines: &BTreeSet<u32>) -> Vec<Number<'s>> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (line, text) in (1..).zip(code.split_inclusive('\n')) {
        let mut at = 0;
        while let Some(from) = text.get(at..).and_then(|rest| rest.find(is_name)) {
            let from = at + from;
            let rest = text.get(from..).unwrap_or_default();
            let end = rest.find(|c: char| !is_name(c) && c != '.').unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            at = from + end.max(1);
            let is_number = word.starts_with(|first: char| first.is_ascii_digit());
            let value = integers(word).next().filter(|_| is_number && !word.contains('.'));
            if let Some(value) = value.filter(|_| lines.contains(&line)) {
                let before = text.get(..from).unwrap_or_default().trim_end();
                let shifts = before.ends_with("<<") || before.ends_with(">>");
                found.push(Number { value, line, from: begin + from, word, shifts });
            }
        }
        begin += text.len();
    }
    found
}

/// Changes of the width of a field: of what bits are moved by and of masks.
fn fields(numbers: &[Number<'_>]) -> Vec<Change> {
    let widths = numbers.iter().filter(|number| number.shifts).map(|number| number.value);
    let widths: BTreeSet<u64> = widths.filter(|width| (2..31).contains(width)).collect();
    let mut found = Vec::new();
    for width in widths {
        for other in [width + 1, width + 2, width - 1, width * 2] {
            let mask = |width: u64| (1_u64 << width) - 1;
            let place = |number: &Number<'_>| {
                if number.shifts {
                    (number.value == width).then(|| number.with(other))
                } else {
                    (number.value == mask(width)).then(|| number.with(mask(other)))
                }
            };
            let places: Vec<Place> = numbers.iter().filter_map(place).collect();
            if places.len() > 1 {
                found.push(Change { places, words: format!("{other} bits instead of {width}") });
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
        let new: Vec<&str> = first.places.iter().map(|place| place.new.as_str()).collect();
        assert_eq!(new, ["7", "127u", "127u", "7"]);
        let masks = all.iter().find(|change| change.words == "127 instead of 63").unwrap();
        assert_eq!(masks.places.len(), 2);
        assert!(alike(code, &BTreeSet::new()).is_empty());
    }
}
