//! Wrong formulas that give what a kernel gave.

use sparserl_core::matrix::Scalar;

use super::Failure;

/// A formula that gives all wrong elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Formula {
    /// α²Ax + βy
    AlphaTwice,
    /// Ax + βy
    NoAlpha,
    /// αAx
    NoBeta,
    /// αAx + y
    WholeOld,
    /// αAx + β²y
    BetaTwice,
    /// y: as it was.
    Unchanged,
    /// What is right, twice.
    Doubled,
    /// What another row should have, so many rows further down; the first comes after the last.
    OtherRow(isize),
    /// What another column should have, so many further to the right.
    OtherColumn(isize),
    /// What is right, but for roundings to a narrower type.
    Rounded(&'static str),
}

impl Formula {
    /// It in words, of an element of a row.
    pub(super) fn text(self, row: usize, rows: usize) -> String {
        match self {
            Self::AlphaTwice => "alpha is applied twice".to_owned(),
            Self::NoAlpha => "alpha is not applied".to_owned(),
            Self::NoBeta => "beta times the old result is not added".to_owned(),
            Self::WholeOld => "the old result is added without beta".to_owned(),
            Self::BetaTwice => "beta is applied twice".to_owned(),
            Self::Unchanged => "it is as it was before".to_owned(),
            Self::Doubled => "it is twice what it should be".to_owned(),
            Self::OtherRow(by) => format!("it is the result of row {}", further(row, by, rows)),
            Self::OtherColumn(by) => {
                let side = if by > 0 { "right" } else { "left" };
                format!("it is the result of the column {} further {side}", by.unsigned_abs())
            }
            Self::Rounded(to) => format!("it is off by no more than what rounding to {to} loses"),
        }
    }

    /// Whether β is what is wrong.
    pub(super) fn is_of_beta(self) -> bool {
        matches!(self, Self::NoBeta | Self::WholeOld | Self::BetaTwice)
    }
}

/// The row so many further down; the first comes after the last.
fn further(row: usize, by: isize, rows: usize) -> usize {
    (row + rows).wrapping_add_signed(by) % rows.max(1)
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// The formula that gives all of some wrong elements, if only one does.
    pub(super) fn formula(&self, wrong: &[usize]) -> Option<Formula> {
        let mut formulas = vec![
            Formula::AlphaTwice,
            Formula::NoAlpha,
            Formula::NoBeta,
            Formula::WholeOld,
            Formula::BetaTwice,
            Formula::Unchanged,
            Formula::Doubled,
        ];
        formulas.extend([-1, 1].map(Formula::OtherRow));
        if self.width > 1 {
            formulas.extend([-1, 1].map(Formula::OtherColumn));
        }
        // One element may be many things by chance, as where there is one entry.
        if wrong.is_empty() {
            return None;
        }
        let exact = formulas.into_iter().filter(|&f| wrong.iter().all(|&e| self.gives(f, e)));
        let exact: Vec<Formula> = exact.collect();
        match exact.as_slice() {
            [] => {
                let narrower =
                    [("f32", 2f64.powi(-24)), ("f16", 2f64.powi(-11)), ("bf16", 2f64.powi(-8))];
                let own = D::Accumulator::DTYPE.unit_roundoff();
                narrower
                    .into_iter()
                    .filter(|&(_, roundoff)| roundoff > 2.0 * own)
                    .find(|&(_, roundoff)| wrong.iter().all(|&e| self.is_rounded(e, roundoff)))
                    .map(|(name, _)| Formula::Rounded(name))
            }
            [one] => Some(*one),
            _ => None,
        }
    }

    /// What goes into an element: the product, the sum of its terms' magnitudes, and what was
    /// there.
    fn terms(&self, element: usize) -> (f64, f64, f64) {
        let (row, place) = (element / self.width, element % self.width);
        let (columns, values) = self.matrix.row(row);
        let (mut sum, mut magnitude) = (0.0, 0.0);
        for (&column, value) in columns.iter().zip(values) {
            let at = column as usize * self.width + place;
            let product = value.to_f64() * self.input.get(at).map_or(f64::NAN, |x| x.to_f64());
            sum += product;
            magnitude += product.abs();
        }
        (sum, magnitude, self.initial.get(element).map_or(f64::NAN, |y| y.to_f64()))
    }

    fn gives(&self, formula: Formula, element: usize) -> bool {
        let (alpha, beta) = (self.alpha.to_f64(), self.beta.to_f64());
        let (sum, _, old) = self.terms(element);
        let added = if beta == 0.0 { 0.0 } else { beta * old };
        let right =
            |element: usize| self.reference.values.get(element).copied().unwrap_or(f64::NAN);
        let bound = |element: usize| self.reference.bounds.get(element).copied().unwrap_or(0.0);
        let (row, place) = (element / self.width, element % self.width);
        let at = |row: usize, place: usize| match place < self.width && row < self.matrix.rows() {
            true => right(row * self.width + place),
            false => f64::NAN,
        };
        let value = match formula {
            Formula::AlphaTwice if alpha != 1.0 => alpha * alpha * sum + added,
            Formula::NoAlpha if alpha != 1.0 => sum + added,
            Formula::NoBeta if beta != 0.0 => alpha * sum,
            Formula::WholeOld if beta != 1.0 => alpha * sum + old,
            Formula::BetaTwice if beta != 0.0 && beta != 1.0 => alpha * sum + beta * beta * old,
            Formula::Unchanged => old,
            Formula::Doubled => 2.0 * right(element),
            Formula::OtherRow(by) => at(further(row, by, self.matrix.rows()), place),
            Formula::OtherColumn(by) => at(row, place.wrapping_add_signed(by)),
            _ => return false,
        };
        let got = self.output.get(element).map_or(f64::NAN, |got| got.to_f64());
        let scale = 1.0 + alpha.abs() + beta.abs();
        (got - value).abs() <= 4.0 * scale * bound(element).max(f64::MIN_POSITIVE)
    }

    /// Whether an element is off by no more than the roundings of its terms to a type lose.
    fn is_rounded(&self, element: usize, roundoff: f64) -> bool {
        let (_, magnitude, old) = self.terms(element);
        let (alpha, beta) = (self.alpha.to_f64(), self.beta.to_f64());
        let old = if beta == 0.0 { 0.0 } else { (beta * old).abs() };
        let entries = self.matrix.row(element / self.width).0.len() as f64;
        let got = self.output.get(element).map_or(f64::NAN, |got| got.to_f64());
        let right = self.reference.values.get(element).copied().unwrap_or(f64::NAN);
        // As many roundings as terms would be a bound that much else is within.
        let most = 2.0 * (entries.sqrt() + 2.0) * roundoff * (alpha.abs() * magnitude + old);
        (got - right).abs() <= most
    }
}
