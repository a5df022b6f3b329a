//! The opponents, measured in turn with the kernels.
//!
//! ```text
//! Opponents ─► Contest::open ─► prepare (convert, analyse, plan) ─► Entry::enqueue, repeatedly
//! ```
//!
//! cuSPARSE is one of them, in whatever version; others come as shared libraries with a small C
//! interface, `gpu/opponents/opponent.h`, whose results are verified as those of kernels are. All
//! of this runs in the process that judges, which a library may take down: before its code runs it
//! is announced, so that the one that was at work can be excluded and the rest measured without it.

pub(crate) mod cusparse;
mod foreign;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::Scalar;

use crate::run::device::{Device, Stream};
use cusparse::{Algorithm, Cusparse, Product};
use foreign::Foreign;

/// Begins the reason where there is no cuSPARSE.
const NO_CUSPARSE: &str = "no cuSPARSE";

/// Whether this is why an opponent's algorithm did not run: there is no cuSPARSE, or none that
/// loads. [`Opponents::cusparse`] names one.
#[must_use]
pub fn lacks_cusparse(reason: &str) -> bool {
    reason.starts_with(NO_CUSPARSE)
}

/// The libraries that kernels are measured against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opponents {
    /// cuSPARSE, or the folder that it lies in; where none is named, the one that the loader finds.
    pub cusparse: Option<PathBuf>,
    /// Shared libraries with the interface of `opponents/opponent.h`.
    pub libraries: Vec<PathBuf>,
}

/// An opponent's algorithm, or what is known of it before its library is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opponent {
    pub(crate) source: Source,
    /// Name and version.
    pub(crate) library: String,
    pub(crate) algorithm: String,
    pub(crate) is_default: bool,
}

/// Where an opponent's code is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Source {
    /// cuSPARSE, when it is loaded.
    Cusparse,
    /// An algorithm of cuSPARSE.
    Algorithm(Algorithm),
    /// Another library, which has one algorithm.
    Library(PathBuf),
}

/// An opponent that took down the process that it ran in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excluded {
    pub(crate) opponent: Opponent,
    /// How, in one line.
    pub(crate) reason: String,
}

impl Source {
    fn excluded_by<'e>(&self, excluded: &'e [Excluded]) -> Option<&'e Excluded> {
        excluded.iter().find(|excluded| excluded.opponent.source == *self)
    }
}

/// Is told of an opponent before its code runs.
pub(crate) type Announce<'a> = &'a dyn Fn(&Opponent);

/// The opponents, loaded.
#[derive(Debug)]
pub(crate) struct Contest {
    /// Name and version; why it cannot be used, where it cannot.
    cusparse: Result<(String, Cusparse), String>,
    /// Each with what it is called without having been loaded.
    foreign: Vec<(Opponent, Result<Foreign, String>)>,
}

/// An opponent's algorithm, ready for a product or with the reason why it is not.
#[derive(Debug)]
pub(crate) struct Entry<'c> {
    pub(crate) opponent: Opponent,
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
    /// Loads what can be loaded. What cannot, or is excluded, is an entry with its reason, in every
    /// comparison.
    pub(crate) fn open(
        device: &Device,
        stream: &Arc<Stream>,
        opponents: &Opponents,
        excluded: &[Excluded],
        announce: Announce<'_>,
    ) -> Self {
        let open_cusparse = || {
            if let Some(excluded) = Source::Cusparse.excluded_by(excluded) {
                return Err(excluded.reason.clone());
            }
            announce(&unloaded_cusparse());
            let path = opponents.cusparse.as_deref();
            Cusparse::open(device, Arc::clone(stream), path)
                .and_then(|cusparse| Ok((format!("cuSPARSE {}", cusparse.version()?), cusparse)))
                .map_err(|error| error.to_string())
        };
        let open_foreign = |path: &PathBuf| {
            let called = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let opponent = Opponent {
                source: Source::Library(path.clone()),
                library: called.clone(),
                algorithm: called,
                is_default: false,
            };
            if let Some(excluded) = opponent.source.excluded_by(excluded) {
                return (excluded.opponent.clone(), Err(excluded.reason.clone()));
            }
            announce(&opponent);
            match Foreign::open(path) {
                Ok(foreign) => {
                    let (library, algorithm) = (foreign.library(), foreign.name().to_owned());
                    (Opponent { library, algorithm, ..opponent }, Ok(foreign))
                }
                Err(error) => (opponent, Err(error.to_string())),
            }
        };
        Self {
            cusparse: open_cusparse(),
            foreign: opponents.libraries.iter().map(open_foreign).collect(),
        }
    }

    /// An entry for each opponent that says why none of its algorithms can be made ready.
    pub(crate) fn refuse(&self, reason: &str) -> Vec<Entry<'_>> {
        let default = match &self.cusparse {
            Ok((library, _)) => Opponent { library: library.clone(), ..unloaded_cusparse() },
            Err(_) => unloaded_cusparse(),
        };
        let foreign = self.foreign.iter().map(|(opponent, _)| opponent.clone());
        let refused = |opponent| Entry { opponent, ready: Err(reason.to_owned()) };
        std::iter::once(default).chain(foreign).map(refused).collect()
    }

    /// The algorithms that apply to a product, ready or with the reason why not.
    pub(crate) fn prepare<'c, T: Scalar>(
        &'c self,
        device: &Device,
        stream: &'c Stream,
        product: &Product<'c, T>,
        excluded: &[Excluded],
        announce: Announce<'_>,
    ) -> Vec<Entry<'c>> {
        let mut entries = Vec::new();
        match &self.cusparse {
            Err(reason) => {
                entries.push(Entry { opponent: unloaded_cusparse(), ready: Err(reason.clone()) });
            }
            Ok((library, cusparse)) => {
                for algorithm in cusparse.algorithms(product.operation) {
                    let opponent = Opponent {
                        source: Source::Algorithm(algorithm),
                        library: library.clone(),
                        algorithm: algorithm.name().to_owned(),
                        is_default: algorithm.is_default(),
                    };
                    if let Some(excluded) = opponent.source.excluded_by(excluded) {
                        entries.push(excluded.entry());
                        continue;
                    }
                    announce(&opponent);
                    let prepared = cusparse.prepare(algorithm, product);
                    if prepared.as_ref().is_err_and(cusparse::CusparseError::is_not_applicable) {
                        continue;
                    }
                    let name = prepared.as_ref().map_or(algorithm.name(), |ready| ready.name());
                    entries.push(Entry {
                        opponent: Opponent { algorithm: name.to_owned(), ..opponent },
                        ready: prepared.map_err(|error| error.to_string()).map(|prepared| Ready {
                            analysis_seconds: prepared.analysis_seconds,
                            buffer_bytes: prepared.buffer_bytes,
                            plan: Plan::Cusparse(Box::new(prepared)),
                        }),
                    });
                }
            }
        }
        for (opponent, foreign) in &self.foreign {
            if let Some(excluded) = opponent.source.excluded_by(excluded) {
                entries.push(excluded.entry());
                continue;
            }
            let ready = match foreign {
                Err(reason) => Err(reason.clone()),
                Ok(foreign) => {
                    announce(opponent);
                    match foreign.prepare(device, stream, product).transpose() {
                        None => continue,
                        Some(plan) => plan.map_err(|error| error.to_string()).map(|plan| Ready {
                            analysis_seconds: plan.analysis_seconds,
                            buffer_bytes: plan.buffer_bytes,
                            plan: Plan::Foreign(plan),
                        }),
                    }
                }
            };
            entries.push(Entry { opponent: opponent.clone(), ready });
        }
        entries
    }
}

impl Excluded {
    fn entry<'c>(&self) -> Entry<'c> {
        Entry { opponent: self.opponent.clone(), ready: Err(self.reason.clone()) }
    }
}

/// cuSPARSE before its version is known.
fn unloaded_cusparse() -> Opponent {
    Opponent {
        source: Source::Cusparse,
        library: "cuSPARSE".to_owned(),
        algorithm: Algorithm::Default.name().to_owned(),
        is_default: true,
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
