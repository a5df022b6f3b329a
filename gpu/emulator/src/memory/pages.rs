//! Arrays of which only what is touched takes memory.

use std::sync::OnceLock;

/// Elements that lie in pages of `N`, each made when one of its elements is first asked for.
#[derive(Debug)]
pub(crate) struct Pages<T, const N: usize> {
    pages: Vec<OnceLock<Box<[T]>>>,
}

impl<T: Default, const N: usize> Pages<T, N> {
    pub(crate) fn new(elements: usize) -> Self {
        Self { pages: (0..elements.div_ceil(N)).map(|_| OnceLock::new()).collect() }
    }

    /// An element of a page that is there.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index / N)?.get()?.get(index % N)
    }

    /// An element; its page is made if it is not there and `may_grow`. None past the end.
    pub(crate) fn touch(&self, index: usize, may_grow: impl FnOnce() -> bool) -> Option<&T> {
        let page = self.pages.get(index / N)?;
        if page.get().is_none() && !may_grow() {
            return None;
        }
        page.get_or_init(|| (0..N).map(|_| T::default()).collect()).get(index % N)
    }

    /// The first element of each page that is there.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = usize> {
        let pages = self.pages.iter().enumerate();
        pages.filter(|(_, page)| page.get().is_some()).map(|(number, _)| number * N)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_made_when_they_are_touched() {
        let pages = Pages::<[u8; 2], 4>::new(1 << 20);
        assert!(pages.get(9).is_none());
        assert!(pages.touch(9, || false).is_none());
        assert_eq!(pages.touch(9, || true), Some(&[0; 2]));
        assert_eq!(pages.touch(11, || false), Some(&[0; 2]));
        assert!(pages.get(8).is_some() && pages.get(12).is_none());
        assert!(pages.touch(1 << 20, || true).is_none());
        assert_eq!(pages.firsts().collect::<Vec<_>>(), [8]);
    }
}
