//! Arrays of matrices, taken apart and put together.

use sparserl_core::matrix::{Coo, CooError, Csr, CsrError, Duplicates, Offsets, OffsetsView};

/// The same entries with other values.
pub(super) fn with_values(matrix: &Csr<f64>, values: Vec<f64>) -> Result<Csr<f64>, CsrError> {
    let view = matrix.view();
    let offsets = match view.offsets() {
        OffsetsView::U32(offsets) => Offsets::U32(offsets.to_vec()),
        OffsetsView::U64(offsets) => Offsets::U64(offsets.to_vec()),
    };
    Csr::new(matrix.rows(), matrix.cols(), offsets, view.columns().to_vec(), values)
}

/// Entries of a matrix that is being made, in any order; those at one position are added.
pub(super) struct Entries {
    rows: usize,
    cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<f64>,
}

impl Entries {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        let (row_indices, col_indices, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, cols, row_indices, col_indices, values }
    }

    pub(super) fn push(&mut self, row: usize, col: usize, value: f64) {
        self.row_indices.push(row as u32);
        self.col_indices.push(col as u32);
        self.values.push(value);
    }

    /// Adds the entries of a matrix, each at a place of its own, or none.
    pub(super) fn extend(
        &mut self,
        matrix: &Csr<f64>,
        mut place: impl FnMut(usize, usize) -> Option<(usize, usize)>,
    ) {
        let view = matrix.view();
        for row in 0..matrix.rows() {
            let (columns, values) = view.row(row);
            for (&col, &value) in columns.iter().zip(values) {
                if let Some((row, col)) = place(row, col as usize) {
                    self.push(row, col, value);
                }
            }
        }
    }

    /// The same positions, each entry a 1: large values cannot add up to infinite ones.
    pub(super) fn with_ones(mut self) -> Self {
        self.values.fill(1.0);
        self
    }

    pub(super) fn into_csr(self) -> Result<Csr<f64>, CooError> {
        let Self { rows, cols, row_indices, col_indices, values } = self;
        Coo::new(rows, cols, row_indices, col_indices, values)?.to_csr(Duplicates::Sum)
    }
}

/// The matrix with rows and columns in other orders: `order[new]` is the old number. `None` leaves
/// them.
pub(super) fn relabelled(
    matrix: &Csr<f64>,
    row_order: Option<&[u32]>,
    col_order: Option<&[u32]>,
) -> Result<Csr<f64>, CooError> {
    let inverse = |order: &[u32]| {
        let mut inverse = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            inverse[old as usize] = new;
        }
        inverse
    };
    let (row_of, col_of) = (row_order.map(inverse), col_order.map(inverse));
    let mut entries = Entries::new(matrix.rows(), matrix.cols());
    entries.extend(matrix, |row, col| {
        let row = row_of.as_ref().map_or(row, |new| new[row]);
        Some((row, col_of.as_ref().map_or(col, |new| new[col])))
    });
    entries.into_csr()
}
