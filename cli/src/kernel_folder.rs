//! Writes the files of a kernel into its folder.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use safetensors::tensor::{TensorView, serialize_to_file};
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::{CostModel, ElementType, Packed};
use sparserl_core::plan::{MachineCode, MatrixPlan, Plan, PolicyPlan};
use sparserl_gpu::compile::nvrtc::Cubin;

use crate::file_names::{CUBIN, PACKED, PLAN, PROGRAM, SOURCE};
use crate::output_folder::OutputFolder;
use crate::text;

/// Writes the files of a kernel for a matrix, as it was judged; the packed arrays where they are
/// wanted. The policy is the one that wrote the program; the plan names `others`, too.
pub(crate) fn write(
    (matrix, policy): (MatrixPlan, PolicyPlan),
    costs: &CostModel<'_>,
    kernel: &Kernel<Cubin>,
    (with_arrays, others): (bool, &[&'static str]),
    folder: &OutputFolder,
    at: &Path,
) -> anyhow::Result<Plan> {
    let Kernel { packed, source, code, .. } = kernel;
    let machine_code = code.as_ref().map(MachineCode::from);
    let files = vec![SOURCE, PROGRAM, PLAN];
    let mut plan = Plan::new(matrix, costs, policy, packed, source, machine_code, files);
    let source_file = source.text.clone() + &source.launch_comment(packed);
    plan.kernel.blake3 = Some(blake3::hash(source_file.as_bytes()).to_hex().to_string());
    folder.write(at.join(SOURCE), source_file)?;
    folder.write(at.join(PROGRAM), packed.program.to_string())?;
    if let Some(cubin) = code {
        folder.write(at.join(CUBIN), cubin.bytes())?;
        plan.files.push(CUBIN);
    }
    if with_arrays {
        write_arrays(packed, folder, &at.join(PACKED))?;
        plan.files.push(PACKED);
    }
    plan.files.extend_from_slice(others);
    folder.write(at.join(PLAN), text::json(&plan)?)?;
    Ok(plan)
}

/// Writes the packed arrays under their argument names. The metadata lists those that are
/// workspace, which only needs to be as large and zero.
fn write_arrays(packed: &Packed, folder: &OutputFolder, name: &Path) -> anyhow::Result<()> {
    let arrays: Vec<_> = packed.arguments().collect();
    let views = arrays.iter().map(|(name, array)| {
        let dtype = dtype(array.data.element_type());
        Ok((name, TensorView::new(dtype, vec![array.data.len()], array.data.bytes())?))
    });
    let views = views.collect::<anyhow::Result<Vec<_>>>()?;
    let workspace: Vec<_> =
        arrays.iter().filter(|(_, a)| a.role.is_workspace()).map(|(name, _)| name).collect();
    // One key: the order of several would differ from run to run.
    let metadata = HashMap::from([("workspace".to_owned(), serde_json::to_string(&workspace)?)]);
    folder.write_with(name, |path| {
        // The library makes a private file; this one is as readable as any other that is created.
        let permissions = File::create(path)?.metadata()?.permissions();
        serialize_to_file(views, Some(metadata), path)?;
        Ok(fs::set_permissions(path, permissions)?)
    })
}

/// The element type by the file format's name.
fn dtype(element: ElementType) -> safetensors::Dtype {
    use safetensors::Dtype;
    match element {
        ElementType::U8 => Dtype::U8,
        ElementType::U16 => Dtype::U16,
        ElementType::U32 => Dtype::U32,
        ElementType::U64 => Dtype::U64,
        ElementType::I32 => Dtype::I32,
        ElementType::F32 => Dtype::F32,
        ElementType::F64 => Dtype::F64,
        ElementType::F16 => Dtype::F16,
        ElementType::BF16 => Dtype::BF16,
    }
}
