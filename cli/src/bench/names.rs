//! What matrices are called where there is little room.

use std::collections::{BTreeMap, BTreeSet};

use super::results::BenchResults;
use crate::matrix_source::without_extension;

/// The same results with matrices called without their extensions, but for those that only these
/// tell apart.
pub(crate) fn shortened(results: &BenchResults) -> BenchResults {
    let mut results = results.clone();
    let names = results.cases.iter().map(|case| &case.matrix.identity.name);
    let all: BTreeSet<String> =
        names.chain(results.skipped.iter().map(|skipped| &skipped.matrix)).cloned().collect();
    let mut sharing: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &all {
        *sharing.entry(without_extension(name)).or_default() += 1;
    }
    let shorten = |name: &mut String| {
        let short = without_extension(name);
        if !short.is_empty() && sharing.get(short) == Some(&1) {
            *name = short.to_owned();
        }
    };
    results.cases.iter_mut().for_each(|case| shorten(&mut case.matrix.identity.name));
    results.skipped.iter_mut().for_each(|skipped| shorten(&mut skipped.matrix));
    results
}
