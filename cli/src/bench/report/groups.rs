//! The figures of kinds of matrices apart: real ones, and each generated family.

use maud::{Markup, html};
use sparserl_core::outcome::Regime;
use sparserl_core::results::{Rival, Spread};

use super::{optional, ratio_text};
use crate::bench::totals::TaskTotals;

/// A table of each task's kinds.
pub(super) fn groups(tasks: &[TaskTotals<'_>]) -> Markup {
    html! {
        p { "Geometric means of the ratios, and in brackets the least of them. The values that were multiplied stand "
            "with the task where they are the file's own; else they are drawn at random." }
        div.wide { table {
            thead { tr {
                th.words { "Task" }
                th.words { "Matrices" }
                th { "Cases" }
                @for rival in [Rival::Best, Rival::Default] { @for regime in Regime::ALL {
                    th { (regime.name()) br; "vs " (rival.name()) }
                } }
            } }
            tbody { @for totals in tasks {
                @let groups = totals.by_kind();
                @for (index, (name, group)) in groups.iter().enumerate() { tr {
                    @if index == 0 { td.left rowspan=(groups.len()) { (totals.name()) } }
                    td.left { (name) }
                    td { (group.cases.len()) }
                    @for rival in [Rival::Best, Rival::Default] { @for regime in Regime::ALL {
                        td { (optional(group.spread(regime, rival), |Spread { geomean, least, .. }| html! {
                            (ratio_text(geomean)) " (" (ratio_text(least)) ")"
                        })) }
                    } }
                } }
            } }
        } }
    }
}
