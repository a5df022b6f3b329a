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
        let scalar = ElementType::from(task.precision.accumulator()).cuda_type();
        let dense = dense_type(task);
        let ending = Ending::Fused(self.clone());
        let kernel = "sparserl_unfused_epilogue";
        let (parameter, user) =
            if self.user.is_empty() { ("", "User{}") } else { (", User user", "user") };
        let place = match task.operation {
            Operation::SpMV => "element",
            Operation::SpMM { .. } => "element / N, element % N",
        };
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
             extern \"C\" __global__ void {kernel}(const {scalar}* product, const {dense}* old,\n    \
             {dense}* result, {scalar} beta, unsigned elements{parameter}) {{\n  \
             const unsigned element = blockIdx.x * blockDim.x + threadIdx.x;\n  \
             if (element >= elements) return;\n  \
             const Scalar scaled = beta == 0 ? Scalar(0) : rounded(beta, old[element]);\n  \
             result[element] = to_dense(epilogue({place}, product[element], scaled, {user}));\n}}\n"
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
