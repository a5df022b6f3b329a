//! Arrays of which only what is touched takes memory.

use std::sync::OnceLock;

/// Pages of which one table says where they lie.
const TABLE: usize = 128;

/// Elements that lie in pages of `N`, each made when one of its elements is first asked for, as are
/// the tables of pages.
#[derive(Debug)]
pub(crate) struct Pages<T, const N: usize> {
    tables: Vec<OnceLock<Table<T>>>,
}

type Table<T> = Box<[OnceLock<Box<[T]>>]>;

impl<T: Default, const N: usize> Pages<T, N> {
    pub(crate) fn new(elements: usize) -> Self {
        Self { tables: (0..elements.div_ceil(N * TABLE)).map(|_| OnceLock::new()).collect() }
    }

    /// An element of a page that is there.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let table = self.tables.get(index / N / TABLE)?.get()?;
        table.get(index / N % TABLE)?.get()?.get(index % N)
    }

    /// An element; its page is made if it is not there and `may_grow`. None past the end.
    pub(crate) fn touch(&self, index: usize, may_grow: impl FnOnce() -> bool) -> Option<&T> {
        let table = self.tables.get(index / N / TABLE)?;
        let table = table.get_or_init(|| (0..TABLE).map(|_| OnceLock::new()).collect());
        let page = table.get(index / N % TABLE)?;
        if page.get().is_none() && !may_grow() {
            return None;
        }
        page.get_or_init(|| (0..N).map(|_| T::default()).collect()).get(index % N)
    }

    /// The first element of each page that is there.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = usize> {
        let tables = self.tables.iter().enumerate();
        let tables = tables.filter_map(|(number, table)| Some((number, table.get()?)));
        tables.flat_map(|(number, table)| {
            let pages = table.iter().enumerate().filter(|(_, page)| page.get().is_some());
            pages.map(move |(page, _)| (number * TABLE + page) * N)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_made_when_they_are_touched() {
        let pages = Pages::<[u8; 2], 4>::new(1 << 30);
        assert!(pages.get(9).is_none());
        assert!(pages.touch(9, || false).is_none());
        assert_eq!(pages.touch(9, || true), Some(&[0; 2]));
        assert_eq!(pages.touch(11, || false), Some(&[0; 2]));
        assert!(pages.get(8).is_some() && pages.get(12).is_none());
        assert!(pages.touch((1 << 30) - 1, || true).is_some());
        assert!(pages.touch(1 << 30, || true).is_none());
        assert_eq!(pages.firsts().collect::<Vec<_>>(), [8, (1 << 30) - 4]);
    }
}
