//! The commands: what each is told, and how it shows what it does.

mod archive;
mod collect;
mod evaluate;
mod fit_cost;
mod measuring;
mod prepare;
mod replay;
mod train;

pub(crate) use archive::Archive;
pub(crate) use collect::Collect;
pub(crate) use evaluate::Evaluate;
pub(crate) use fit_cost::FitCost;
pub(crate) use measuring::{Measuring, SERVE};
pub(crate) use prepare::Prepare;
pub(crate) use replay::Replay;
pub(crate) use train::Train;
