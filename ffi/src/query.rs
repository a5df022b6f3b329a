//! What is known of a plan.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use sparserl_core::codegen::Epilogue;
use sparserl_gpu::run::operator::WorkspaceLayout;

use crate::code::Compiled;
use crate::epilogue::ready_name;
use crate::kernel::{Known, PlanKernel};
use crate::op::Op;
use crate::plan::Plan;
use crate::side::Side;
use crate::status::{Failure, Status};
use crate::types;

impl PlanKernel {
    /// What is known, as of the end of the search.
    pub(crate) fn known(&self) -> Known {
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.clone().unwrap_or_else(|| self.known.clone())
    }

    fn seconds(&self) -> f64 {
        let known = self.known();
        known.measured.unwrap_or(known.predicted)
    }
}

impl Plan {
    /// The kernel that texts and numbers are of: the best, unless it waits for values in vain.
    fn described(&self, side: &Side) -> Arc<PlanKernel> {
        let updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        if updates.is_captured { side.current() } else { side.best() }
    }

    /// A text or machine code.
    pub(crate) fn text(&self, op: Op, key: i32) -> Result<Vec<u8>, Failure> {
        let side = self.side(op)?;
        let kernel = self.described(side);
        let Compiled { source, cubin, .. } =
            kernel.code.plain.as_ref().unwrap_or(&kernel.code.ending);
        match key {
            types::SPARSERL_TEXT_WHY => Ok(kernel.known().why.into_bytes()),
            types::SPARSERL_TEXT_PROGRAM => Ok(kernel.packed.program.to_string().into_bytes()),
            types::SPARSERL_TEXT_SOURCE => Ok(source.text.clone().into_bytes()),
            types::SPARSERL_TEXT_CUBIN => Ok(cubin.bytes().to_vec()),
            types::SPARSERL_TEXT_EPILOGUE => Ok(self.epilogue_text(side).into_bytes()),
            types::SPARSERL_TEXT_EPILOGUE_USER => {
                let user = side.epilogue.as_ref().map(Epilogue::declarations);
                Ok(user.unwrap_or_default().into_bytes())
            }
            _ => Err(Failure::argument(format_args!("there is no text {key}"))),
        }
    }

    /// The name of a side's epilogue, if it is one that is ready, else its text.
    fn epilogue_text(&self, side: &Side) -> String {
        let Some(epilogue) = &side.epilogue else { return String::new() };
        ready_name(epilogue, self.task.operation).unwrap_or(&epilogue.text).to_owned()
    }

    /// A number.
    pub(crate) fn number(&self, op: Op, key: i32) -> Result<f64, Failure> {
        let side = self.side(op)?;
        let kernel = self.described(side);
        let known = kernel.known();
        let unmeasured = || Failure::new(Status::NotKnown, "nothing was measured for this plan");
        match key {
            types::SPARSERL_NUMBER_PACKED_BYTES => {
                let arrays = kernel.packed.arguments();
                Ok(arrays.map(|(_, array)| array.data.bytes().len() as f64).sum())
            }
            types::SPARSERL_NUMBER_WORKSPACE_BYTES => {
                // Until values bring the kernel that waits for them, products use the other.
                let bytes = |kernel: &PlanKernel| WorkspaceLayout::new(&kernel.packed).bytes;
                let own = bytes(&kernel).max(bytes(&side.current()));
                Ok((own + self.copies_bytes()) as f64)
            }
            types::SPARSERL_NUMBER_DENSE => Ok(self.options.dense.number().into()),
            types::SPARSERL_NUMBER_PREDICTED_SECONDS => Ok(known.predicted),
            types::SPARSERL_NUMBER_MEASURED_SECONDS => known.measured.ok_or_else(unmeasured),
            types::SPARSERL_NUMBER_CSR_SECONDS => known.csr.ok_or_else(unmeasured),
            types::SPARSERL_NUMBER_CUSPARSE_SECONDS => known.cusparse.ok_or_else(unmeasured),
            types::SPARSERL_NUMBER_PLANNING_SECONDS => {
                self.progress.planning_seconds().ok_or_else(|| {
                    Failure::new(Status::NotKnown, "better programs are still searched for")
                })
            }
            types::SPARSERL_NUMBER_CALLS => Ok(self.calls.load(Ordering::Relaxed) as f64),
            types::SPARSERL_NUMBER_CALLS_TO_PAY => self.calls_to_pay(&kernel).ok_or_else(|| {
                Failure::new(
                    Status::NotKnown,
                    "the plan saves nothing over plain CSR, as far as is known",
                )
            }),
            _ => Err(Failure::argument(format_args!("there is no number {key}"))),
        }
    }

    /// Calls after which what was saved over plain CSR is what planning took.
    pub(crate) fn calls_to_pay(&self, kernel: &PlanKernel) -> Option<f64> {
        let known = kernel.known();
        let saved = match (known.measured, known.csr) {
            (Some(own), Some(csr)) => csr - own,
            // As far as is predicted.
            _ => known.csr_predicted - known.predicted,
        };
        let seconds = self.progress.planning_seconds()?;
        (saved > 0.0).then(|| (seconds / saved).ceil())
    }

    /// One line on what became of the plan.
    pub(crate) fn summary(&self) -> String {
        let kernel = self.described(&self.forward);
        let program = kernel.packed.program.to_string();
        let body: Vec<_> = program.lines().skip(2).collect();
        let pays = match self.calls_to_pay(&kernel) {
            Some(calls) => format!("pays after {calls} calls"),
            None => "not known when it pays".to_owned(),
        };
        let timed = if kernel.known().measured.is_some() { "measured" } else { "predicted" };
        format!(
            "sparserl: {} x {}, {} entries, {}: {} | {:.2} us {timed} | {} calls | {pays} | {}",
            self.rows,
            self.cols,
            self.nnz,
            self.task,
            body.join(" "),
            1e6 * kernel.seconds(),
            self.calls.load(Ordering::Relaxed),
            kernel.known().why
        )
    }
}
