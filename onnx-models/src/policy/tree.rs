use std::collections::HashMap;

use ndarray::ArrayD;

/// Sizes of what the decoder keeps of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheSizes {
    pub(super) layers: usize,
    /// Of all heads.
    pub(super) width: usize,
}

/// The keys and values of all tokens that were computed, in a tree of prefixes: what several
/// programs begin with is computed once (RadixAttention; Zheng et al., NeurIPS 2024).
pub(super) struct PrefixTree {
    sizes: CacheSizes,
    /// The node of a token after a node; nodes are numbered from 1, before the first token is 0.
    children: HashMap<(u32, u32), u32>,
    /// Of each node `[layers, width]`.
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl PrefixTree {
    pub(super) fn new(sizes: CacheSizes) -> Self {
        Self { sizes, children: HashMap::new(), keys: Vec::new(), values: Vec::new() }
    }

    /// Numbers of all keys, which are as many as those of all values.
    pub(super) fn numbers(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.sizes);
    }

    /// The nodes of as many first tokens as are known.
    pub(super) fn path(&self, tokens: &[u32]) -> Vec<u32> {
        let mut node = 0;
        let mut follow = |&token: &u32| {
            node = *self.children.get(&(node, token))?;
            Some(node)
        };
        tokens.iter().map_while(&mut follow).collect()
    }

    /// Keys and values of the first `known` nodes of each path, `[layers, rows, 1 + known, width]`.
    /// The first position is zeros that nothing attends to: engines differ in whether they take
    /// arrays without elements.
    pub(super) fn gather(&self, paths: &[Vec<u32>], known: usize) -> [ArrayD<f32>; 2] {
        let CacheSizes { layers, width } = self.sizes;
        let shape = [layers, paths.len(), 1 + known, width];
        let of = |numbers: &[f32]| {
            let mut all = Vec::with_capacity(shape.iter().product());
            for layer in 0..layers {
                for path in paths {
                    all.resize(all.len() + width, 0.0);
                    for &node in path.iter().take(known) {
                        let first = ((node as usize - 1) * layers + layer) * width;
                        all.extend_from_slice(&numbers[first..first + width]);
                    }
                }
            }
            // The loops above are over the dimensions of the shape.
            ArrayD::from_shape_vec(&shape[..], all).unwrap_or_else(|_| ArrayD::zeros(&shape[..]))
        };
        [of(&self.keys), of(&self.values)]
    }

    /// Takes up the last tokens of rows of which all but these are known: `keys` and `values` are
    /// `[layers, rows, last tokens, width]`. False where the arrays have other shapes.
    pub(super) fn insert(
        &mut self,
        rows: &[Vec<u32>],
        [keys, values]: [&ArrayD<f32>; 2],
        last: usize,
    ) -> bool {
        let CacheSizes { layers, width } = self.sizes;
        let shape = [layers, rows.len(), last, width];
        if keys.shape() != shape || values.shape() != shape {
            return false;
        }
        let (keys, values) = (keys.as_standard_layout(), values.as_standard_layout());
        let (Some(keys), Some(values)) = (keys.as_slice(), values.as_slice()) else { return false };
        for (row, tokens) in rows.iter().enumerate() {
            let first = tokens.len().saturating_sub(last);
            let mut node = self.path(&tokens[..first]).last().copied().unwrap_or(0);
            for (at, &token) in tokens[first..].iter().enumerate() {
                let new = self.children.len() as u32 + 1;
                let found = *self.children.entry((node, token)).or_insert(new);
                if found == new {
                    for layer in 0..layers {
                        let first = ((layer * rows.len() + row) * last + at) * width;
                        self.keys.extend_from_slice(&keys[first..first + width]);
                        self.values.extend_from_slice(&values[first..first + width]);
                    }
                }
                node = found;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Axis;

    use super::*;

    const SIZES: CacheSizes = CacheSizes { layers: 2, width: 3 };

    /// Numbers that say where they stand, and of which token they are.
    fn numbers(rows: &[Vec<u32>], last: usize) -> ArrayD<f32> {
        ArrayD::from_shape_fn(vec![2, rows.len(), last, 3], |at| {
            let token = rows[at[1]][rows[at[1]].len() - last + at[2]];
            (token * 100) as f32 + (at[0] * 50 + at[3]) as f32
        })
    }

    #[test]
    fn what_was_taken_up_is_gathered_for_every_row_that_begins_so() {
        let mut tree = PrefixTree::new(SIZES);
        let rows = [vec![9, 1, 2], vec![9, 1, 3], vec![9, 4, 2]];
        let all = numbers(&rows, 3);
        assert!(tree.insert(&rows, [&all, &-all.clone()], 3));
        // 9, then 1 and 4, then 2 and 3 after 1, and another 2 after 4.
        assert_eq!(tree.numbers(), 6 * SIZES.layers * SIZES.width);
        let longer = [vec![9, 4, 2, 7, 8], vec![9, 1, 3, 5, 5]];
        let next = numbers(&longer, 2);
        assert!(tree.insert(&longer, [&next, &-next.clone()], 2));
        assert!(!tree.insert(&longer, [&next, &next], 3), "the arrays are of two tokens");

        let paths: Vec<Vec<u32>> = longer.iter().map(|row| tree.path(row)).collect();
        assert!(paths.iter().all(|path| path.len() == 5));
        assert_eq!(tree.path(&[9, 1, 7, 8]).len(), 2);
        let [keys, values] = tree.gather(&paths, 5);
        assert_eq!(keys.shape(), [2, 2, 6, 3]);
        let expected = numbers(&longer, 5);
        let (first, others) = keys.view().split_at(Axis(2), 1);
        assert!(first.iter().all(|&number| number == 0.0));
        assert_eq!(others, expected);
        assert_eq!(values, -keys);
    }
}
