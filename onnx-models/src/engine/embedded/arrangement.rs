//! What moves numbers and changes shapes.

use super::tensor::{OperatorError, Tensor, axis_of, common_shape, count, repeated, strides_of};

type Result<T> = std::result::Result<T, OperatorError>;

/// 0 keeps a dimension, −1 follows from the others.
pub(super) fn reshape<T: Copy>(a: Tensor<T>, wanted: &[i64]) -> Result<Tensor<T>> {
    let refused = || OperatorError::Places(wanted.to_vec());
    let mut follows = None;
    let mut shape = Vec::with_capacity(wanted.len());
    for (axis, &size) in wanted.iter().enumerate() {
        shape.push(match size {
            0 => *a.shape().get(axis).ok_or_else(refused)?,
            -1 if follows.replace(axis).is_none() => 1,
            _ => usize::try_from(size).map_err(|_| refused())?,
        });
    }
    if let Some(axis) = follows {
        let others = count(&shape)?;
        shape[axis] = a.numbers().len().checked_div(others).ok_or_else(refused)?;
    }
    a.reshaped(shape)
}

/// With dimensions of one at these places of the result.
pub(super) fn unsqueeze<T: Copy>(a: Tensor<T>, axes: &[i64]) -> Result<Tensor<T>> {
    let rank = a.shape().len() + axes.len();
    let mut places = axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    if places.windows(2).any(|two| two[0] == two[1]) {
        return Err(OperatorError::Places(axes.to_vec()));
    }
    let mut shape = a.shape().to_vec();
    places.into_iter().for_each(|place| shape.insert(place, 1));
    a.reshaped(shape)
}

/// Without these dimensions, each of one.
pub(super) fn squeeze<T: Copy>(a: Tensor<T>, axes: &[i64]) -> Result<Tensor<T>> {
    let rank = a.shape().len();
    let places = axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>>>()?;
    if places.iter().any(|&place| a.shape()[place] != 1) {
        return Err(OperatorError::Places(axes.to_vec()));
    }
    let stays = |(axis, &size): (usize, &usize)| (!places.contains(&axis)).then_some(size);
    let shape = a.shape().iter().enumerate().filter_map(stays).collect();
    a.reshaped(shape)
}

pub(super) fn transpose<T: Copy>(a: &Tensor<T>, order: &[i64]) -> Result<Tensor<T>> {
    let rank = a.shape().len();
    let places = order.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>>>()?;
    if places.len() != rank || (0..rank).any(|axis| !places.contains(&axis)) {
        return Err(OperatorError::Places(order.to_vec()));
    }
    let own = strides_of(a.shape());
    let strides: Vec<usize> = places.iter().map(|&place| own[place]).collect();
    a.strided(places.iter().map(|&place| a.shape()[place]).collect(), &strides)
}

/// Repeated to a shape.
pub(super) fn expand<T: Copy>(a: &Tensor<T>, wanted: &[i64]) -> Result<Tensor<T>> {
    let wanted: Vec<usize> = wanted
        .iter()
        .map(|&size| usize::try_from(size).map_err(|_| OperatorError::Places(wanted.to_vec())))
        .collect::<Result<_>>()?;
    let shape = common_shape(a.shape(), &wanted)?;
    let strides = repeated(a.shape(), &shape);
    a.strided(shape, &strides)
}

/// One behind the other along an axis.
pub(super) fn concat<T: Copy>(all: &[Tensor<T>], axis: i64) -> Result<Tensor<T>> {
    let shapes = || OperatorError::Shapes(all.iter().map(|a| a.shape().to_vec()).collect());
    let first = all.first().ok_or_else(shapes)?;
    let axis = axis_of(axis, first.shape().len())?;
    let mut shape = first.shape().to_vec();
    shape[axis] = 0;
    for a in all {
        let alike = a.shape().len() == shape.len()
            && (0..shape.len()).all(|at| at == axis || a.shape()[at] == shape[at]);
        if !alike {
            return Err(shapes());
        }
        shape[axis] += a.shape()[axis];
    }
    let [before, _, _] = first.around(axis);
    let mut numbers = Vec::with_capacity(count(&shape)?);
    for place in 0..before {
        for a in all {
            let [_, here, after] = a.around(axis);
            numbers.extend_from_slice(&a.numbers()[place * here * after..][..here * after]);
        }
    }
    Tensor::new(shape, numbers)
}

/// The elements at some places of an axis.
pub(super) fn gather<T: Copy>(a: &Tensor<T>, places: &Tensor<i64>, axis: i64) -> Result<Tensor<T>> {
    let axis = axis_of(axis, a.shape().len())?;
    let [before, here, after] = a.around(axis);
    let taken: Vec<usize> =
        places.numbers().iter().map(|&place| axis_of(place, here)).collect::<Result<_>>()?;
    let shape = [&a.shape()[..axis], places.shape(), &a.shape()[axis + 1..]].concat();
    let mut numbers = Vec::with_capacity(count(&shape)?);
    for outer in 0..before {
        for place in &taken {
            numbers.extend_from_slice(&a.numbers()[(outer * here + place) * after..][..after]);
        }
    }
    Tensor::new(shape, numbers)
}

/// The elements from the first to before the last of an axis; both may count from its end, or lie
/// beyond it.
pub(super) fn slice<T: Copy>(a: &Tensor<T>, [first, last, axis]: [i64; 3]) -> Result<Tensor<T>> {
    let axis = axis_of(axis, a.shape().len())?;
    let [before, here, after] = a.around(axis);
    let place = |place: i64| {
        let place = if place < 0 { place.saturating_add(here as i64) } else { place };
        usize::try_from(place).unwrap_or(0).min(here)
    };
    let (first, last) = (place(first), place(last));
    let kept = last.saturating_sub(first);
    let mut shape = a.shape().to_vec();
    shape[axis] = kept;
    let mut numbers = Vec::with_capacity(count(&shape)?);
    for outer in 0..before {
        numbers.extend_from_slice(&a.numbers()[(outer * here + first) * after..][..kept * after]);
    }
    Tensor::new(shape, numbers)
}
