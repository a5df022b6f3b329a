//! The opponents, measured in turn with the kernels.
//!
//! ```text
//! Opponents ─► Contest::open ─► prepare (convert, analyse, plan) ─► Entry::enqueue, again and again
//! ```
//!
//! cuSPARSE is one of them, in whatever version; others come as shared libraries with a small C
//! interface, `gpu/opponents/opponent.h`, whose results are verified as those of kernels are. All
//! of this runs in the process that judges, which a library may take down.

pub(crate) mod cusparse;
mod foreign;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::Scalar;

use crate::run::device::{Device, Stream};
use cusparse::{Algorithm, Cusparse, Product};
use foreign::Foreign;

/// Which libraries kernels are measured against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opponents {
    /// cuSPARSE, or the folder that it lies in; where none is named, the one that the loader finds.
    pub cusparse: Option<PathBuf>,
    /// Shared libraries with the interface of `opponents/opponent.h`.
    pub libraries: Vec<PathBuf>,
}

/// The opponents, loaded.
#[derive(Debug)]
pub(crate) struct Contest {
    /// Name and version; why it cannot be used, where it cannot.
    cusparse: Result<(String, Cusparse), String>,
    /// Each with what it is called without having been loaded.
    foreign: Vec<(String, Result<Foreign, String>)>,
}

/// An opponent's algorithm, ready for a product or with the reason why it is not.
#[derive(Debug)]
pub(crate) struct Entry<'c> {
    pub(crate) library: String,
    pub(crate) algorithm: String,
    pub(crate) is_default: bool,
    pub(crate) ready: Result<Ready<'c>, String>,
}

/// What is needed to ask for the product, and what it took to make.
#[derive(Debug)]
pub(crate) struct Ready<'c> {
    pub(crate) analysis_seconds: f64,
    pub(crate) buffer_bytes: u64,
    plan: Plan<'c>,
}

#[derive(Debug)]
enum Plan<'c> {
    Cusparse(Box<cusparse::Prepared<'c>>),
    Foreign(foreign::Plan<'c>),
}

impl Contest {
    /// Loads what can be loaded. What cannot is an entry with its reason, in every comparison.
    pub(crate) fn open(device: &Device, stream: &Arc<Stream>, opponents: &Opponents) -> Self {
        let cusparse = Cusparse::open(device, Arc::clone(stream), opponents.cusparse.as_deref());
        let cusparse = cusparse
            .and_then(|cusparse| Ok((format!("cuSPARSE {}", cusparse.version()?), cusparse)));
        let foreign = |path: &PathBuf| {
            let called = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (called, Foreign::open(path).map_err(|error| error.to_string()))
        };
        Self {
            cusparse: cusparse.map_err(|error| error.to_string()),
            foreign: opponents.libraries.iter().map(foreign).collect(),
        }
    }

    /// The algorithms that apply to a product, ready or with the reason why not.
    pub(crate) fn prepare<'c, T: Scalar>(
        &'c self,
        device: &Device,
        stream: &'c Stream,
        product: &Product<'c, T>,
    ) -> Vec<Entry<'c>> {
        let mut entries = Vec::new();
        match &self.cusparse {
            Err(reason) => entries.push(Entry {
                library: "cuSPARSE".to_owned(),
                algorithm: Algorithm::Default.name().to_owned(),
                is_default: true,
                ready: Err(reason.clone()),
            }),
            Ok((library, cusparse)) => {
                for algorithm in cusparse.algorithms(product.operation) {
                    let prepared = cusparse.prepare(algorithm, product);
                    if prepared.as_ref().is_err_and(cusparse::CusparseError::is_not_applicable) {
                        continue;
                    }
                    let name = prepared.as_ref().map_or(algorithm.name(), |ready| ready.name());
                    entries.push(Entry {
                        library: library.clone(),
                        algorithm: name.to_owned(),
                        is_default: algorithm.is_default(),
                        ready: prepared.map_err(|error| error.to_string()).map(|prepared| Ready {
                            analysis_seconds: prepared.analysis_seconds,
                            buffer_bytes: prepared.buffer_bytes,
                            plan: Plan::Cusparse(Box::new(prepared)),
                        }),
                    });
                }
            }
        }
        for (called, foreign) in &self.foreign {
            let (library, algorithm, ready) = match foreign {
                Err(reason) => (called.clone(), called.clone(), Err(reason.clone())),
                Ok(foreign) => match foreign.prepare(device, stream, product).transpose() {
                    None => continue,
                    Some(plan) => (
                        foreign.library(),
                        foreign.name().to_owned(),
                        plan.map_err(|error| error.to_string()).map(|plan| Ready {
                            analysis_seconds: plan.analysis_seconds,
                            buffer_bytes: plan.buffer_bytes,
                            plan: Plan::Foreign(plan),
                        }),
                    ),
                },
            };
            entries.push(Entry { library, algorithm, is_default: false, ready });
        }
        entries
    }
}

impl Ready<'_> {
    /// Enqueues the product. It can be captured into a graph, after it was enqueued once outside of
    /// one: the first call loads a library's kernels.
    ///
    /// # Errors
    /// When the library refuses; in one line.
    pub(crate) fn enqueue(&self) -> Result<(), String> {
        match &self.plan {
            Plan::Cusparse(prepared) => prepared.enqueue().map_err(|error| error.to_string()),
            Plan::Foreign(plan) => plan.enqueue().map_err(|error| error.to_string()),
        }
    }
}
