//! Addresses of the shared memory of a cluster: `mapa`, `getctarank`.

use super::PtxError;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{CLUSTER_WINDOW, Constant, SHARED_BITS};

impl<'m> Lowering<'m> {
    /// `mapa`: the address in another block that corresponds to one of the own shared memory.
    pub(super) fn map_address(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let unknown = || format!("unknown instruction `mapa.{}`", modifiers.join("."));
        let (start, bits) = match modifiers {
            ["shared::cluster", "u32"] => (0, 32),
            ["shared::cluster", "u64"] => (0, 64),
            ["u64"] => (CLUSTER_WINDOW.start, 64),
            _ => return Err(self.error(unknown())),
        };
        let [destination, address, rank] = operands else {
            return Err(self.error("`mapa` takes three operands"));
        };
        let (address, rank) = (self.read(address, bits)?, self.read(rank, 32)?);
        let destination = self.write_bits(destination, bits)?;
        let within = self.constant(Constant::Bits((1 << SHARED_BITS) - 1), bits)?;
        let [shift, one] = [SHARED_BITS.into(), 1].map(Constant::Bits);
        let (shift, one) = (self.constant(shift, 32)?, self.constant(one, bits)?);
        let start = self.constant(Constant::Bits(start), bits)?;
        let (distance, mut block) = (self.fresh(bits)?, rank);
        let [and, or, shl, add] = if bits == 64 {
            block = self.fresh(64)?;
            self.emit_compute(&["cvt", "u64", "u32"], &[block, rank])?;
            [["and", "b64"], ["or", "b64"], ["shl", "b64"], ["add", "s64"]]
        } else {
            [["and", "b32"], ["or", "b32"], ["shl", "b32"], ["add", "s32"]]
        };
        let above = self.fresh(bits)?;
        self.emit_compute(&and, &[distance, address, within])?;
        self.emit_compute(&add, &[above, block, one])?;
        self.emit_compute(&shl, &[above, above, shift])?;
        self.emit_compute(&or, &[distance, distance, above])?;
        self.emit_compute(&or, &[destination, distance, start])
    }

    /// `getctarank`: the rank of the block in whose shared memory an address lies.
    pub(super) fn rank_of_address(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let bits = match modifiers {
            ["shared::cluster", "u32"] => 32,
            ["shared::cluster", "u64"] | ["u64"] => 64,
            _ => {
                let reason = format!("unknown instruction `getctarank.{}`", modifiers.join("."));
                return Err(self.error(reason));
            }
        };
        let [destination, address] = operands else {
            return Err(self.error("`getctarank` takes two operands"));
        };
        let mut address = self.read(address, bits)?;
        let destination = self.write_bits(destination, 32)?;
        if bits == 64 {
            // Where the windows of generic addresses lie is above these bits.
            let low = self.fresh(32)?;
            self.emit_compute(&["cvt", "u32", "u64"], &[low, address])?;
            address = low;
        }
        let [shift, zero, one] = [SHARED_BITS.into(), 0, 1].map(Constant::Bits);
        let shift = self.constant(shift, 32)?;
        let (zero, one) = (self.constant(zero, 32)?, self.constant(one, 32)?);
        let own = self.constant(Constant::ClusterRank, 32)?;
        let (above, rank, is_own) = (self.fresh(32)?, self.fresh(32)?, self.fresh(1)?);
        self.emit_compute(&["shr", "u32"], &[above, address, shift])?;
        self.emit_compute(&["setp", "eq", "u32"], &[is_own, above, zero])?;
        self.emit_compute(&["sub", "s32"], &[rank, above, one])?;
        self.emit_compute(&["selp", "b32"], &[destination, own, rank, is_own])
    }
}
