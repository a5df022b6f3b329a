//! The commands: what each is told, and how it shows what it does.

mod collect;
mod prepare;

pub(crate) use collect::{Collect, SERVE};
pub(crate) use prepare::Prepare;
