//! Processes that serve: what may crash or hang does so in one of its own.

pub mod process;
pub mod worker;
