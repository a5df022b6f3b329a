//! The opponents, measured in turn with the kernels.

pub(crate) mod cusparse;
