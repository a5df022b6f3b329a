use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};

/// Numbers of all layers at some positions of rows, `[layers, rows, positions, width]`, which stay
/// where they are: rows that begin alike have the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// Of each node `[layers, width]`.
    numbers: Arc<Vec<f32>>,
    /// `[rows, positions]`.
    nodes: Arc<Vec<u32>>,
    shape: [usize; 4],
}

impl Cache {
    /// `numbers` are `[nodes, layers, width]`, `nodes` `[rows, positions]`; none where these are
    /// not the sizes of all, or a node is not there.
    pub(crate) fn new(
        numbers: Arc<Vec<f32>>,
        nodes: Arc<Vec<u32>>,
        shape: [usize; 4],
    ) -> Option<Self> {
        let [layers, rows, positions, width] = shape;
        let size = layers.checked_mul(width).filter(|&size| size > 0)?;
        let count = numbers.len() / size;
        let is_so = rows.checked_mul(positions) == Some(nodes.len())
            && nodes.iter().all(|&node| (node as usize) < count);
        is_so.then_some(Self { numbers, nodes, shape })
    }

    pub(crate) fn shape(&self) -> &[usize; 4] {
        &self.shape
    }

    /// The numbers of each position of a row.
    pub(crate) fn row(&self, layer: usize, row: usize) -> impl Iterator<Item = &[f32]> {
        let [layers, _, positions, width] = self.shape;
        let nodes = &self.nodes[row * positions..][..positions];
        nodes
            .iter()
            .map(move |&node| &self.numbers[(node as usize * layers + layer) * width..][..width])
    }

    /// The numbers in the order of the shape.
    pub(crate) fn in_order(&self) -> Vec<f32> {
        let [layers, rows, _, _] = self.shape;
        let mut all = Vec::with_capacity(self.shape.iter().product());
        for (layer, row) in (0..layers).flat_map(|layer| (0..rows).map(move |row| (layer, row))) {
            self.row(layer, row).for_each(|numbers| all.extend_from_slice(numbers));
        }
        all
    }

    pub(crate) fn to_array(&self) -> ArrayD<f32> {
        let shape = IxDyn(&self.shape);
        // As many as the shape says.
        ArrayD::from_shape_vec(shape.clone(), self.in_order())
            .unwrap_or_else(|_| ArrayD::zeros(shape))
    }
}
