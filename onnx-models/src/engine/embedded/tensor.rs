//! Tensors, whose numbers lie with the last dimension fastest and are shared until one is changed.

pub(super) mod pool;

use std::any::Any;
use std::sync::Arc;

use half::f16;

use crate::engine::Cache;

/// More than any policy needs: a file decides what is allocated.
const MOST_NUMBERS: usize = 1 << 27;

/// An operator that cannot be, or not on what it is given.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperatorError {
    #[error("it is not one of the operators of policies")]
    Unknown,
    #[error("its attribute `{0}` is not one that policies have")]
    Attribute(String),
    #[error("it has {0} inputs")]
    Inputs(usize),
    #[error("the type of an input is not what it takes")]
    Type,
    #[error("the shapes {0:?} do not go together")]
    Shapes(Vec<Vec<usize>>),
    #[error("{0:?} is no shape or place in what it is given")]
    Places(Vec<i64>),
    #[error("the shape {0:?} has too many numbers")]
    Size(Vec<usize>),
    #[error("an initializer has another number of bytes than its shape says")]
    Bytes,
}

type Result<T> = std::result::Result<T, OperatorError>;

/// What operators take and give.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Floats(Tensor<f32>),
    Integers(Tensor<i64>),
    /// Parameters as they are in the file; all that is done with them is a `Cast`.
    Halves(Tensor<f16>),
    /// Numbers that are brought into order where an operator does not take them as they are.
    Cached(Cache),
}

impl Value {
    pub(super) fn floats(self) -> Result<Tensor<f32>> {
        match self {
            Self::Floats(tensor) => Ok(tensor),
            Self::Cached(cache) => Tensor::new(cache.shape().to_vec(), cache.in_order()),
            _ => Err(OperatorError::Type),
        }
    }

    pub(super) fn integers(self) -> Result<Tensor<i64>> {
        if let Self::Integers(tensor) = self { Ok(tensor) } else { Err(OperatorError::Type) }
    }

    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Self::Floats(tensor) => tensor.shape(),
            Self::Integers(tensor) => tensor.shape(),
            Self::Halves(tensor) => tensor.shape(),
            Self::Cached(cache) => cache.shape(),
        }
    }
}

/// Numbers in a shape.
#[derive(Clone, Debug)]
pub(super) struct Tensor<T: 'static> {
    shape: Vec<usize>,
    numbers: Arc<Vec<T>>,
}

impl<T> Drop for Tensor<T> {
    /// The last to have floats leaves their room to others.
    fn drop(&mut self) {
        if let Some(numbers) = Arc::get_mut(&mut self.numbers)
            && let Some(numbers) = (numbers as &mut dyn Any).downcast_mut()
        {
            pool::give(std::mem::take(numbers));
        }
    }
}

impl<T: Copy> Tensor<T> {
    pub(super) fn new(shape: Vec<usize>, numbers: Vec<T>) -> Result<Self> {
        Self::shared(shape, Arc::new(numbers))
    }

    pub(super) fn shared(shape: Vec<usize>, numbers: Arc<Vec<T>>) -> Result<Self> {
        if count(&shape)? == numbers.len() {
            Ok(Self { shape, numbers })
        } else {
            Err(OperatorError::Shapes(vec![shape, vec![numbers.len()]]))
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn numbers(&self) -> &[T] {
        &self.numbers
    }

    /// The numbers, to be changed: copied only if somebody else has them.
    pub(super) fn into_numbers(mut self) -> Vec<T> {
        match Arc::get_mut(&mut self.numbers) {
            Some(numbers) => std::mem::take(numbers),
            None => self.numbers.to_vec(),
        }
    }

    /// The same numbers in another shape.
    pub(super) fn reshaped(self, shape: Vec<usize>) -> Result<Self> {
        if count(&shape)? == self.numbers.len() {
            Ok(Self { shape, numbers: Arc::clone(&self.numbers) })
        } else {
            Err(OperatorError::Shapes(vec![self.shape.clone(), shape]))
        }
    }

    /// Seen as `[before, here, after]` of an axis.
    pub(super) fn around(&self, axis: usize) -> [usize; 3] {
        let product = |sizes: &[usize]| sizes.iter().product();
        [product(&self.shape[..axis]), self.shape[axis], product(&self.shape[axis + 1..])]
    }

    /// The numbers at these strides: one for each place of `shape`.
    pub(super) fn strided(&self, shape: Vec<usize>, strides: &[usize]) -> Result<Self> {
        let mut numbers = Vec::with_capacity(count(&shape)?);
        let (row, stride) = last_of(&shape, strides);
        for_each_row(&shape, [strides], |[first]| match stride {
            _ if row == 0 => {}
            1 => numbers.extend_from_slice(&self.numbers[first..first + row]),
            0 => numbers.extend(std::iter::repeat_n(self.numbers[first], row)),
            _ => numbers.extend(self.numbers[first..].iter().step_by(stride).take(row)),
        });
        Self::new(shape, numbers)
    }
}

/// How many numbers a shape has. Sizes beside a zero are bounded like others: operators count by
/// them.
pub(super) fn count(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1_usize, |all, &size| all.checked_mul(size.max(1)));
    let product = product.filter(|&all| all <= MOST_NUMBERS);
    let product = product.ok_or_else(|| OperatorError::Size(shape.to_vec()))?;
    Ok(if shape.contains(&0) { 0 } else { product })
}

/// An axis, from the end where it is negative.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    let place = if axis < 0 { axis + rank as i64 } else { axis };
    let place = usize::try_from(place).ok().filter(|&place| place < rank);
    place.ok_or_else(|| OperatorError::Places(vec![axis]))
}

/// Distances of neighbours along each dimension.
pub(super) fn strides_of(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Distances where a tensor of `shape` is repeated to fill `whole`.
pub(super) fn repeated(shape: &[usize], whole: &[usize]) -> Vec<usize> {
    let missing = whole.len() - shape.len();
    let own = strides_of(shape);
    let stride = |axis: usize| if shape[axis] == 1 { 0 } else { own[axis] };
    (0..whole.len()).map(|axis| if axis < missing { 0 } else { stride(axis - missing) }).collect()
}

/// The shape that both are repeated to.
pub(super) fn common_shape(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let common = |axis| match (size(a, axis), size(b, axis)) {
        (one, other) if one == other || other == 1 => Ok(one),
        (1, other) => Ok(other),
        _ => Err(OperatorError::Shapes(vec![a.to_vec(), b.to_vec()])),
    };
    (0..rank).map(common).collect()
}

/// The size of the last dimension, and the distance of neighbours in it.
pub(super) fn last_of(shape: &[usize], strides: &[usize]) -> (usize, usize) {
    (shape.last().copied().unwrap_or(1), strides.last().copied().unwrap_or(0))
}

/// Goes through the rows of a shape: where each begins in arrays with these strides.
pub(super) fn for_each_row<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    mut row: impl FnMut([usize; N]),
) {
    let outer = shape.len().saturating_sub(1);
    if shape.contains(&0) {
        return;
    }
    let mut places = vec![0; outer];
    let mut first = [0; N];
    loop {
        row(first);
        // The next place, as an odometer counts.
        let mut axis = outer;
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            places[axis] += 1;
            for (first, strides) in first.iter_mut().zip(strides) {
                *first += strides[axis];
            }
            if places[axis] < shape[axis] {
                break;
            }
            places[axis] = 0;
            for (first, strides) in first.iter_mut().zip(strides) {
                *first -= strides[axis] * shape[axis];
            }
        }
    }
}
