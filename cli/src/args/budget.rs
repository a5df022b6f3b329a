//! How much may be spent on measuring.

use std::time::Duration;

use sparserl_core::pipeline::Budget;

/// Reads `8` or `10s`.
pub(super) fn parse(text: &str) -> Result<Budget, String> {
    let error =
        || format!("`{text}` is no budget: give candidates, as in 8, or seconds, as in 10s");
    Ok(match text.strip_suffix('s') {
        Some(seconds) => {
            let seconds = seconds.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1e6);
            Budget::Time(Duration::from_secs_f64(seconds.ok_or_else(error)?))
        }
        None => {
            let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
            Budget::Candidates(count.ok_or_else(error)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_candidates_or_seconds() {
        assert_eq!(parse("8"), Ok(Budget::Candidates(8)));
        assert_eq!(parse("2.5s"), Ok(Budget::Time(Duration::from_millis(2500))));
        for wrong in ["", "0", "s", "-1s", "1001", "8.5", "nans", "infs", "1e9s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
