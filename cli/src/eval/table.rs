//! What `eval` says on a terminal.

use std::cmp::Reverse;
use std::fmt::Write;

use comfy_table::Table;
use sparserl_core::outcome::Regime;
use sparserl_core::results::{Counts, Mean, Rival, Spread};
use sparserl_gpu::emulated::ground::Extent;

use super::results::{Emulator, EvalResults};
use super::summary::{MatrixSummary, Summary};
use crate::text::{table, time, times};

/// Stands for what there is not.
const NONE: &str = "–";
/// Faults that are told apart.
pub(super) const MOST_FAULTS: usize = 5;
/// Name of the rows over all matrices.
const ALL: &str = "all";

/// What became of the candidates, how fast the best are if they were measured, and under that what
/// means would hide. With pass@k for the given k.
pub(crate) fn text(results: &EvalResults, sizes: &[u32]) -> String {
    let summary = &Summary::new(results, sizes);
    let mut text = format!("{}\nShares for all are means over the matrices.\n", ends(summary));
    let all = &summary.all;
    let too_large: Vec<String> = all
        .pass_at
        .iter()
        .filter(|pass| pass.value.matrices < summary.matrices.len())
        .map(|pass| format!("pass@{}", pass.k))
        .collect();
    if !too_large.is_empty() {
        let _ = writeln!(
            text,
            "{} not reported where a matrix has fewer candidates than that.",
            too_large.join(", ")
        );
    }
    match results.emulator() {
        Some(emulator) => text.push_str(&emulation(results, emulator)),
        None => {
            let _ = writeln!(text, "\n{}", speeds(summary));
            text.push_str(
                "vs: time of the opponent over that of the best candidate; for all, the geometric mean \
                 and the least.\nfast@1: share of candidates that are right and faster than DEFAULT.\n",
            );
        }
    }
    for matrix in summary.matrices.iter().filter(|m| all.losses.contains(&m.matrix)) {
        let _ = writeln!(text, "loss: {}: {}", matrix.matrix, losses(matrix));
    }
    for name in &all.failures {
        let _ = writeln!(text, "no right candidate: {name}");
    }
    text.push_str(&faults(results));
    text
}

/// What is wrong with candidates: what is said of most first.
fn faults(results: &EvalResults) -> String {
    struct Fault<'r> {
        text: String,
        first: &'r str,
        count: usize,
    }
    let mut faults: Vec<Fault<'_>> = Vec::new();
    let candidates = results.matrices.iter().flat_map(|matrix| &matrix.candidates);
    for candidate in candidates.filter(|candidate| !candidate.outcome.is_right()) {
        let text = candidate.outcome.to_string();
        match faults.iter_mut().find(|fault| fault.text == text) {
            Some(fault) => fault.count += 1,
            None => faults.push(Fault { text, first: &candidate.candidate.file, count: 1 }),
        }
    }
    faults.sort_by_key(|fault| Reverse(fault.count));
    let mut text = String::new();
    for Fault { text: fault, first, count } in faults.iter().take(MOST_FAULTS) {
        let others = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let _ = writeln!(text, "not right: {first}{others}: {fault}");
    }
    if faults.len() > MOST_FAULTS {
        let rest: usize = faults.iter().skip(MOST_FAULTS).map(|fault| fault.count).sum();
        let _ = writeln!(text, "not right: {rest} more for other reasons; --json has all");
    }
    text
}

/// How candidates were emulated.
fn emulation(results: &EvalResults, Emulator { architecture, nvrtc }: &Emulator) -> String {
    let candidates = results.matrices.iter().flat_map(|matrix| &matrix.candidates);
    let extents: Vec<Extent> = candidates.filter_map(|result| result.candidate.emulated).collect();
    let sampled = extents.iter().filter(|extent| !extent.is_whole()).count();
    let rows = match sampled {
        0 => "on the whole matrix".to_owned(),
        some => {
            format!("{some} of {} on a sample of the rows (--sample 0 takes all)", extents.len())
        }
    };
    format!("Emulated as {architecture}, compiled by NVRTC {nvrtc}, {rows}; no times.\n")
}

/// What became of the candidates.
fn ends(summary: &Summary) -> Table {
    let all = &summary.all;
    let names = ["matrix", "n", "compiled", "no launch", "fault", "wrong", "timeout", "right"];
    let mut header = names.map(str::to_owned).to_vec();
    header.extend(all.pass_at.iter().map(|pass| format!("pass@{}", pass.k)));
    let mut rows = Vec::new();
    for matrix in &summary.matrices {
        let shares = [matrix.compiled, matrix.right].map(percent);
        let pass_at = matrix.pass_at.iter().map(|p| p.value.map_or(NONE.to_owned(), percent));
        rows.push(ends_row(matrix.matrix.clone(), matrix.counts, shares, pass_at));
    }
    let shares = [all.compiled, all.right].map(|mean| mean_text(mean, summary));
    let pass_at = all.pass_at.iter().map(|pass| mean_text(pass.value, summary));
    rows.push(ends_row(ALL.to_owned(), all.counts, shares, pass_at));
    table(header, rows)
}

fn ends_row(
    name: String,
    counts: Counts,
    [compiled, right]: [String; 2],
    pass_at: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut row = vec![name, counts.candidates.to_string()];
    row.push(format!("{}, {compiled}", counts.candidates - counts.compile_failed));
    let Counts { launch_failed, faulted, wrong, timed_out, .. } = counts;
    row.extend([launch_failed, faulted, wrong, timed_out].map(|count| count.to_string()));
    row.push(format!("{}, {right}", counts.right));
    row.extend(pass_at);
    row
}

/// How fast the best candidates are, each in every regime.
fn speeds(summary: &Summary) -> Table {
    let names = ["matrix", "best candidate", "regime", "time", "GFLOPS"];
    let mut header = names.map(str::to_owned).to_vec();
    header.extend(Rival::ALL.map(|rival| format!("vs {}", rival.name())));
    header.push("fast@1".to_owned());
    let mut rows = Vec::new();
    for matrix in &summary.matrices {
        for regime in Regime::ALL {
            let best = matrix.best.as_ref();
            let figures = best.and_then(|best| best.figures.get(regime).as_ref());
            let shown = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
            let mut row = vec![
                matrix.matrix.clone(),
                shown(best.map(|best| best.file.clone())),
                regime.name().to_owned(),
                shown(figures.map(|figures| time(figures.seconds))),
                shown(figures.map(|figures| format!("{:.2}", figures.gflops))),
            ];
            row.extend(Rival::ALL.map(|rival| shown(matrix.ratio(regime, rival).map(times))));
            row.push(shown(matrix.fast_1.get(regime).map(percent)));
            rows.push(row);
        }
    }
    for regime in Regime::ALL {
        let mut row = [ALL, "", regime.name(), "", ""].map(str::to_owned).to_vec();
        let spread =
            |rival| spread_text(summary.all.speedups.get(regime).get(rival).as_ref(), summary);
        row.extend(Rival::ALL.map(spread));
        row.push(mean_text(*summary.all.fast_1.get(regime), summary));
        rows.push(row);
    }
    table(header, rows)
}

/// A matrix's losses, each with its regime.
fn losses(matrix: &MatrixSummary) -> String {
    let loss = |regime: Regime, rival: Rival| {
        let ratio = matrix.ratio(regime, rival).filter(|&ratio| ratio < 1.0)?;
        Some(format!("{} {} {}", times(ratio), rival.name(), regime.name()))
    };
    let all = Regime::ALL.iter().flat_map(|&regime| Rival::ALL.map(|rival| loss(regime, rival)));
    all.flatten().collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A mean, with the number of matrices where it is not of all.
fn mean_text(mean: Mean, summary: &Summary) -> String {
    let Some(value) = mean.value else { return NONE.to_owned() };
    percent(value) + &of_some(mean.matrices, summary)
}

fn spread_text(spread: Option<&Spread>, summary: &Summary) -> String {
    let Some(Spread { matrices, geomean, least, .. }) = spread else { return NONE.to_owned() };
    format!("{}, least {}{}", times(*geomean), times(*least), of_some(*matrices, summary))
}

fn of_some(matrices: usize, summary: &Summary) -> String {
    match summary.matrices.len() {
        all if all == matrices => String::new(),
        all => format!(" ({matrices} of {all})"),
    }
}
