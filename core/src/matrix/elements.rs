//! Arrays that a matrix and what is made of it hold together.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::ops::Deref;

/// The elements of an array. Clones share them: arrays of a packing that are those of the matrix
/// take neither memory nor time.
pub struct Elements<T>(Arc<Vec<T>>);

impl<T: Send + Sync + 'static> Elements<T> {
    /// The same elements where `U` is their type, which generic code may not know; none where it is
    /// another.
    pub(crate) fn of_type<U: Send + Sync + 'static>(self) -> Option<Elements<U>> {
        let elements: Arc<dyn Any + Send + Sync> = self.0;
        elements.downcast().ok().map(Elements)
    }
}

impl<T> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Elements<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for Elements<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Arc::new(elements))
    }
}

impl<T> FromIterator<T> for Elements<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<T: PartialEq> PartialEq for Elements<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Elements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn clones_share_elements_and_types_are_told_apart() {
        let elements = Elements::from(vec![1.0_f64, 2.0]);
        let clone = elements.clone().of_type::<f64>().unwrap();
        assert_eq!(clone.as_ptr(), elements.as_ptr());
        assert_eq!(clone, Elements::from_iter([1.0, 2.0]));
        assert!(elements.of_type::<u64>().is_none());
    }
}
