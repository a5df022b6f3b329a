//! Launches with NaN or infinity in the rows of the input that a row of the matrix does not name.

use sparserl_core::matrix::Scalar;
use sparserl_core::reference::{self, Reference};

use super::{Operands, Trial};
use crate::candidate::executable::Parameter;

impl<A: Scalar, D: Scalar> Trial<'_, A, D> {
    /// What is to be known of a kernel whose results are right where the input is finite.
    pub(super) fn spreads(&self, row: usize) -> String {
        let parameters = self.prepared.launch.parameters.iter().zip(&self.prepared.names);
        let input = parameters.into_iter().find(|(is, _)| **is == Parameter::Input);
        let name = input.map_or("the input", |(_, name)| name);
        format!(
            "results are right for finite operands; NaN or infinity in {name} spreads to rows without it, such as \
             row {row}"
        )
    }

    /// Puts what is no finite number, where there is to be any, into the rows of the input that
    /// most likely stand for nothing, the first and the last, and into those that no entry names.
    /// Gives which.
    pub(super) fn poison(&self, operands: &mut Operands<D>) -> Vec<bool> {
        let Operands { input, others: Some(strange), .. } = operands else { return Vec::new() };
        let columns = self.matrix.cols();
        let mut poisoned = vec![true; columns];
        for &column in self.matrix.columns() {
            if let Some(is_poisoned) = poisoned.get_mut(column as usize) {
                let held = column as usize;
                *is_poisoned = match self.named {
                    Some(named) => named.is_end(held),
                    None => held == 0 || held + 1 == columns,
                };
            }
        }
        let rows = input.chunks_mut(self.width).zip(&poisoned);
        rows.filter(|(_, is_poisoned)| **is_poisoned).for_each(|(row, _)| {
            row.fill(*strange);
        });
        poisoned
    }

    /// Takes it out again, for the reference, and sets the rows of the output right that name it:
    /// they hold no number, if anything.
    pub(super) fn forgive(&self, input: &mut [D], output: &mut [D], poisoned: &[bool]) {
        let is_poisoned = |column: u32| poisoned.get(column as usize).is_some_and(|&is| is);
        for (column, elements) in (0..).zip(input.chunks_mut(self.width)) {
            if is_poisoned(column) {
                elements.fill(D::from_f64(0.0));
            }
        }
        let zero = D::from_f64(0.0);
        for (row, elements) in output.chunks_mut(self.width).enumerate() {
            let (named, values) = self.matrix.row(row);
            if !named.iter().copied().any(is_poisoned) {
                continue;
            }
            for (place, element) in elements.iter_mut().enumerate() {
                let mut sum = 0.0;
                for (&column, value) in named.iter().zip(values) {
                    let at = column as usize * self.width + place;
                    sum += value.to_f64() * input.get(at).copied().unwrap_or(zero).to_f64();
                }
                *element = D::from_f64(sum);
            }
        }
    }
}

/// The first element that is wrong in a launch with NaN or infinity in the input, where all that is
/// wrong is that these have spread: elements that were not written have not.
pub(super) fn first_spread<D: Scalar>(
    reference: &Reference,
    output: &[D],
    strange: bool,
) -> Option<usize> {
    let unwritten = u64::MAX >> (64 - 8 * size_of::<D>());
    let has_spread = |element: usize| {
        output
            .get(element)
            .is_some_and(|element| !element.to_f64().is_finite() && element.bits() != unwritten)
    };
    let mut wrong = reference::violations(reference, output).filter(|_| strange).peekable();
    let first = *wrong.peek()?;
    wrong.all(has_spread).then_some(first)
}
