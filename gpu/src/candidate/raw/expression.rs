//! Small expressions over a matrix's sizes.

use std::fmt;

use super::launch::{RuleError, Sizes};

/// Operators and pairs of parentheses, at most.
const MOST_PARTS: usize = 32;

/// An expression of non-negative integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Number(u64),
    Size(Size),
    Sum(Box<[Self; 2]>),
    Product(Box<[Self; 2]>),
    /// Rounded down, as in C++.
    Quotient(Box<[Self; 2]>),
    /// A quotient rounded up.
    Ceiling(Box<[Self; 2]>),
}

/// A size of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    NumRows,
    NumCols,
    Nnz,
    DenseCols,
    Blocks,
}

impl Size {
    const ALL: [Self; 5] = [Self::NumRows, Self::NumCols, Self::Nnz, Self::DenseCols, Self::Blocks];

    fn name(self) -> &'static str {
        match self {
            Self::NumRows => "num_rows",
            Self::NumCols => "num_cols",
            Self::Nnz => "nnz",
            Self::DenseCols => "dense_cols",
            Self::Blocks => "blocks",
        }
    }

    fn of(self, sizes: Sizes) -> Option<u64> {
        match self {
            Self::NumRows => Some(sizes.num_rows),
            Self::NumCols => Some(sizes.num_cols),
            Self::Nnz => Some(sizes.nnz),
            Self::DenseCols => Some(sizes.dense_cols),
            Self::Blocks => sizes.blocks,
        }
    }
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        let mut parser = Parser { text, rest: text, parts: 0 };
        let sum = parser.sum()?;
        if parser.rest.trim_start().is_empty() { Ok(sum) } else { Err(parser.unexpected()) }
    }

    /// Whether its value depends on a size.
    pub(super) fn depends_on(&self, size: Size) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Size(other) => *other == size,
            Self::Sum(pair) | Self::Product(pair) | Self::Quotient(pair) | Self::Ceiling(pair) => {
                pair.iter().any(|part| part.depends_on(size))
            }
        }
    }

    /// Its value; `None` when it does not fit 64 bits, divides by 0, or takes a size that there is
    /// none of.
    pub(super) fn value(&self, sizes: Sizes) -> Option<u64> {
        let both = |pair: &[Self; 2]| Some((pair[0].value(sizes)?, pair[1].value(sizes)?));
        match self {
            Self::Number(number) => Some(*number),
            Self::Size(size) => size.of(sizes),
            Self::Sum(pair) => both(pair).and_then(|(a, b)| a.checked_add(b)),
            Self::Product(pair) => both(pair).and_then(|(a, b)| a.checked_mul(b)),
            Self::Quotient(pair) => both(pair).and_then(|(a, b)| a.checked_div(b)),
            Self::Ceiling(pair) => {
                both(pair).and_then(|(a, b)| if b == 0 { None } else { Some(a.div_ceil(b)) })
            }
        }
    }
}

impl fmt::Display for Expression {
    /// With parentheses around everything that has parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Size(size) => f.write_str(size.name()),
            Self::Sum(pair) => write!(f, "({} + {})", pair[0], pair[1]),
            Self::Product(pair) => write!(f, "({} * {})", pair[0], pair[1]),
            Self::Quotient(pair) => write!(f, "({} / {})", pair[0], pair[1]),
            Self::Ceiling(pair) => write!(f, "ceil({} / {})", pair[0], pair[1]),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    parts: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Expression, RuleError> {
        let mut sum = self.product()?;
        while self.take('+') {
            sum = Expression::Sum(Box::new([sum, self.product()?]));
            self.count()?;
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Expression, RuleError> {
        let mut product = self.atom()?;
        loop {
            if self.take('*') {
                product = Expression::Product(Box::new([product, self.atom()?]));
            } else if self.take('/') {
                product = Expression::Quotient(Box::new([product, self.atom()?]));
            } else {
                return Ok(product);
            }
            self.count()?;
        }
    }

    fn atom(&mut self) -> Result<Expression, RuleError> {
        if self.take('(') {
            return self.closed();
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word_end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(word_end);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse().map_err(|_| self.unexpected())?;
            self.rest = rest;
            return Ok(Expression::Number(number));
        }
        if let Some(size) = Size::ALL.into_iter().find(|size| size.name() == word) {
            self.rest = rest;
            return Ok(Expression::Size(size));
        }
        if word == "ceil" {
            self.rest = rest;
            if !self.take('(') {
                return Err(self.unexpected());
            }
            // All else is whole as it is.
            return Ok(match self.closed()? {
                Expression::Quotient(pair) => Expression::Ceiling(pair),
                whole => whole,
            });
        }
        Err(self.unexpected())
    }

    /// The rest of a parenthesised expression.
    fn closed(&mut self) -> Result<Expression, RuleError> {
        self.count()?;
        let sum = self.sum()?;
        if self.take(')') { Ok(sum) } else { Err(self.unexpected()) }
    }

    /// Counts one more part: that bounds the depth of the tree, and with it that of the recursions
    /// over it.
    fn count(&mut self) -> Result<(), RuleError> {
        self.parts += 1;
        if self.parts <= MOST_PARTS { Ok(()) } else { Err(self.unexpected()) }
    }

    fn take(&mut self, symbol: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest).trim_start();
        rest.is_some()
    }

    fn unexpected(&self) -> RuleError {
        RuleError::expression(self.text, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: Sizes =
        Sizes { num_rows: 1000, num_cols: 700, nnz: 12_345, dense_cols: 33, blocks: None };

    fn value(text: &str) -> Option<u64> {
        Expression::parse(text).unwrap().value(SIZES)
    }

    #[test]
    fn expressions_have_the_values_that_they_seem_to() {
        for (text, expected) in [
            ("256", 256),
            (" num_rows ", 1000),
            ("num_cols+nnz", 13_045),
            ("num_rows/256", 3),
            ("ceil(num_rows/256)", 4),
            ("ceil((num_rows/256))", 4),
            ("ceil(num_rows)", 1000),
            ("ceil(num_rows/256/2)", 2),
            ("ceil( num_rows / 250 )", 4),
            ("(num_rows + 255) / 256", 4),
            ("num_rows * 32 / 256", 125),
            ("2 + 3 * 4", 14),
            ("(2 + 3) * 4", 20),
            ("100 / 7 / 2", 7),
            ("ceil(dense_cols/32)*num_rows", 2000),
            ("18446744073709551615 / 1", u64::MAX),
            ("ceil(18446744073709551615 / 2)", 1 << 63),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_none() {
        for text in
            ["1/0", "nnz/(0*1)", "18446744073709551615+1", "18446744073709551615*nnz", "blocks"]
        {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn errors_show_where() {
        for (text, at) in [
            ("", "its end"),
            ("num_rows -1", "`-1`"),
            ("rows", "`rows`"),
            ("(1", "its end"),
            ("1)", "`)`"),
            ("ceil 1", "`1`"),
            ("256.0", "`.0`"),
            ("0x10", "`0x10`"),
            ("99999999999999999999", "`99999999999999999999`"),
            ("2 3", "`3`"),
            ("é", "`é`"),
        ] {
            let error = Expression::parse(text).unwrap_err().to_string();
            assert!(error.contains(at) && error.lines().count() == 1, "{text}: {error}");
        }
        assert!(Expression::parse(&"(".repeat(100_000)).is_err());
        assert!(Expression::parse(&"1+".repeat(100_000)).is_err());
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let leaf = prop_oneof![
            any::<u32>().prop_map(|number| Expression::Number(number.into())),
            proptest::sample::select(&Size::ALL[..]).prop_map(Expression::Size),
        ];
        leaf.prop_recursive(4, 16, 2, |inner| {
            (0..4, inner.clone(), inner).prop_map(|(kind, one, other)| {
                let pair = Box::new([one, other]);
                match kind {
                    0 => Expression::Sum(pair),
                    1 => Expression::Product(pair),
                    2 => Expression::Quotient(pair),
                    _ => Expression::Ceiling(pair),
                }
            })
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(expression in expressions()) {
            prop_assert_eq!(Expression::parse(&expression.to_string()), Ok(expression));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", like in "[0-9a-z_()+*/ ]{0,40}") {
            for text in [text, like] {
                if let Ok(expression) = Expression::parse(&text) {
                    let again = Expression::parse(&expression.to_string());
                    // With all parentheses it may have too many parts.
                    prop_assert!(again.is_err() || again == Ok(expression));
                }
            }
        }

        #[test]
        fn quotients_are_rounded_as_they_say(a in any::<u64>(), b in 1..u64::MAX) {
            let sizes = Sizes { num_rows: a, nnz: b, ..SIZES };
            let value = |text| Expression::parse(text).unwrap().value(sizes);
            prop_assert_eq!(value("num_rows/nnz"), Some(a / b));
            prop_assert_eq!(value("ceil(num_rows/nnz)"), Some(a.div_ceil(b)));
        }
    }
}
