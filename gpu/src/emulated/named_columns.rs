//! Inputs of so many rows that only those are held that the matrix names.

use sparserl_core::matrix::{Csr, CsrError, CsrView, Scalar};

use super::awkward::of_rows;

/// A matrix with the columns alone in which it has entries.
pub(super) struct NamedColumns<A> {
    /// It, with these for columns.
    matrix: Csr<A>,
    /// Which they are, in order.
    columns: Vec<u32>,
    /// How many there are altogether.
    all: usize,
}

impl<A: Scalar> NamedColumns<A> {
    /// Some rows of a matrix.
    pub(super) fn of_rows(
        matrix: CsrView<'_, A>,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Result<Self, CsrError> {
        let mut columns: Vec<u32> =
            rows.clone().flat_map(|row| matrix.row(row).0).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let rank = |column: u32| columns.partition_point(|&named| named < column) as u32;
        let row = |row: usize| {
            let (names, values) = matrix.row(row);
            names.iter().map(|&column| rank(column)).zip(values.iter().copied()).collect()
        };
        let matrix_of_them = of_rows(columns.len(), rows.map(row))?;
        Ok(Self { matrix: matrix_of_them, columns, all: matrix.cols() })
    }

    pub(super) fn matrix(&self) -> CsrView<'_, A> {
        self.matrix.view()
    }

    /// Columns of the matrix that it was made of.
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// Whether a row of the input that is held is the first or the last of all.
    pub(super) fn is_end(&self, held: usize) -> bool {
        let column = self.columns.get(held).map_or(usize::MAX, |&column| column as usize);
        column == 0 || column == self.all - 1
    }

    /// The rows that are held of an input of that width whose elements [`number`] says.
    pub(super) fn numbers<D: Scalar>(&self, width: usize) -> Vec<D> {
        let row = |&column: &u32| {
            let first = u64::from(column) * width as u64;
            (first..first + width as u64).map(number)
        };
        self.columns.iter().flat_map(row).collect()
    }

    /// The element at a place of the whole input, of which `held` are the rows that are held; the
    /// others are all the same, or numbers.
    pub(super) fn element<D: Scalar>(
        &self,
        held: Vec<D>,
        width: usize,
        others: Option<D>,
    ) -> impl Fn(u64) -> D + Send + Sync + use<A, D> {
        let columns = self.columns.clone();
        move |at| {
            let (column, place) = (at / width as u64, at as usize % width);
            let rank = columns.partition_point(|&named| u64::from(named) < column);
            let is_held = columns.get(rank).is_some_and(|&named| u64::from(named) == column);
            match held.get(rank * width + place).filter(|_| is_held) {
                Some(&element) => element,
                None => others.unwrap_or_else(|| number(at)),
            }
        }
    }
}

/// A number in [−1, 1) for each place of an input.
pub(super) fn number<D: Scalar>(at: u64) -> D {
    D::from_f64(2.0 * fastrand::Rng::with_seed(at).f64() - 1.0)
}

/// The words of an array, from its elements.
pub(super) fn words<D: Scalar>(element: impl Fn(u64) -> D) -> impl Fn(usize) -> u32 {
    move |word| {
        let word = word as u64;
        match size_of::<D>() {
            2 => (element(word * 2).bits() | element(word * 2 + 1).bits() << 16) as u32,
            4 => element(word).bits() as u32,
            _ => (element(word / 2).bits() >> (word % 2 * 32)) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use sparserl_core::matrix::Offsets;

    use super::*;

    fn matrix() -> Csr<f64> {
        let columns = vec![7, 1 << 30, 0, 7];
        let values = vec![1.0, 2.0, 3.0, 4.0];
        Csr::new(3, (1 << 30) + 1, Offsets::U32(vec![0, 2, 2, 4]), columns, values).unwrap()
    }

    #[test]
    fn only_columns_with_entries_are_left() {
        let matrix = matrix();
        let named = NamedColumns::of_rows(matrix.view(), 0..3).unwrap();
        assert_eq!((named.matrix().rows(), named.matrix().cols()), (3, 3));
        assert_eq!(named.matrix().row(0), (&[1, 2][..], &[1.0, 2.0][..]));
        assert_eq!(named.matrix().row(2), (&[0, 1][..], &[3.0, 4.0][..]));
        assert_eq!([0, 1, 2].map(|held| named.is_end(held)), [true, false, true]);
        let some = NamedColumns::of_rows(matrix.view(), [1, 0].into_iter()).unwrap();
        assert_eq!((some.matrix().rows(), some.columns), (2, vec![7, 1 << 30]));
    }

    #[test]
    fn elements_lie_where_they_would() {
        let matrix = matrix();
        let named = NamedColumns::of_rows(matrix.view(), 0..3).unwrap();
        let held = vec![0.5_f64, 1.5, 2.5, 3.5, 4.5, 5.5];
        let element = named.element(held.clone(), 2, Some(f64::NAN));
        let far = 1_u64 << 31;
        assert_eq!([0, 1, 14, 15, far, far + 1].map(&element).as_slice(), held);
        assert!([2, 13, 16, far - 1].iter().all(|&at| element(at).is_nan()));
        let element = named.element(held, 2, None);
        assert_eq!(element(13), number::<f64>(13));
        assert_eq!(named.numbers::<f64>(2)[2..4], [14, 15].map(number::<f64>));
    }

    #[test]
    fn words_are_those_of_the_bytes() {
        let bytes = |count: usize, word: &dyn Fn(usize) -> u32| -> Vec<u8> {
            (0..count).flat_map(|index| word(index).to_le_bytes()).collect()
        };
        let doubles: Vec<f64> = (0..6).map(number).collect();
        assert_eq!(bytes(12, &words(number::<f64>)), bytemuck::cast_slice::<_, u8>(&doubles));
        let halves: Vec<f16> = (0..6).map(number).collect();
        assert_eq!(bytes(3, &words(number::<f16>)), bytemuck::cast_slice::<_, u8>(&halves));
    }
}
