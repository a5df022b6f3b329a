use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::outcome::{Baseline, Outcome};

/// A candidate and what became of it. Results keep it as one object: what is said of the candidate
/// beside its `outcome`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateResult<C> {
    /// What whoever measured says of the candidate: at least which one it is.
    #[serde(flatten)]
    pub candidate: C,
    /// What became of it.
    pub outcome: Outcome,
}

/// What was measured in turn with candidates, as results keep it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opponents {
    /// The opponents' algorithms; empty where none were asked for.
    pub baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a device-to-device copy in the same run; absent where
    /// it was not measured.
    pub copy_bandwidth: Option<f64>,
}
