//! What the report opens with, on one screen: the figures of each task, how its cases spread, the
//! worst losses, and what else the page has.

use std::collections::BTreeSet;

use maud::{Markup, html};
use sparserl_core::outcome::Regime;
use sparserl_core::results::Rival;

use super::{deciding, optional, ratio_text};
use crate::bench::charts;
use crate::bench::results::BenchResults;
use crate::bench::totals::{TaskTotals, ratio};
use crate::text::times;

/// Losses that are named here; the others stand in their section.
const MOST_LOSSES: usize = 10;
/// Of a strip, in CSS pixels.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 26.0;

/// A part of the page: where a link leads, and what it is called.
pub(super) type Section = (String, String);

pub(super) fn opening(
    results: &BenchResults,
    tasks: &[TaskTotals<'_>],
    sections: &[Section],
) -> Markup {
    html! {
        header {
            h1 { "SparseRL against other libraries" }
            p.lead { (subject(results)) }
            @if !tasks.is_empty() {
                (headline(tasks))
                p.note { "Time of the opponent over ours, geometric means: above 1 we are faster. "
                    b { "Best" } " is the quickest of all algorithms of all opponents, "
                    b { "DEFAULT" } " the one that cuSPARSE takes unasked." }
                (losses(tasks))
            }
            nav aria-label="Contents" { ul {
                @for (id, name) in sections { li { a href=(format!("#{id}")) { (name) } } }
            } }
        }
    }
}

/// `NVIDIA H200 · 47 matrices · cuSPARSE 12.9.4, Sputnik 1.0 · 2026-11-23`
fn subject(results: &BenchResults) -> String {
    let devices: BTreeSet<&str> = results.devices.iter().map(|d| d.name.as_str()).collect();
    let matrices: BTreeSet<&str> =
        results.cases.iter().map(|c| c.matrix.identity.name.as_str()).collect();
    let baselines = results.cases.iter().flat_map(|case| &case.opponents.baselines);
    let libraries: BTreeSet<&str> = baselines.map(|baseline| baseline.library.as_str()).collect();
    let noun = if matrices.len() == 1 { "matrix" } else { "matrices" };
    let day = results.updated.split('T').next().unwrap_or_default();
    let join = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let facts =
        [join(devices), format!("{} {noun}", matrices.len()), join(libraries), day.to_owned()];
    facts.into_iter().filter(|fact| !fact.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn headline(tasks: &[TaskTotals<'_>]) -> Markup {
    let range = charts::ratio_range(tasks.iter().flat_map(|totals| {
        let regime = deciding(totals);
        totals.cases.iter().filter_map(move |case| ratio(case, regime, Rival::Best))
    }));
    html! {
        div.wide { table.headline {
            thead { tr {
                th.words { "Task" }
                @for regime in Regime::ALL { th { (regime.name()) br; "vs best" } }
                @for regime in Regime::ALL { th { (regime.name()) br; "vs DEFAULT" } }
                th { "Losses" br; "to the best" }
                th.words { "Each matrix vs best" br;
                    (format!("{:.2}× to {:.1}×, line at 1×", range.start, range.end)) }
            } }
            tbody { @for totals in tasks {
                @let regime = deciding(totals);
                tr {
                    th.name scope="row" { (totals.name()) }
                    @for rival in [Rival::Best, Rival::Default] { @for regime in Regime::ALL {
                        @let spread = totals.spread(regime, rival);
                        td.figure[rival == Rival::Best] {
                            (optional(spread, |spread| ratio_text(spread.geomean)))
                        }
                    } }
                    td { (lost(totals)) " of " (totals.cases.len()) }
                    td.strip { (strip(totals, regime, range.start, range.end)) }
                }
            } }
        } }
    }
}

/// Cases that the best opponent wins in some regime.
fn lost(totals: &TaskTotals<'_>) -> usize {
    let is_lost = |case: &&&super::Case| {
        let ratios = Regime::ALL.iter().filter_map(|&regime| ratio(case, regime, Rival::Best));
        ratios.into_iter().any(|ratio| ratio < 1.0)
    };
    totals.cases.iter().filter(is_lost).count()
}

/// Each case of a task as a point on a logarithmic line.
fn strip(totals: &TaskTotals<'_>, regime: Regime, least: f64, most: f64) -> Markup {
    let x = |ratio: f64| (ratio / least).ln() / (most / least).ln() * WIDTH;
    let mut points: Vec<(f64, &str)> = totals
        .cases
        .iter()
        .filter_map(|case| {
            Some((ratio(case, regime, Rival::Best)?, case.matrix.identity.name.as_str()))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = format!("{:.1}", x(1.0));
    let label =
        format!("{}, {}: ratios of {} matrices", totals.name(), regime.name(), points.len());
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="group"
            aria-label=(label)
        {
            line x1=(line) x2=(line) y1="0" y2=(HEIGHT) stroke="#222" {}
            @for &(ratio, name) in &points {
                @let at = x(ratio);
                @let text = format!("{name} {}", times(ratio));
                g.spot tabindex="0" role="img" aria-label=(text) {
                    circle.dot cx=(format!("{at:.1}")) cy="18" r="4" {}
                    text.tip x=(format!("{:.1}", at.clamp(2.0, WIDTH - 2.0))) y="10"
                        text-anchor=(if at < WIDTH / 2.0 { "start" } else { "end" }) { (text) }
                }
            }
        }
    }
}

/// The worst losses against the best, in whichever regime.
fn losses(tasks: &[TaskTotals<'_>]) -> Markup {
    let mut losses: Vec<(f64, String)> = Vec::new();
    for totals in tasks {
        for case in &totals.cases {
            for regime in Regime::ALL {
                if let Some(ratio) = ratio(case, regime, Rival::Best).filter(|&ratio| ratio < 1.0) {
                    let (name, task) = (&case.matrix.identity.name, totals.name());
                    losses.push((ratio, format!("{name} ({task}, {})", regime.name())));
                }
            }
        }
    }
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    let more = losses.len().saturating_sub(MOST_LOSSES);
    html! {
        p.losses {
            b { "Losses to the best: " }
            @if losses.is_empty() { "none." }
            @for (index, (ratio, what)) in losses.iter().take(MOST_LOSSES).enumerate() {
                @if index > 0 { ", " }
                span.one { (ratio_text(*ratio)) " " (what) }
            }
            @if more > 0 { "; " a href="#losses" { "and " (more) " more" } "." }
        }
    }
}
