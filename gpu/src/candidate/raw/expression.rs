//! Small expressions over a matrix's sizes, as C++ writes and computes them.
//!
//! All numbers are integers, so a quotient is rounded towards zero; casts and the fraction of a
//! number such as `256.0f` change nothing but within `ceil`, which rounds a quotient up.

mod parser;

use std::fmt;

use super::rule_error::RuleError;

/// What expressions depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the matrix.
    pub num_rows: u64,
    /// Columns of the matrix.
    pub num_cols: u64,
    /// Entries of the matrix.
    pub nnz: u64,
    /// Columns of the dense operands; 1 for SpMV.
    pub dense_cols: u64,
    /// Blocks that a program's kernel needs for the matrix; absent for other kernels.
    pub blocks: Option<u64>,
}

/// An expression of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Number(u64),
    Size(Size),
    Unary(Unary, Box<Self>),
    Binary(Binary, Box<[Self; 2]>),
    /// The second where the first is not 0, else the third.
    Choice(Box<[Self; 3]>),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Minus,
    Not,
    Complement,
}

/// What makes one number of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Product,
    Quotient,
    Remainder,
    Sum,
    Difference,
    ShiftLeft,
    ShiftRight,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    Equal,
    Unequal,
    And,
    Or,
    /// A quotient rounded up.
    Ceiling,
    Minimum,
    Maximum,
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

impl Unary {
    const ALL: [(char, Self); 3] = [('-', Self::Minus), ('!', Self::Not), ('~', Self::Complement)];

    fn symbol(self) -> char {
        Self::ALL.into_iter().find(|(_, other)| *other == self).map_or(' ', |(symbol, _)| symbol)
    }

    fn value(self, a: i128) -> i128 {
        match self {
            Self::Minus => -a,
            Self::Not => i128::from(a == 0),
            Self::Complement => !a,
        }
    }
}

impl Binary {
    /// Operators by precedence, those that bind least first. Of operators that begin alike the
    /// longer stands first.
    const OPERATORS: [&[(&str, Self)]; 7] = [
        &[("|", Self::Or)],
        &[("&", Self::And)],
        &[("==", Self::Equal), ("!=", Self::Unequal)],
        &[
            ("<=", Self::LessOrEqual),
            (">=", Self::GreaterOrEqual),
            ("<", Self::Less),
            (">", Self::Greater),
        ],
        &[("<<", Self::ShiftLeft), (">>", Self::ShiftRight)],
        &[("+", Self::Sum), ("-", Self::Difference)],
        &[("*", Self::Product), ("/", Self::Quotient), ("%", Self::Remainder)],
    ];

    fn symbol(self) -> Option<&'static str> {
        let all = Self::OPERATORS.into_iter().flatten();
        all.into_iter().find(|(_, other)| *other == self).map(|(symbol, _)| *symbol)
    }

    fn value(self, a: i128, b: i128) -> Option<i128> {
        let shift = || u32::try_from(b).ok().filter(|&bits| bits < 64);
        match self {
            Self::Product => a.checked_mul(b),
            Self::Quotient => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
            Self::Sum => a.checked_add(b),
            Self::Difference => a.checked_sub(b),
            Self::ShiftLeft => a.checked_mul(1 << shift()?),
            Self::ShiftRight => Some(a >> shift()?),
            Self::LessOrEqual => Some((a <= b).into()),
            Self::GreaterOrEqual => Some((a >= b).into()),
            Self::Less => Some((a < b).into()),
            Self::Greater => Some((a > b).into()),
            Self::Equal => Some((a == b).into()),
            Self::Unequal => Some((a != b).into()),
            Self::And => Some(a & b),
            Self::Or => Some(a | b),
            Self::Ceiling => {
                let quotient = a.checked_div(b)?;
                let is_cut = a % b != 0 && (a < 0) == (b < 0);
                Some(quotient + i128::from(is_cut))
            }
            Self::Minimum => Some(a.min(b)),
            Self::Maximum => Some(a.max(b)),
        }
    }
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        parser::parse(text)
    }

    /// Whether its value depends on a size.
    pub(super) fn depends_on(&self, size: Size) -> bool {
        let any = |parts: &[Self]| parts.iter().any(|part| part.depends_on(size));
        match self {
            Self::Number(_) => false,
            Self::Size(other) => *other == size,
            Self::Unary(_, part) => part.depends_on(size),
            Self::Binary(_, pair) => any(&pair[..]),
            Self::Choice(parts) => any(&parts[..]),
        }
    }

    /// Its value; `None` when it is negative or does not fit 64 bits, divides by 0, or takes a size
    /// that there is none of.
    pub(super) fn value(&self, sizes: Sizes) -> Option<u64> {
        self.integer(sizes).and_then(|value| u64::try_from(value).ok())
    }

    /// Within -2¹²⁶ and 2¹²⁶, so that no sum of two overflows.
    fn integer(&self, sizes: Sizes) -> Option<i128> {
        let value = match self {
            Self::Number(number) => Some((*number).into()),
            Self::Size(size) => size.of(sizes).map(i128::from),
            Self::Unary(unary, part) => part.integer(sizes).map(|part| unary.value(part)),
            Self::Binary(binary, pair) => {
                binary.value(pair[0].integer(sizes)?, pair[1].integer(sizes)?)
            }
            Self::Choice(parts) => match parts[0].integer(sizes)? {
                0 => parts[2].integer(sizes),
                _ => parts[1].integer(sizes),
            },
        };
        value.filter(|value| value.unsigned_abs() < 1 << 126)
    }
}

impl fmt::Display for Expression {
    /// With parentheses around everything that has parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Size(size) => f.write_str(size.name()),
            Self::Unary(unary, part) => write!(f, "{}({part})", unary.symbol()),
            Self::Binary(Binary::Ceiling, pair) => write!(f, "ceil({} / {})", pair[0], pair[1]),
            Self::Binary(binary, pair) => match binary.symbol() {
                Some(symbol) => write!(f, "({} {symbol} {})", pair[0], pair[1]),
                None if *binary == Binary::Minimum => write!(f, "min({}, {})", pair[0], pair[1]),
                None => write!(f, "max({}, {})", pair[0], pair[1]),
            },
            Self::Choice(parts) => write!(f, "({} ? {} : {})", parts[0], parts[1], parts[2]),
        }
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
            ("(num_rows - 1) / 256 + 1", 4),
            ("num_rows / 256 + (num_rows % 256 != 0)", 4),
            ("num_rows / 256 + !!(num_rows % 256)", 4),
            ("num_rows / 256 + (num_rows % 256 ? 1 : 0)", 4),
            ("num_rows % 256 == 0 ? num_rows / 256 : num_rows / 256 + 1", 4),
            ("(num_rows + 255) >> 8", 4),
            ("1 << 8", 256),
            ("(num_rows + 255) & ~255", 1024),
            ("num_rows | 1", 1001),
            ("min(num_rows, 65535)", 1000),
            ("std::max(1, (num_rows + 2047) / 2048)", 1),
            ("std::min<int>(nnz, 1024)", 1024),
            ("ceil(num_rows / 256.0)", 4),
            ("ceilf(num_rows / 256.0f)", 4),
            ("ceil((float)num_rows / 256)", 4),
            ("(int)ceil((double) num_rows / 256.)", 4),
            ("static_cast<int>(std::ceil(static_cast<float>(num_rows) / 256))", 4),
            ("int(ceil(float(num_rows) / 256))", 4),
            ("(unsigned int)(num_rows + 255u) / 256U", 4),
            ("0x100", 256),
            ("256ULL", 256),
            ("256 * sizeof(float)", 1024),
            ("33 * 8 * sizeof(unsigned long long)", 2112),
            ("+num_rows - -1", 1001),
            ("num_rows >= 1000", 1),
            ("num_rows < 1000", 0),
            // C's precedences.
            ("1 << 2 + 1", 8),
            ("7 & 3 == 3", 1),
            ("1 | 2 & 6", 3),
            ("10 - 3 - 2", 5),
            ("100 / 7 % 4", 2),
            ("1 ? 2 : 0 ? 3 : 4", 2),
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
        for text in [
            "1/0",
            "1%0",
            "nnz/(0*1)",
            "ceil(1/0)",
            "18446744073709551615+1",
            "num_rows-1001",
            "18446744073709551615*nnz",
            "1<<64",
            "1<<(0-1)",
            "blocks",
            "num_rows ? 1/0 : 1",
            "18446744073709551615*18446744073709551615*18446744073709551615",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn errors_show_where() {
        for (text, at) in [
            ("", "its end"),
            ("num_rows 1", "`1`"),
            ("num_rows -", "its end"),
            ("N / 256", "`N / 256`"),
            ("a ? 1 : 2", "`a ? 1 : 2`"),
            ("1 ? 2", "its end"),
            ("sizeof(x)", "`x)`"),
            ("min(1)", "`)`"),
            ("1 && 2", "`& 2`"),
            ("rows", "`rows`"),
            ("(1", "its end"),
            ("1)", "`)`"),
            ("ceil 1", "`1`"),
            ("256.5", "`256.5`"),
            ("0x1g", "`0x1g`"),
            ("256x", "`256x`"),
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
        leaf.prop_recursive(3, 8, 3, |inner| {
            let operators: Vec<Binary> = Binary::OPERATORS.concat().iter().map(|o| o.1).collect();
            (0..24_usize, inner.clone(), inner.clone(), inner).prop_map(
                move |(kind, one, other, third)| match operators.get(kind) {
                    Some(&operator) => Expression::Binary(operator, Box::new([one, other])),
                    None if kind < 20 => Expression::Choice(Box::new([one, other, third])),
                    None if kind == 20 => {
                        Expression::Binary(Binary::Ceiling, Box::new([one, other]))
                    }
                    None if kind == 21 => {
                        Expression::Binary(Binary::Maximum, Box::new([one, other]))
                    }
                    None => {
                        let (_, unary) = Unary::ALL[kind % Unary::ALL.len()];
                        Expression::Unary(unary, Box::new(one))
                    }
                },
            )
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(expression in expressions()) {
            prop_assert_eq!(Expression::parse(&expression.to_string()), Ok(expression));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", like in "[0-9a-z_()+*/<>?:!~&|%. -]{0,40}") {
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
