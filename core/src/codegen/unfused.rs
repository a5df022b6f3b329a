//! An epilogue by itself, in a kernel of its own.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::Write;

use super::dense::dense_type;
use super::ending::Ending;
use super::epilogue::Epilogue;
use super::items::{Dense, used_by, write_items};
use super::source::{CudaSource, EmitError};
use crate::layout::ElementType;
use crate::task::{Operation, Task};

impl Epilogue {
    /// A kernel that applies the epilogue to a product that is there already, in the type of sums:
    /// what a fused kernel has to agree with. Its parameters are `product`, `old`, `result`,
    /// `beta`, the number of elements and, where there are any, the caller's values.
    ///
    /// # Errors
    /// When memory does not suffice.
    pub fn unfused(&self, task: Task) -> Result<CudaSource, EmitError> {
        let (scalar, dense) = types(task);
        let place = match task.operation {
            Operation::SpMV => "element",
            Operation::SpMM { .. } => "element / N, element % N",
        };
        let parameters = format!(
            "const {scalar}* product, const {dense}* old,\n    \
             {dense}* result, {scalar} beta"
        );
        let user = self.user_argument();
        let body = format!(
            "const Scalar scaled = beta == 0 ? Scalar(0) : rounded(beta, old[element]);\n  \
             result[element] = to_dense(epilogue({place}, product[element], scaled, {user}));"
        );
        self.by_itself(task, "sparserl_unfused_epilogue", &parameters, &body)
    }

    /// A kernel that applies the epilogue to numbers at given places of the result, which need not
    /// be there. Its parameters are the `rows` and `columns` of the places, `product`, `old` and
    /// `result` in the type of sums, the number of places and, where there are any, the caller's
    /// values.
    ///
    /// # Errors
    /// When memory does not suffice.
    pub fn at_places(&self, task: Task) -> Result<CudaSource, EmitError> {
        let (scalar, _) = types(task);
        let place = match task.operation {
            Operation::SpMV => "rows[element]",
            Operation::SpMM { .. } => "rows[element], columns[element]",
        };
        let parameters = format!(
            "const unsigned* rows, const unsigned* columns,\n    \
             const {scalar}* product, const {scalar}* old, {scalar}* result"
        );
        let user = self.user_argument();
        let body =
            format!("result[element] = epilogue({place}, product[element], old[element], {user});");
        self.by_itself(task, "sparserl_epilogue_at_places", &parameters, &body)
    }

    /// The caller's values as the epilogue is given them.
    fn user_argument(&self) -> &'static str {
        if self.user.is_empty() { "User{}" } else { "user" }
    }

    /// A kernel with a thread for each `element`, which has further parameters behind those.
    fn by_itself(
        &self,
        task: Task,
        kernel: &str,
        parameters: &str,
        body: &str,
    ) -> Result<CudaSource, EmitError> {
        let (scalar, dense) = types(task);
        let ending = Ending::Fused(self.clone());
        let user = if self.user.is_empty() { "" } else { ", User user" };
        let is_for = Dense::of(task, Some(&ending));
        let types = used_by(dense, is_for);
        let functions = used_by("rounded to_dense", is_for);
        let mut text = format!("namespace {{\nusing Scalar = {scalar};\n");
        write_items(&mut text, &types, dense)?;
        text.push_str(&self.definitions(task));
        let functions: Vec<_> =
            functions.into_iter().filter(|item| !types.contains(item)).collect();
        write_items(&mut text, &functions, dense)?;
        write!(
            text,
            "\n}}  // namespace\n\n\
             extern \"C\" __global__ void {kernel}({parameters}, unsigned elements{user}) {{\n  \
             const unsigned element = blockIdx.x * blockDim.x + threadIdx.x;\n  \
             if (element >= elements) return;\n  \
             {body}\n}}\n"
        )?;
        Ok(CudaSource {
            text,
            kernel: kernel.to_string(),
            parameters: Vec::new(),
            constants: Vec::new(),
            waits_itself: false,
        })
    }
}

/// The types of sums and of dense operands, in CUDA.
fn types(task: Task) -> (&'static str, &'static str) {
    (ElementType::from(task.precision.accumulator()).cuda_type(), dense_type(task))
}
