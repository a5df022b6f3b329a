//! The program, run as a user runs it on a machine without a GPU.

#![allow(clippy::unwrap_used, reason = "test code")]

mod measured;
mod sampling;
mod support;
mod training;
