//! What `eval` says on a terminal.

use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use sparserl_core::outcome::CacheState;

use super::statistics::{Mean, Spread};
use super::summary::{Best, Counts, MatrixSummary, Summary, Totals};
use crate::verify::figures::{CACHES, Rival, cache_name, time, times};

/// Stands for what there is not.
const NONE: &str = "–";

/// Two tables, and under them what means would hide.
pub(crate) fn text(summary: &Summary) -> String {
    let mut text = format!("{}\n", ends(summary));
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
    let _ = writeln!(text, "\n{}", speeds(summary));
    text.push_str(
        "Times of cuSPARSE over those of the best candidate, and for all: geometric mean, and the \
         least.\nfast@1: share that is right and faster than DEFAULT.\n",
    );
    for matrix in summary.matrices.iter().filter(|m| all.losses.contains(&m.matrix)) {
        let _ = writeln!(text, "loss: {}: {}", matrix.matrix, losses(matrix));
    }
    for name in &all.failures {
        let _ = writeln!(text, "no right candidate: {name}");
    }
    text
}

/// What became of the candidates.
fn ends(summary: &Summary) -> Table {
    let all = &summary.all;
    let mut header: Vec<String> = [
        "matrix",
        "n",
        "no compile",
        "no launch",
        "fault",
        "wrong",
        "timeout",
        "right",
        "compiled",
        "right",
    ]
    .map(str::to_owned)
    .to_vec();
    header.extend(all.pass_at.iter().map(|pass| format!("pass@{}", pass.k)));
    let mut table = new_table(header);
    for matrix in &summary.matrices {
        let mut row = vec![matrix.matrix.clone()];
        row.extend(counts(matrix.counts));
        row.extend([matrix.compiled, matrix.right].map(percent));
        row.extend(matrix.pass_at.iter().map(|p| p.value.map_or(NONE.to_owned(), percent)));
        table.add_row(row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(counts(all.counts));
    let means = [all.compiled, all.right].into_iter().chain(all.pass_at.iter().map(|p| p.value));
    row.extend(means.map(|mean| mean_text(mean, summary)));
    table.add_row(row);
    right_aligned(table)
}

/// How fast the best candidates are.
fn speeds(summary: &Summary) -> Table {
    let mut header = vec!["matrix".to_owned(), "best candidate".to_owned()];
    for cache in CACHES {
        let name = cache_name(cache);
        header.extend([name.to_owned(), "GFLOPS".to_owned()]);
        header.extend(Rival::ALL.map(|rival| format!("vs {}", rival.name())));
        header.push("fast@1".to_owned());
    }
    let mut table = new_table(header);
    for matrix in &summary.matrices {
        let best = matrix.best.as_ref();
        let file = best.map_or(NONE.to_owned(), |best: &Best| best.file.clone());
        let mut row = vec![matrix.matrix.clone(), file];
        for cache in CACHES {
            let figures = best.and_then(|best| best.figures.get(cache).as_ref());
            row.push(figures.map_or(NONE.to_owned(), |figures| time(figures.seconds)));
            row.push(figures.map_or(NONE.to_owned(), |figures| format!("{:.1}", figures.gflops)));
            let speedup = |rival| matrix.speedup(cache, rival).map_or(NONE.to_owned(), times);
            row.extend(Rival::ALL.map(speedup));
            row.push(matrix.fast_1.get(cache).map_or(NONE.to_owned(), percent));
        }
        table.add_row(row);
    }
    table.add_row(all_speeds(&summary.all, summary));
    right_aligned(table)
}

fn all_speeds(all: &Totals, summary: &Summary) -> Vec<String> {
    let mut row = vec!["all".to_owned(), String::new()];
    for cache in CACHES {
        row.extend([String::new(), String::new()]);
        let spread = |rival| spread_text(*all.speedups.get(cache).get(rival), summary);
        row.extend(Rival::ALL.map(spread));
        row.push(mean_text(*all.fast_1.get(cache), summary));
    }
    row
}

/// A matrix's losses, each with its state of the cache.
fn losses(matrix: &MatrixSummary) -> String {
    let loss = |cache: CacheState, rival: Rival| {
        let speedup = matrix.speedup(cache, rival).filter(|&speedup| speedup < 1.0)?;
        Some(format!("{} {} {}", times(speedup), rival.name(), cache_name(cache)))
    };
    let all = CACHES.iter().flat_map(|&cache| Rival::ALL.map(|rival| loss(cache, rival)));
    all.flatten().collect::<Vec<_>>().join(", ")
}

fn new_table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table
}

fn right_aligned(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn counts(counts: Counts) -> [String; 7] {
    let Counts { candidates, right, compile_failed, launch_failed, faulted, wrong, timed_out } =
        counts;
    [candidates, compile_failed, launch_failed, faulted, wrong, timed_out, right]
        .map(|count| count.to_string())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A mean, with the number of matrices where it is not of all.
fn mean_text(mean: Mean, summary: &Summary) -> String {
    let Some(value) = mean.value else { return NONE.to_owned() };
    percent(value) + &of_some(mean.matrices, summary)
}

fn spread_text(spread: Option<Spread>, summary: &Summary) -> String {
    let Some(Spread { matrices, geomean, least }) = spread else { return NONE.to_owned() };
    format!("{}, {}{}", times(geomean), times(least), of_some(matrices, summary))
}

fn of_some(matrices: usize, summary: &Summary) -> String {
    match summary.matrices.len() {
        all if all == matrices => String::new(),
        all => format!(" ({matrices} of {all})"),
    }
}
