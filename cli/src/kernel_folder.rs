//! Writes the files of a kernel into its folder.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use safetensors::tensor::{TensorView, serialize_to_file};
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::{ElementType, Packed};
use sparserl_core::pipeline::Artefact;
use sparserl_core::plan::{Origin, Plan};
use sparserl_gpu::compile::nvrtc::Cubin;

use crate::file_names::{CUBIN, PACKED, PLAN, PROGRAM, SOURCE};
use crate::output_folder::OutputFolder;
use crate::text;

/// Writes the files of a kernel for a matrix, as it was judged; the packed arrays where they are
/// wanted. The plan names `others`, too.
pub(crate) fn write<V>(
    origin: Origin<'_>,
    artefact: &Artefact<Cubin, V>,
    (with_arrays, others): (bool, &[&'static str]),
    folder: &OutputFolder,
    at: &Path,
) -> anyhow::Result<Plan> {
    let Kernel { packed, code, .. } = &artefact.kernel;
    let source_file = artefact.kernel.source_file();
    let source_hash = blake3::hash(source_file.as_bytes()).to_hex().to_string();
    let mut files = vec![SOURCE, PROGRAM, PLAN];
    files.extend(code.as_ref().map(|_| CUBIN));
    files.extend(with_arrays.then_some(PACKED));
    files.extend_from_slice(others);
    let plan = Plan::new(origin, artefact, source_hash, files);
    folder.write(at.join(SOURCE), source_file)?;
    folder.write(at.join(PROGRAM), packed.program.to_string())?;
    if let Some(cubin) = code {
        folder.write(at.join(CUBIN), cubin.bytes())?;
    }
    if with_arrays {
        write_arrays(packed, folder, &at.join(PACKED))?;
    }
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
