//! Where in a result an epilogue is tried, and on what numbers.
//!
//! What is wrong far from the beginning, or for few numbers only, mostly shows at the ends, at
//! powers of two, or next to a number that the text itself names.

use std::collections::HashSet;

/// Places of a result that are tried, at most.
pub(super) const MOST_PLACES: usize = 8192;
/// Of these, that are chosen; the others are drawn at random, from all parts of the result.
const MOST_CHOSEN: usize = MOST_PLACES / 2;
/// Numbers of a text that are used.
const MOST_NAMED: usize = 64;

/// Numbers of all magnitudes, and what is none.
const MAGNITUDES: [f64; 17] = [
    0.0,
    1.0,
    f64::INFINITY,
    1e-3,
    1e3,
    1e6,
    f64::NAN,
    1e9,
    0.5,
    1e12,
    1e20,
    1e30,
    f32::MAX as f64,
    1e-20,
    // Subnormal in single precision.
    1e-40,
    1e300,
    f64::MAX,
];

/// Places of a result of so many rows and columns, as rows and columns, each once: all of a small
/// one.
pub(super) fn places(rows: usize, columns: usize, named: &[f64]) -> Vec<(u32, u32)> {
    if rows.saturating_mul(columns) <= MOST_PLACES {
        let all = (0..rows as u32).flat_map(|row| (0..columns as u32).map(move |n| (row, n)));
        return all.collect();
    }
    let (of_rows, of_columns) = (Axis::new(rows, named), Axis::new(columns, named));
    let pairs = |rows: &[u32], columns: &[u32]| -> Vec<(u32, u32)> {
        rows.iter().flat_map(|&row| columns.iter().map(move |&column| (row, column))).collect()
    };
    let at_columns = &of_columns.ends[..of_columns.ends.len().min(3)];
    let at_rows = &of_rows.ends[..of_rows.ends.len().min(3)];
    let chosen = [
        pairs(&of_rows.ends, &of_columns.ends),
        pairs(&of_rows.powers, at_columns),
        pairs(at_rows, &of_columns.powers),
        pairs(&of_rows.named, at_columns),
        pairs(at_rows, &of_columns.named),
        pairs(&of_rows.named, &of_columns.named),
    ];
    let mut seen = HashSet::new();
    let mut places: Vec<(u32, u32)> =
        chosen.into_iter().flatten().filter(|place| seen.insert(*place)).collect();
    places.truncate(MOST_CHOSEN);
    let mut random = fastrand::Rng::with_seed(rows as u64);
    let left = MOST_PLACES - places.len();
    for part in 0..left as u64 {
        let bound = |part: u64| part * rows as u64 / left as u64;
        let (first, end) = (bound(part), bound(part + 1));
        let row = random.u64(first..end.max(first + 1)) as u32;
        let place = (row, random.u64(0..columns as u64) as u32);
        if seen.insert(place) {
            places.push(place);
        }
    }
    places
}

/// Numbers that products are tried with, and their negatives.
pub(super) fn magnitudes(named: &[f64]) -> Vec<f64> {
    // Between two thresholds, and next to each.
    let mut sorted = named.to_vec();
    sorted.sort_by(f64::total_cmp);
    let between = sorted.windows(2).map(|pair| pair.iter().sum::<f64>() / 2.0);
    let step = 1.0 + 1e-6;
    let near = named.iter().flat_map(|&n| [n, n * step, n / step, n + 0.5, n + 1.0, n - 1.0]);
    let all = MAGNITUDES.into_iter().chain(between).chain(near);
    all.flat_map(|number| [number, -number]).collect()
}

/// The numbers that a text names.
pub(super) fn named(text: &str) -> Vec<f64> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_in_name = rest[..start].ends_with(is_of_name);
        // `.5` begins with its point.
        let start = start - usize::from(rest[..start].ends_with('.'));
        let token = token(&rest[start..]);
        rest = &rest[start + token.len().max(1)..];
        if let Some(number) = number(token).filter(|_| !is_in_name)
            && !numbers.contains(&number)
            && numbers.len() < MOST_NAMED
        {
            numbers.push(number);
        }
    }
    numbers
}

/// The number of C that a text begins with, with what is grown together with it.
fn token(text: &str) -> &str {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    let end = text.find(|c: char| {
        let is_sign = !is_hexadecimal && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        before = c;
        !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '\'') || is_sign)
    });
    &text[..end.unwrap_or(text.len())]
}

fn number(token: &str) -> Option<f64> {
    let digits = token.replace('\'', "");
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|number| number as f64),
        None => digits.trim_end_matches(['f', 'F']).parse().ok(),
    }
}

/// Numbers of rows or of columns.
struct Axis {
    /// At both ends and in the middle.
    ends: Vec<u32>,
    /// At powers of two.
    powers: Vec<u32>,
    /// At numbers that the text names.
    named: Vec<u32>,
}

impl Axis {
    fn new(size: usize, named: &[f64]) -> Self {
        let size = size as i64;
        let within = |around: Vec<i64>, beside: std::ops::RangeInclusive<i64>| -> Vec<u32> {
            let mut seen = HashSet::new();
            let all = around.into_iter().flat_map(|at| beside.clone().map(move |step| at + step));
            let there = all.filter(|at| (0..size).contains(at) && seen.insert(*at));
            there.map(|at| at as u32).collect()
        };
        let whole = |number: &f64| (*number < size as f64 + 2.0).then_some(*number as i64);
        Self {
            ends: within(
                vec![0, size - 1, size / 2, 1, size - 2, 2, size - 3, size / 2 - 1],
                0..=0,
            ),
            powers: within((1..33).map(|power| 1 << power).collect(), -1..=1),
            named: within(named.iter().filter_map(whole).collect(), -1..=1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_text_are_found() {
        let text = "if (row > 30000 && v2 < 1e6f) x[.5] = 0x1F; // 2.5e-3, 1'000u, a1.x, 30000";
        assert_eq!(named(text), [30000.0, 1e6, 0.5, 31.0, 2.5e-3, 1000.0]);
        assert_eq!(named("1..2 7é 0x 9e+ 8"), [7.0, 8.0]);
        assert_eq!(named(&"1 ".repeat(3)), [1.0]);
    }

    #[test]
    fn ends_powers_and_what_is_named_are_places() {
        let places = places(1_000_000, 512, &[41_237.0, 77.0, 1e9]);
        let seen: HashSet<_> = places.iter().copied().collect();
        assert!(places.len() == seen.len() && places.len() > MOST_PLACES * 9 / 10);
        for row in [0, 499_999, 500_000, 999_999, 65_535, 65_536, 65_537, 41_236, 41_237] {
            for column in [0, 511] {
                assert!(seen.contains(&(row, column)), "{row} {column}");
            }
        }
        assert!(seen.contains(&(41_237, 77)) && seen.contains(&(0, 128)));
        assert!(places.iter().all(|&(row, column)| row < 1_000_000 && column < 512));
        // Every part of the rows has some.
        let part = |row: u32| row / 1000;
        assert_eq!(places.iter().map(|&(row, _)| part(row)).collect::<HashSet<_>>().len(), 1000);
    }

    #[test]
    fn small_results_are_tried_as_a_whole() {
        for (rows, columns) in [(0, 1), (1, 1), (100, 3), (MOST_PLACES, 1)] {
            assert_eq!(places(rows, columns, &[2.0]).len(), rows * columns);
        }
        let largest = places(u32::MAX as usize, 1 << 20, &[]);
        assert!(largest.contains(&(u32::MAX - 1, (1 << 20) - 1)));
    }

    #[test]
    fn numbers_of_all_magnitudes_are_tried() {
        let numbers = magnitudes(&[1234.5, 2000.0]);
        let has = |wanted: f64| numbers.iter().any(|n| n.to_bits() == wanted.to_bits());
        assert!(
            [0.0, -0.0, f64::INFINITY, -f64::MAX, 1234.5, -1234.5, 1617.25].map(has) == [true; 7]
        );
        assert!(numbers.iter().any(|number| number.is_nan()));
    }
}
