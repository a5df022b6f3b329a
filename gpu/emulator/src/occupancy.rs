//! Registers of a multiprocessor, as blocks take them: those of CUDA's occupancy calculator
//! (`cuda_occupancy.h`), which are the same from `sm_70` to `sm_121`.

use crate::compute::WARP;

/// 32-bit registers of a multiprocessor, all of which one block may have.
pub const REGISTERS: u32 = 1 << 16;
/// Parts that a multiprocessor has, each with its share of the registers and of a block's warps.
const PARTS: u32 = 4;
/// Registers that a warp takes are a multiple of this.
const UNIT: u32 = 256;

/// Blocks of so many warps that a multiprocessor has registers for at once, where each thread takes
/// that many. A driver refuses to launch blocks of which it has not for one.
#[must_use]
pub fn blocks_by_registers(of_a_thread: u32, warps: u32) -> u32 {
    let of_a_warp = of_a_thread.saturating_mul(WARP as u32).max(1).next_multiple_of(UNIT);
    let in_a_part = REGISTERS / PARTS / of_a_warp;
    in_a_part * PARTS / warps.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_given_to_warps_by_parts() {
        assert_eq!(blocks_by_registers(64, 32), 1);
        // 65 are taken as 72, of which a part has for 7 warps.
        assert_eq!(blocks_by_registers(65, 32), 0);
        assert_eq!(blocks_by_registers(65, 28), 1);
        assert_eq!((blocks_by_registers(32, 8), blocks_by_registers(33, 8)), (8, 6));
        assert_eq!((blocks_by_registers(255, 8), blocks_by_registers(255, 9)), (1, 0));
        // Three warps to a part: of 65,536 registers as many as for 12 warps are used.
        assert_eq!((blocks_by_registers(168, 12), blocks_by_registers(168, 13)), (1, 0));
    }
}
