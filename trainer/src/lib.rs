//! Training of policies: so far the matrices that they are trained on.

pub mod corpus;
