use std::sync::Arc;

use ndarray::ArrayD;

use crate::engine::Cache;

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
    /// Of each node the tokens that follow it, and their nodes; before the first token is node 0.
    children: Vec<Vec<(u32, u32)>>,
    /// Of each node `[layers, width]`, zeros before the first token. While the policy runs, it
    /// reads them where they are.
    keys: Arc<Vec<f32>>,
    values: Arc<Vec<f32>>,
}

impl PrefixTree {
    pub(super) fn new(sizes: CacheSizes) -> Self {
        let zeros = Arc::new(vec![0.0; sizes.layers * sizes.width]);
        Self { sizes, children: vec![Vec::new()], keys: Arc::clone(&zeros), values: zeros }
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
            node = child(&self.children, node, token)?;
            Some(node)
        };
        tokens.iter().map_while(&mut follow).collect()
    }

    /// Keys and values of the first `known` nodes of each path, `[layers, rows, 1 + known, width]`.
    /// The first position is zeros that nothing attends to: engines differ in whether they take
    /// arrays without elements.
    pub(super) fn gather(&self, paths: &[Vec<u32>], known: usize) -> Option<[Cache; 2]> {
        let CacheSizes { layers, width } = self.sizes;
        let shape = [layers, paths.len(), 1 + known, width];
        let nodes = paths.iter().flat_map(|path| [0].into_iter().chain(path[..known].to_vec()));
        let nodes = Arc::new(nodes.collect::<Vec<u32>>());
        let of = |numbers| Cache::new(Arc::clone(numbers), Arc::clone(&nodes), shape);
        Some([of(&self.keys)?, of(&self.values)?])
    }

    /// Takes up the last tokens of rows of which all but these are known: `keys` and `values` are
    /// `[layers, rows, last tokens, width]`. False where the arrays have other shapes,
    /// or others are not known either.
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
        let known_keys = Arc::make_mut(&mut self.keys);
        let known_values = Arc::make_mut(&mut self.values);
        for (row, tokens) in rows.iter().enumerate() {
            let first = tokens.len().saturating_sub(last);
            let mut node = 0;
            for (at, &token) in tokens.iter().enumerate() {
                if let Some(known) = child(&self.children, node, token) {
                    node = known;
                    continue;
                }
                let Some(at) = at.checked_sub(first) else { return false };
                let new = self.children.len() as u32;
                self.children[node as usize].push((token, new));
                self.children.push(Vec::new());
                for layer in 0..layers {
                    let first = ((layer * rows.len() + row) * last + at) * width;
                    known_keys.extend_from_slice(&keys[first..first + width]);
                    known_values.extend_from_slice(&values[first..first + width]);
                }
                node = new;
            }
        }
        true
    }
}

/// The node of a token after a node: few different ones follow.
fn child(children: &[Vec<(u32, u32)>], node: u32, token: u32) -> Option<u32> {
    let mut those = children[node as usize].iter();
    those.find(|(other, _)| *other == token).map(|&(_, node)| node)
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
        // The beginning, 9, then 1 and 4, then 2 and 3 after 1, and another 2 after 4.
        assert_eq!(tree.numbers(), (1 + 6) * SIZES.layers * SIZES.width);
        let longer = [vec![9, 4, 2, 7, 8], vec![9, 1, 3, 5, 5]];
        let next = numbers(&longer, 2);
        assert!(tree.insert(&longer, [&next, &-next.clone()], 2));
        assert!(!tree.insert(&longer, [&next, &next], 3), "the arrays are of two tokens");

        let paths: Vec<Vec<u32>> = longer.iter().map(|row| tree.path(row)).collect();
        assert!(paths.iter().all(|path| path.len() == 5));
        assert_eq!(tree.path(&[9, 1, 7, 8]).len(), 2);
        let [keys, values] = tree.gather(&paths, 5).unwrap().map(|cache| cache.to_array());
        assert_eq!(keys.shape(), [2, 2, 6, 3]);
        let expected = numbers(&longer, 5);
        let (first, others) = keys.view().split_at(Axis(2), 1);
        assert!(first.iter().all(|&number| number == 0.0));
        assert_eq!(others, expected);
        assert_eq!(values, -keys);
    }
}
