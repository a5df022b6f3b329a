//! What findings make of a kernel.

use sparserl_core::outcome::{Outcome, Violation};
use sparserl_emulator::finding::{Finding, FindingKind};
use sparserl_emulator::launch::Report;

use crate::judge::DISPLACEMENT;

/// What becomes of a kernel with these findings; `None` when there are none.
///
/// One that only writes where it may only read has a wrong result, as on a GPU. Anything else is a
/// fault: so is a kernel that does not end, because there is no clock here that could have run out.
pub(super) fn of_findings(findings: &[Finding]) -> Option<Outcome> {
    let shown = shown(findings)?;
    let reason = match findings.len() - 1 {
        0 => shown.to_string(),
        1 => format!("{shown}; and 1 more finding"),
        more => format!("{shown}; and {more} more findings"),
    };
    Some(match shown.kind {
        FindingKind::WriteToReadOnly => {
            Outcome::WrongResult { violation: Violation::InputChanged, reason }
        }
        _ => Outcome::Faulted { reason },
    })
}

/// The one of some findings that is shown: a fault, if there is one.
pub(super) fn shown(findings: &[Finding]) -> Option<&Finding> {
    let is_fault = |finding: &&Finding| finding.kind != FindingKind::WriteToReadOnly;
    findings.iter().find(is_fault).or(findings.first())
}

/// Numbers that wrap in what comes from anywhere may do so on purpose, as where two share a word:
/// that is a remark.
pub(super) fn forgive_wraps(report: &mut Report) {
    let wraps = |finding: &mut Finding| finding.kind == FindingKind::AddressOverflow;
    report.remarks.extend(report.findings.extract_if(.., wraps));
}

/// Takes out what says nothing of the kernel, but that the emulator gave it up: before it had
/// executed what may be needed, unless the budget suffices for that, or for want of memory or time.
/// Gives the first of that where nothing else was found.
pub(super) fn given_up(report: &mut Report, budget_suffices: bool) -> Option<Finding> {
    let is_limit = |finding: &mut Finding| match finding.kind {
        FindingKind::GivenUp => true,
        FindingKind::OverBudget => !budget_suffices,
        _ => false,
    };
    let limits: Vec<Finding> = report.findings.extract_if(.., is_limit).collect();
    limits.into_iter().next().filter(|_| report.findings.is_empty())
}

/// The same outcome of a kernel that is right on the matrix that it was judged on, but not on one
/// that is `what`.
pub(super) fn on_matrix(what: &str, outcome: Outcome) -> Outcome {
    on(&format!("on a matrix {what}"), outcome)
}

/// The same outcome, of what it was found on.
pub(super) fn on(what: &str, outcome: Outcome) -> Outcome {
    let on = |reason: String| format!("{what}: {reason}");
    match outcome {
        Outcome::Faulted { reason } => Outcome::Faulted { reason: on(reason) },
        Outcome::WrongResult { violation, reason } => {
            Outcome::WrongResult { violation, reason: on(reason) }
        }
        outcome => outcome,
    }
}

/// The first of some findings that sizes may cause that are no multiples of a power of two.
pub(super) fn misaligned(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.kind == FindingKind::Misaligned)
}

/// What is to be known of a kernel that is right where a matrix's sizes are multiples of the powers
/// of two that those of the matrix that it was judged on are, and not on one that is `what`.
pub(super) fn takes_multiples(what: &str, finding: &Finding) -> String {
    format!(
        "it takes sizes that are multiples of a power of two, as they are here; on a matrix {what}: \
         {finding}"
    )
}

/// The same outcome of a kernel that is right on operands that are aligned as allocations are.
pub(super) fn displaced(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Faulted { reason } => Outcome::Faulted {
            reason: format!(
                "{reason}; here dense operands are aligned to {DISPLACEMENT} bytes only"
            ),
        },
        outcome => outcome,
    }
}

/// The same outcome of a kernel that is right where nothing was launched before it.
pub(super) fn after_others(outcome: Outcome) -> Outcome {
    let says = |reason| format!("{reason}; right where no launch came before: it relies on state");
    match outcome {
        Outcome::Faulted { reason } => Outcome::Faulted { reason: says(reason) },
        Outcome::WrongResult { reason, .. } => {
            let violation = Violation::KeepsState;
            Outcome::WrongResult { violation, reason: says(reason) }
        }
        outcome => outcome,
    }
}

/// A wrong result, with what may be why.
pub(super) fn with_remarks(outcome: Outcome, remarks: &[Finding]) -> Outcome {
    match (outcome, remarks.first()) {
        (Outcome::WrongResult { violation, reason }, Some(remark)) => {
            let reason = format!("{reason}; perhaps by {remark}");
            Outcome::WrongResult { violation, reason }
        }
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: FindingKind) -> Finding {
        Finding {
            kind,
            ptx_line: 7,
            source: None,
            block: [1, 0, 0],
            thread: [2, 0, 0],
            address: None,
            detail: String::new(),
            count: 1,
        }
    }

    #[test]
    fn every_finding_makes_a_kernel_wrong() {
        assert_eq!(of_findings(&[]), None);
        for kind in FindingKind::ALL.into_iter().filter(|kind| !kind.is_remark()) {
            let outcome = of_findings(&[finding(kind)]).unwrap();
            assert!(!outcome.is_right(), "{kind}");
            let is_fault = matches!(outcome, Outcome::Faulted { .. });
            assert_eq!(is_fault, kind != FindingKind::WriteToReadOnly, "{kind}");
        }
    }

    #[test]
    fn what_wraps_is_why_at_most() {
        let findings = [FindingKind::Race, FindingKind::AddressOverflow].map(finding).to_vec();
        let mut report = Report { findings, ..Report::default() };
        forgive_wraps(&mut report);
        let kinds = |of: &[Finding]| of.iter().map(|finding| finding.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&report.findings), [FindingKind::Race]);
        assert_eq!(kinds(&report.remarks), [FindingKind::AddressOverflow]);
    }

    #[test]
    fn a_launch_that_is_given_up_says_nothing_of_the_kernel_by_that() {
        use FindingKind::{Endless, GivenUp, OverBudget, Race};
        let of = |kinds: &[FindingKind]| Report {
            findings: kinds.iter().copied().map(finding).collect(),
            ..Report::default()
        };
        let kind = |given_up: Option<Finding>| given_up.map(|finding| finding.kind);
        assert_eq!(kind(given_up(&mut of(&[OverBudget]), false)), Some(OverBudget));
        assert_eq!(kind(given_up(&mut of(&[GivenUp]), true)), Some(GivenUp));
        for (kinds, budget_suffices) in [
            (vec![OverBudget], true),
            (vec![Endless], false),
            (vec![Race, GivenUp], false),
            (vec![], false),
        ] {
            let mut report = of(&kinds);
            assert_eq!(given_up(&mut report, budget_suffices), None);
            assert_eq!(report.findings, of(&kinds[..kinds.len().min(1)]).findings);
        }
    }

    #[test]
    fn a_fault_is_shown_before_a_write() {
        let findings = [
            finding(FindingKind::WriteToReadOnly),
            finding(FindingKind::Race),
            finding(FindingKind::OutOfBounds),
        ];
        let Some(Outcome::Faulted { reason }) = of_findings(&findings) else { panic!() };
        assert_eq!(reason, "race (PTX line 7), block (1,0,0) thread (2,0,0); and 2 more findings");
    }
}
