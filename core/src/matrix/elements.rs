//! Arrays that a matrix and what is made of it hold together.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::ops::Deref;

/// The elements of an array. Clones share them: arrays of a packing that are those of the matrix
/// take neither memory nor time.
pub struct Elements<T>(Arc<Held<T>>);

/// What clones share. Nothing changes the elements, so what was computed of them stays true.
struct Held<T> {
    elements: Vec<T>,
    /// A cell that threads share takes `std`.
    #[cfg(feature = "std")]
    digest: std::sync::OnceLock<Digest>,
}

/// What tells elements from others, as whoever compares them computes it.
pub type Digest = [u8; 32];

#[cfg(feature = "std")]
impl<T> Elements<T> {
    /// The digest of the elements: computed by `of` for the first who asks, and known to all that
    /// share them. Whoever asks must ask for the same one.
    pub fn digest(&self, of: impl FnOnce(&[T]) -> Digest) -> Digest {
        *self.0.digest.get_or_init(|| of(self))
    }
}

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
        &self.0.elements
    }
}

impl<T> From<Vec<T>> for Elements<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Arc::new(Held {
            elements,
            #[cfg(feature = "std")]
            digest: std::sync::OnceLock::new(),
        }))
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
        self.0.elements.fmt(f)
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

    #[cfg(feature = "std")]
    #[test]
    fn clones_share_a_digest_that_is_computed_once() {
        let elements = Elements::from(vec![1_u8, 2]);
        let clone = elements.clone();
        assert_eq!(elements.digest(|elements| [elements[1]; 32]), [2; 32]);
        assert_eq!(clone.digest(|_| panic!("it is known")), [2; 32]);
    }
}
