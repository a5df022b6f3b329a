//! `report.html`: the results for people, in one file that needs nothing else.

mod groups;
mod opening;

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::style::RGBColor;
use sparserl_core::outcome::{Baseline, Outcome, Regime};
use sparserl_core::results::{Comparison, Rival};

use super::charts::{self, Along, Point};
use super::names;
use super::results::{BenchResults, Case, Generator};
use super::totals::{self, TaskTotals, ratio};
use crate::text::{time, times};
use opening::Section;

/// With more matrices than this, the chart that has a row for each stands beside the others.
const FEW: usize = 20;
const STYLE: &str = include_str!("report.css");

/// The page.
///
/// # Errors
/// When a chart cannot be drawn.
pub(crate) fn html(results: &BenchResults) -> anyhow::Result<String> {
    let results = &names::shortened(results);
    let tasks = totals::by_task(results);
    let (contents, parts): (Vec<Section>, Vec<Markup>) =
        sections(results, &tasks)?.into_iter().unzip();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "SparseRL against other libraries" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (opening::opening(results, &tasks, &contents))
                @for ((id, name), part) in contents.iter().zip(&parts) {
                    h2 id=(id) { (name) }
                    (part)
                }
            }
        }
    };
    Ok(page.into_string())
}

/// What follows the opening, each part with its place and name.
fn sections(
    results: &BenchResults,
    tasks: &[TaskTotals<'_>],
) -> anyhow::Result<Vec<(Section, Markup)>> {
    let section = |id: &str, name: &str| (id.to_owned(), name.to_owned());
    let mut sections = vec![
        (section("summary", "Summary"), summary(results, tasks)),
        (section("kinds", "By kind of matrix"), groups::groups(tasks)),
        (section("losses", "Losses"), losses(tasks)),
    ];
    if !results.skipped.is_empty() {
        sections.push((section("skipped", "Skipped"), skipped(results)));
    }
    for (index, totals) in tasks.iter().enumerate() {
        let section = (format!("charts-{index}"), format!("Charts: {}", totals.name()));
        sections.push((section, task_charts(totals)?));
    }
    for (index, totals) in tasks.iter().enumerate() {
        let section = (format!("cases-{index}"), format!("All cases: {}", totals.name()));
        sections.push((section, all_cases(totals)));
    }
    sections.push((section("run", "What was run"), what_was_run(results)));
    sections.push((section("reading", "How to read this"), explanation()));
    Ok(sections)
}

/// The regime that decides for a task: cold, where it was measured.
fn deciding(totals: &TaskTotals<'_>) -> Regime {
    let is_cold =
        |case: &&Case| case.chosen.as_ref().is_some_and(|chosen| chosen.figures.cold.is_some());
    if totals.cases.iter().any(is_cold) { Regime::Cold } else { Regime::Warm }
}

fn what_was_run(results: &BenchResults) -> Markup {
    let settings = &results.settings;
    let Generator { software, policy, policy_version } = &results.generator;
    let tasks: Vec<String> = settings.tasks.iter().map(ToString::to_string).collect();
    // A run that goes on with another's results may have had another one.
    let mut budgets: BTreeSet<usize> = results.cases.iter().map(|case| case.budget).collect();
    if budgets.is_empty() {
        budgets.insert(settings.budget);
    }
    let budgets: Vec<String> = budgets.iter().map(ToString::to_string).collect();
    let baselines = results.cases.iter().flat_map(|case| &case.opponents.baselines);
    let libraries: BTreeSet<&str> = baselines.map(|baseline| baseline.library.as_str()).collect();
    html! {
        dl {
            dt { "Measured" }
            dd { (results.started) " to " (results.updated) }
            @for device in &results.devices {
                dt { "GPU" }
                dd {
                    (device.name) ", " (device.target.architecture) ", "
                    (device.target.multiprocessors) " multiprocessors, "
                    (bytes(device.memory_bytes)) " of memory, "
                    (bytes(device.target.l2_bytes)) " of level-2 cache, driver for CUDA "
                    (device.driver.0) "." (device.driver.1)
                }
            }
            dt { "Software" }
            dd {
                "SparseRL " (software.version) ", policy " (policy) " " (policy_version) ", grammar " (software.grammar_hash)
            }
            @for library in libraries {
                dt { "Compared with" }
                dd { (library) }
            }
            dt { "Tasks" }
            dd { (tasks.join(", ")) }
            dt { "Candidates" }
            dd { "at most " (budgets.join(" or ")) " for each matrix and task" }
            dt { "Packing" }
            dd { "on " (results.host.threads) " host threads" }
            dt { "Matrices" }
            dd { (settings.matrices.join(" ")) }
        }
    }
}

fn summary(results: &BenchResults, tasks: &[TaskTotals<'_>]) -> Markup {
    html! {
        p { "Time of the opponent over ours: above 1 we are faster. " b { "DEFAULT" }
            " is the algorithm that cuSPARSE takes unasked, called without analysis, as most people call it; "
            b { "best" } " is the quickest of all algorithms of all opponents that ran, after analysis." }
        div.wide { table {
            thead {
                tr {
                    th.words rowspan="2" { "Task" }
                    th rowspan="2" { "Cases" }
                    th rowspan="2" { "None" br; "right" }
                    th.words rowspan="2" { "Cache" }
                    @for rival in Rival::ALL { th colspan="3" { "against " (rival.name()) } }
                }
                tr { @for _ in Rival::ALL { th { "mean" } th { "least" } th { "losses" } } }
            }
            tbody { @for totals in tasks { @for (i, regime) in Regime::ALL.into_iter().enumerate() { tr {
                @if i == 0 {
                    td.left rowspan=(Regime::ALL.len()) { (totals.name()) }
                    td rowspan=(Regime::ALL.len()) { (totals.cases.len()) }
                    td rowspan=(Regime::ALL.len()) { (totals.failures().len()) }
                }
                td.left { (regime.name()) }
                @for rival in Rival::ALL {
                    @if let Some(spread) = totals.spread(regime, rival) {
                        td { (times(spread.geomean)) }
                        td { (ratio_text(spread.least)) }
                        td { (spread.losses.len()) " of " (spread.matrices) }
                    } @else {
                        td { "–" } td { "–" } td { "–" }
                    }
                }
            } } } }
        } }
        p.note { "Means are geometric. “None right” counts cases without a right candidate; they have no ratio. "
            "Candidates: " (totals::outcomes_text(&results.cases)) "." }
    }
}

fn losses(tasks: &[TaskTotals<'_>]) -> Markup {
    let lost = tasks.iter().any(|totals| !totals.losses().is_empty());
    let failed = tasks.iter().any(|totals| !totals.failures().is_empty());
    html! {
        @if lost {
            p { "Cases with any ratio below 1, the worst of each task first." }
            div.wide { table {
                thead { tr {
                    th.words { "Matrix" }
                    th.words { "Task" }
                    @for regime in Regime::ALL { @for rival in Rival::ALL {
                        th { (regime.name()) br; "vs " (rival.name()) }
                    } }
                } }
                tbody { @for totals in tasks { @for case in totals.losses() { tr.loss {
                    td.name { (case.matrix.identity.name) }
                    td.left { (case.task) }
                    @for regime in Regime::ALL { @for rival in Rival::ALL {
                        td { (optional(ratio(case, regime, rival), ratio_text)) }
                    } }
                } } } }
            } }
        } @else {
            p { "No ratio is below 1." }
        }
        @if failed {
            h3 { "No right candidate" }
            ul { @for totals in tasks { @for case in totals.failures() {
                li { (case.matrix.identity.name) ", " (case.task) ": " (totals::outcomes_text([case])) }
            } } }
        }
        @if tasks.iter().any(|totals| !totals.unrivalled().is_empty()) {
            h3 { "No algorithm of an opponent ran" }
            ul { @for totals in tasks { @for case in totals.unrivalled() {
                li { (case.matrix.identity.name) ", " (case.task) }
            } } }
        }
    }
}

fn skipped(results: &BenchResults) -> Markup {
    html! {
        p { "Not measured, and in no other table:" }
        ul { @for skipped in &results.skipped { li {
            (skipped.matrix)
            @if let Some(task) = skipped.task { ", " (task) }
            ": " (skipped.reason)
        } } }
    }
}

/// The charts of a task, for the regime that decides.
fn task_charts(totals: &TaskTotals<'_>) -> anyhow::Result<Markup> {
    let regime = deciding(totals);
    let points: Vec<Point> = totals.cases.iter().filter_map(|case| point(case, regime)).collect();
    let rated = points.iter().filter(|p| p.default.is_some() || p.best.is_some()).count();
    let left_out = totals.cases.len() - rated;
    let state = regime.name();
    let mut figures = Vec::new();
    let drawn = format!("{} {state}", totals.name());
    if rated > 0 {
        figures.push(figure(
            &format!("Speedup by matrix, {drawn}"),
            "Right of the line at 1 we are faster.",
            true,
            &charts::ranked(&points)?,
        ));
        figures.push(figure(
            &format!("Speedup and size, {drawn}"),
            "Above the line at 1 we are faster. Both axes are logarithmic.",
            true,
            &charts::scatter(&points, Along::Nonzeros)?,
        ));
        figures.push(figure(
            &format!("Speedup and uneven rows, {drawn}"),
            "Rows of equal length are on the left. Both axes are logarithmic.",
            true,
            &charts::scatter(&points, Along::RowVariation)?,
        ));
    }
    if points.iter().any(|point| point.floor_share.is_some()) {
        figures.push(figure(
            &format!("Share of the floor, {drawn}"),
            "Ours. At 100 % it takes as long as copying the packed matrix and the dense operands once.",
            false,
            &charts::roofline(&points)?,
        ));
    }
    Ok(html! {
        @if left_out > 0 {
            p.note { (left_out) " of " (totals.cases.len()) " cases have no " (state)
                " ratio and are not drawn." }
        }
        div.charts.tall[rated > FEW] { @for figure in figures { (figure) } }
    })
}

fn point(case: &Case, regime: Regime) -> Option<Point> {
    let figures = case.chosen.as_ref()?.figures(regime)?;
    Some(Point {
        name: case.matrix.identity.name.clone(),
        nnz: case.matrix.identity.nnz,
        row_variation: case.matrix.row_variation,
        default: figures.default.as_ref().map(|found| found.ratio),
        best: figures.best.as_ref().map(|found| found.ratio),
        floor_share: figures.floor_share,
    })
}

fn figure(title: &str, caption: &str, legend: bool, svg: &str) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (title) }
                p { (caption) }
                @if legend {
                    p.legend {
                        span { (circle(charts::colour(Rival::Default))) "against DEFAULT" }
                        span { (triangle(charts::colour(Rival::Best))) "against the best" }
                    }
                }
            }
            div role="group" aria-label=(title) { (PreEscaped(svg)) }
        }
    }
}

fn circle(RGBColor(r, g, b): RGBColor) -> Markup {
    html! {
        svg viewBox="0 0 10 10" aria-hidden="true" {
            circle cx="5" cy="5" r="4" fill="none" stroke-width="1.6" stroke=(format!("rgb({r},{g},{b})")) {}
        }
    }
}

fn triangle(RGBColor(r, g, b): RGBColor) -> Markup {
    html! {
        svg viewBox="0 0 10 10" aria-hidden="true" {
            path d="M5 1 L9 8.5 L1 8.5 Z" fill=(format!("rgb({r},{g},{b})")) {}
        }
    }
}

fn all_cases(totals: &TaskTotals<'_>) -> Markup {
    html! {
        div.wide { table {
            thead { tr {
                th.words { "Matrix" }
                th { "Cache" }
                th { "Ratio" br; "best" } th { "Ratio" br; "DEFAULT" }
                th { "Ours" } th { "Best" } th { "DEFAULT" }
                th { "Nonzeros" } th { "Rows" } th { "Columns" }
                th { "Mean" br; "row" } th { "Variation" br; "of rows" } th { "Longest" br; "row" }
                th { "GFLOPS" } th { "GB/s" } th { "Of the" br; "floor" }
                th { "Packed" } th { "Packing" }
                th { "Pays after" br; "vs DEFAULT" } th { "Pays after" br; "vs best" }
                th.words { "Details" }
            } }
            tbody { @for &case in &totals.cases {
                @let states: Vec<Regime> = Regime::ALL.into_iter()
                    .filter(|&regime| case.chosen.as_ref().is_some_and(|c| c.figures(regime).is_some()))
                    .collect();
                @if states.is_empty() {
                    tr.loss {
                        td.name { (case.matrix.identity.name) }
                        td colspan="6" { span.below { "no right candidate" } }
                        (matrix_cells(case, 1))
                        td colspan="7" {}
                        td.words { (details(case)) }
                    }
                }
                @for (i, &regime) in states.iter().enumerate() {
                    tr.loss[is_loss(case, regime)] {
                        @if i == 0 { td.name rowspan=(states.len()) { (case.matrix.identity.name) } }
                        (ratio_cells(case, regime))
                        @if i == 0 { (matrix_cells(case, states.len())) }
                        (figure_cells(case, regime))
                        @if i == 0 { td.words rowspan=(states.len()) { (details(case)) } }
                    }
                }
            } }
        } }
    }
}

fn is_loss(case: &Case, regime: Regime) -> bool {
    Rival::ALL.iter().any(|&rival| ratio(case, regime, rival).is_some_and(|ratio| ratio < 1.0))
}

fn matrix_cells(case: &Case, rows: usize) -> Markup {
    let matrix = &case.matrix;
    html! {
        @for count in [matrix.identity.nnz, matrix.identity.rows, matrix.identity.cols] {
            td rowspan=(rows) { (grouped(count)) }
        }
        td rowspan=(rows) { (format!("{:.2}", matrix.row_mean)) }
        td rowspan=(rows) { (format!("{:.3}", matrix.row_variation)) }
        td rowspan=(rows) { (grouped(matrix.longest_row)) }
    }
}

/// What a reader looks for first: ratios and times.
fn ratio_cells(case: &Case, regime: Regime) -> Markup {
    let Some(chosen) = &case.chosen else { return html! {} };
    let Some(figures) = chosen.figures(regime) else { return html! {} };
    let theirs =
        |found: &Option<Comparison>| optional(found.as_ref().map(|f| f.seconds), microseconds);
    let rated = |found: &Option<Comparison>| optional(found.as_ref().map(|f| f.ratio), ratio_text);
    html! {
        td { (regime.name()) }
        td.figure { (rated(&figures.best)) }
        td.figure { (rated(&figures.default)) }
        td { (microseconds(figures.seconds)) }
        td {
            (theirs(&figures.best))
            @if let Some(best) = &figures.best { br; small { (best.algorithm) } }
        }
        td { (theirs(&figures.default)) }
    }
}

fn figure_cells(case: &Case, regime: Regime) -> Markup {
    let Some(chosen) = &case.chosen else { return html! {} };
    let Some(figures) = chosen.figures(regime) else { return html! {} };
    html! {
        td { (format!("{:.1}", figures.gflops)) }
        td { (optional(figures.bytes_per_second, |speed| html! { (format!("{:.0}", speed / 1e9)) })) }
        td { (optional(figures.floor_share, |share| html! { (format!("{:.0} %", 100.0 * share)) })) }
        td { (bytes(chosen.packed_bytes)) }
        td { (time(chosen.pack_seconds)) }
        td { (calls(figures.default.as_ref())) }
        td { (calls(figures.best.as_ref())) }
    }
}

fn calls(found: Option<&Comparison>) -> Markup {
    html! {
        @match found {
            None => "–",
            Some(Comparison { break_even_calls: Some(calls), .. }) => {
                (grouped(calls.ceil() as usize)) " calls"
            }
            Some(_) => "never",
        }
    }
}

/// What became of the candidates and of the opponents' algorithms.
fn details(case: &Case) -> Markup {
    html! {
        details {
            summary { (totals::outcomes_text([case])) }
            @if let Some(chosen) = &case.chosen
                && let Some(candidate) = case.candidates.get(chosen.index)
            {
                p.note { "Chosen: candidate " (chosen.index + 1) ", by " (chosen.by.name())
                    " times; searched in " (time(case.search_seconds)) }
                pre { (candidate.candidate.program) }
            }
            ul { @for baseline in &case.opponents.baselines { li { (baseline_text(baseline)) } } }
            @let bad = case.candidates.iter().enumerate().filter(|(_, c)| !c.outcome.is_right());
            ul { @for (index, candidate) in bad { li {
                "candidate " (index + 1) ": " (end(&candidate.outcome))
            } } }
        }
    }
}

fn end(outcome: &Outcome) -> String {
    outcome.to_string()
}

fn baseline_text(baseline: &Baseline) -> String {
    let name = format!("{} {}", baseline.library, baseline.algorithm);
    if let Err(why) = &baseline.timing {
        return format!("{name}: {why}");
    }
    let medians: Vec<String> = Regime::ALL
        .iter()
        .filter_map(|&regime| Some(format!("{} {}", time(baseline.median(regime)?), regime.name())))
        .collect();
    format!(
        "{name}: {}; analysis {}, buffer {}",
        medians.join(", "),
        time(baseline.analysis_seconds),
        bytes(baseline.buffer_bytes)
    )
}

fn explanation() -> Markup {
    html! {
        ul {
            li { "Times are medians of all samples of a product; results.json holds every sample. "
                b { "Cold" } ": the level-2 cache is flushed before each launch. " b { "Warm" }
                ": launches in a chain, with a tiny kernel between two of them that reads the result of the one and "
                "writes an operand of the other, its own time taken off. " b { "Back to back" }
                ": nothing between the launches, so that a library may let its own overlap. No two of them are ever "
                "mixed in a ratio." }
            li { "Values are drawn at random in place of the file's unless said otherwise: files that list a pattern "
                "only have the value 1 everywhere, which a kernel need not even store." }
            li { "Of each case's candidates, the fastest right one is taken: by the geometric mean of cold and warm "
                "times (both), or by those that the case names. Wrong candidates are counted and never taken." }
            li { "GFLOPS = 2 · nonzeros · columns of B / time. GB/s = (packed matrix + dense operands, each "
                "element once) / time." }
            li { "Floor = those bytes / bandwidth of a device copy measured in the same run. With a warm cache "
                "more than 100 % is possible, since the cache is faster than memory. Rows of B that no entry touches "
                "count as moved, so that a matrix with few entries in a row may exceed 100 % cold too." }
            li { "Of cuSPARSE, " b { "DEFAULT" } " is CSR called without analysis, as most people call it. The "
                "other algorithms of CSR are called after analysis, SELL and BSR after conversion. They are tried "
                "where they apply: SELL where it stores at most 4 slots per entry, BSR where at most 1.7, SPMVOP where the "
                "library has it, with its plan as analysis." }
            li { "Pays after = (packing − analysis of the opponent) / (time of the opponent − ours), in calls. Packing "
                "is on the host. The search, compiling the candidates and copying to the device are not in it." }
            li { "Variation of rows = standard deviation of the row lengths / their mean." }
        }
    }
}

fn optional<T>(value: Option<T>, show: impl Fn(T) -> Markup) -> Markup {
    value.map_or_else(|| html! { "–" }, show)
}

/// A ratio; one below 1 stands out, also without colours.
fn ratio_text(ratio: f64) -> Markup {
    html! { @if ratio < 1.0 { span.below { "▼ " (times(ratio)) } } @else { (times(ratio)) } }
}

fn microseconds(seconds: f64) -> Markup {
    html! { (time(seconds)) }
}

fn grouped(count: usize) -> String {
    indicatif::HumanCount(count as u64).to_string()
}

fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}
