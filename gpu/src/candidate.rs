//! What is judged: a kernel with all that its launch takes, made of a program or of CUDA from
//! anywhere.

pub mod executable;
pub mod raw;
