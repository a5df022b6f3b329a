//! Launches that went wrong, once more, to see why.

use std::ops::Range;

use sparserl_core::matrix::{OffsetsView, Scalar};
use sparserl_core::reference::Reference;
use sparserl_emulator::finding::{Finding, FindingKind};
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run_traced;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::trace::Trace;

use super::super::diagnosis::{Failure, State, is_told_more};
use super::repaired::{Effort, OF_ENDLESS};
use super::{Kept, Launched, Operands, Trial};
use crate::candidate::executable::{Parameter, Prepared};
use crate::run::device::Geometry;

/// What a launch executed.
struct Recorded {
    trace: Trace,
    /// Of each parameter that is a buffer, its addresses.
    buffers: Vec<Option<Range<u64>>>,
}

/// A launch of which is known what it executed.
pub(super) struct Traced<D> {
    launched: Launched<D, Recorded>,
    /// What variables and workspace held before it: names, addresses and bytes.
    left: Vec<(String, u64, Vec<u8>)>,
}

impl<A: Scalar, D: Scalar> Trial<'_, A, D> {
    /// Launches it once more to see what it executes; `None` where that is too much.
    pub(super) fn traced(
        &self,
        operands: &Operands<D>,
        kept: Kept,
        how: &Options,
    ) -> Option<Traced<D>> {
        let traced = self.traced_from_begin(operands, kept, how)?;
        (!traced.launched.report.trace.is_full()).then_some(traced)
    }

    /// The same, or what it executes first where that is too much. Kernels of our own, and inputs
    /// that are not held whole, are not looked into.
    fn traced_from_begin(
        &self,
        operands: &Operands<D>,
        kept: Kept,
        how: &Options,
    ) -> Option<Traced<D>> {
        if !self.is_foreign() || self.named.is_some() {
            return None;
        }
        let by = |launch: &Launch, memory: &mut Memory| {
            let (_, trace) = run_traced(self.kernel, launch, memory, how)?;
            Ok(Recorded { trace, buffers: buffers(memory, &launch.arguments) })
        };
        let (mut left, workspace) = (kept.variables.bytes(), kept.workspace.clone());
        let launched = self.launch_by(by, operands, kept).ok()?;
        let Prepared { launch, names, .. } = self.prepared;
        let parameters = launch.parameters.iter().zip(names).zip(&launched.report.buffers);
        let working = parameters.filter_map(|((parameter, name), buffer)| match parameter {
            Parameter::Workspace { .. } => Some((name.clone(), buffer.as_ref()?.start)),
            _ => None,
        });
        left.extend(working.zip(workspace).map(|((name, start), bytes)| (name, start, bytes)));
        Some(Traced { launched, left })
    }

    fn failure<'f>(
        &'f self,
        operands: &'f Operands<D>,
        Traced { launched, .. }: &'f Traced<D>,
        reference: &'f Reference,
    ) -> Failure<'f, A, D> {
        let Geometry { grid, block, .. } = self.prepared.launch.geometry;
        Failure {
            repairs: Vec::new(),
            listing: self.foreign.map(|foreign| foreign.raw.listing()),
            kernel: self.kernel,
            prepared: self.prepared,
            matrix: self.matrix,
            offsets: match self.matrix.offsets() {
                OffsetsView::U32(offsets) => offsets.iter().map(|&offset| offset.into()).collect(),
                OffsetsView::U64(offsets) => offsets.to_vec(),
            },
            width: self.width,
            alpha: operands.alpha,
            beta: operands.beta,
            input: &operands.input,
            initial: operands.initial.as_deref().unwrap_or_default(),
            output: &launched.output,
            reference,
            trace: &launched.report.trace,
            sizes: [grid, block],
            buffers: launched.report.buffers.clone(),
        }
    }

    /// Why a result is wrong, and whether that is what earlier launches have left.
    pub(super) fn diagnose(
        &self,
        operands: &Operands<D>,
        before: Kept,
        how: &Options,
        (relies, longest, reference): (bool, u64, &Reference),
    ) -> Vec<Finding> {
        let kept = before.copied();
        let Some(launched) = self.traced(operands, before, how) else { return Vec::new() };
        let mut findings = Vec::new();
        if relies {
            findings = self.state_findings(&launched, operands, how);
        }
        if findings.is_empty() {
            let mut failure = self.failure(operands, &launched, reference);
            let excerpt = self.excerpt(&failure, None, operands, &kept, how);
            let of = (Some(longest), reference, excerpt.as_ref());
            failure.repairs = self.repairs(operands, &kept, how, of, Effort::RESULT);
            findings = failure.findings();
        }
        findings
    }

    /// Says of findings what launching it once more tells of them.
    pub(super) fn tell_more(
        &self,
        findings: &mut [Finding],
        operands: &Operands<D>,
        before: &Kept,
        (how, longest): (&Options, u64),
    ) {
        let endless = [FindingKind::Endless, FindingKind::OverBudget];
        let ends = !findings.iter().any(|finding| endless.contains(&finding.kind));
        // What went on until it was given up would do so again.
        let is_told = findings.iter().any(is_told_more);
        let budget = if ends || is_told { how.budget } else { how.budget.min(OF_ENDLESS) };
        let traced = Options { budget, ..how.clone() };
        let failed = self.traced_from_begin(operands, before.copied(), &traced);
        let (Some(failed), Ok(reference)) = (failed, self.reference(operands)) else { return };
        let mut failure = self.failure(operands, &failed, &reference);
        let block = findings.first().filter(|_| ends).map(|finding| finding.block);
        let excerpt =
            block.and_then(|block| self.excerpt(&failure, Some(block), operands, before, how));
        let of = (ends.then_some(longest), &reference, excerpt.as_ref());
        failure.repairs = self.repairs(operands, before, how, of, Effort::FINDINGS);
        if let (Some(repairs), Some(first)) = (failure.repairs_in_words(), findings.first_mut()) {
            first.detail += &format!("; {repairs}");
        }
        if is_told {
            failure.tell_more(findings);
        }
    }

    /// What a launch that went wrong has read of what earlier ones have left.
    pub(super) fn state_findings(
        &self,
        failed: &Traced<D>,
        operands: &Operands<D>,
        how: &Options,
    ) -> Vec<Finding> {
        let fresh = || Kept::fresh(self.prepared);
        let Some(first) = self.traced(operands, fresh(), how) else { return Vec::new() };
        let Ok(reference) = self.reference(operands) else { return Vec::new() };
        let mut states = Vec::new();
        for (name, address, left) in &failed.left {
            let variable = self.kernel.variables.iter().find(|variable| variable.name == *name);
            let fresh = variable.map_or_else(|| vec![0; left.len()], |v| v.initial.clone());
            let addresses = *address..*address + left.len() as u64;
            states.push(State { name: name.clone(), addresses, left: left.clone(), fresh });
        }
        self.failure(operands, failed, &reference)
            .state_findings(&states, &first.launched.report.trace)
    }
}

/// The addresses of arguments that are buffers.
fn buffers(memory: &Memory, arguments: &[Argument]) -> Vec<Option<Range<u64>>> {
    let of = |argument: &Argument| match argument {
        Argument::Buffer(buffer) => {
            let start = memory.address(*buffer);
            Some(start..start + memory.len(*buffer) as u64)
        }
        Argument::Value(_) => None,
    };
    arguments.iter().map(of).collect()
}
