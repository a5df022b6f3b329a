//! What blocks may take of a multiprocessor, and those that wait for each other of a device. The
//! emulator would run blocks that take more; a driver refuses to launch them.

use sparserl_core::target::{Architecture, Target};
use sparserl_emulator::code::{Kernel, WARP};
use sparserl_emulator::machine::room;
use sparserl_emulator::occupancy::{REGISTERS, blocks_by_registers};

use crate::candidate::raw::GRID_BARRIER;
use crate::run::device::Geometry;

/// Bytes of a multiprocessor's shared memory that the system takes for each block, since `sm_80`.
const SYSTEM_SHARED: u32 = 1 << 10;
/// Threads that a block may have.
const MOST_THREADS: u32 = 1024;

/// Why no device of an architecture launches a kernel so, if none does.
pub(super) fn refusal(
    architecture: Architecture,
    kernel: &Kernel,
    geometry: &Geometry,
) -> Option<String> {
    let name = &kernel.name;
    let (declared, dynamic) = (kernel.shared_bytes, geometry.dynamic_shared);
    let most = most_shared(architecture);
    if declared.saturating_add(dynamic) > most {
        return Some(format!(
            "blocks of {} bytes of shared memory, {declared} that `{name}` declares and {dynamic} of the launch: \
             {architecture} has {most} for a block",
            u64::from(declared) + u64::from(dynamic)
        ));
    }
    let threads = geometry.block.iter().fold(1, |n: u32, &size| n.saturating_mul(size));
    // Of more threads something else is said.
    if let Some(registers) = kernel.machine_registers.filter(|_| threads <= MOST_THREADS)
        && blocks_by_registers(registers, threads.div_ceil(WARP as u32)) == 0
    {
        return Some(format!(
            "blocks of {threads} threads of {registers} registers: {architecture} has {REGISTERS} for a block, which \
             warps take by 256; __launch_bounds__({threads}) makes the compiler keep to that"
        ));
    }
    let is_cooperative = kernel.variables.iter().any(|variable| variable.name == GRID_BARRIER);
    let blocks = geometry.grid.iter().fold(1_u64, |n, &size| n.saturating_mul(size.into()));
    let room = room(kernel, threads as usize, dynamic);
    (is_cooperative && blocks > room as u64).then(|| {
        format!(
            "its grid waits for all of its {blocks} blocks, of which the largest devices have room for {room} at once: \
             make the grid smaller"
        )
    })
}

/// Bytes of shared memory that a block may have where the host asks for them, as judges do.
fn most_shared(architecture: Architecture) -> u32 {
    let all = Target::from(architecture).shared_memory_bytes;
    if architecture >= Architecture::Sm80 { all - SYSTEM_SHARED } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As CUDA's programming guide has it, "Technical Specifications per Compute Capability".
    #[test]
    fn blocks_have_the_shared_memory_of_their_architecture() {
        use Architecture::{Sm70, Sm75, Sm80, Sm86, Sm87, Sm89, Sm90, Sm100, Sm120};
        let kib = [Sm70, Sm75, Sm80, Sm86, Sm87, Sm89, Sm90, Sm100, Sm120]
            .map(|architecture| most_shared(architecture) >> 10);
        assert_eq!(kib, [96, 64, 163, 99, 163, 99, 227, 227, 99]);
    }
}
