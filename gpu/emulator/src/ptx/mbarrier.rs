//! `mbarrier`, and the copies that arrive at one.

use super::PtxError;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{BulkStore, MBarrier, MBarrierAction, Op, Order, Phase, Space};

impl<'m> Lowering<'m> {
    /// `mbarrier`, after the PTX ISA, "Parallel Synchronization and Communication Instructions".
    pub(super) fn mbarrier(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let unknown = || format!("unknown instruction `mbarrier.{}`", modifiers.join("."));
        let Some((&what, rest)) = modifiers.split_first() else {
            return Err(self.error(unknown()));
        };
        if what == "pending_count" {
            let [destination, state] = operands else { return Err(self.error(unknown())) };
            let (destination, state) = (self.write_bits(destination, 32)?, self.read(state, 64)?);
            // The state holds the number in its lower half.
            return self.emit_compute(&["cvt", "u32", "u64"], &[destination, state]);
        }
        let (mut order, mut space) = (None, None);
        let (mut expects, mut by_parity, mut completes) = (false, false, true);
        for &modifier in rest {
            match modifier {
                "relaxed" => order = Some(Order::Relaxed),
                "acquire" => order = Some(Order::Acquire),
                "release" => order = Some(Order::Release),
                // Kernels in use mostly leave it out, whoever they mean.
                "cta" | "cluster" => {}
                "shared" | "shared::cta" => space = Some(Space::Shared),
                "shared::cluster" if what != "init" => space = Some(Space::Cluster),
                "expect_tx" if what.starts_with("arrive") => expects = true,
                "parity" if what.ends_with("wait") => by_parity = true,
                "noComplete" if what.starts_with("arrive") => completes = false,
                "b64" => {}
                _ => return Err(self.error(unknown())),
            }
        }
        let (result, operands) = match (what, operands) {
            ("arrive" | "arrive_drop", [result, rest @ ..]) => (Some(result), rest),
            ("test_wait" | "try_wait", [result, rest @ ..]) => (Some(result), rest),
            (_, operands) => (None, operands),
        };
        let [address, operands @ ..] = operands else { return Err(self.error(unknown())) };
        let address = self.address(address, space)?;
        let action = match (what, operands) {
            ("init", [count]) => MBarrierAction::Initialise { count: self.read(count, 32)? },
            ("inval", []) => MBarrierAction::Invalidate,
            ("expect_tx", [bytes]) => MBarrierAction::Expect { bytes: self.read(bytes, 32)? },
            ("complete_tx", [bytes]) => MBarrierAction::Complete { bytes: self.read(bytes, 32)? },
            ("arrive" | "arrive_drop", operands) => {
                let (count, bytes) = match (operands, expects) {
                    ([], false) => (None, None),
                    ([count], false) => (Some(self.read(count, 32)?), None),
                    ([bytes], true) => (None, Some(self.read(bytes, 32)?)),
                    _ => return Err(self.error(unknown())),
                };
                let state = match result {
                    Some(Operand::Ignored) | None => None,
                    Some(state) => Some(self.write_bits(state, 64)?),
                };
                MBarrierAction::Arrive { state, count, bytes, drops: what != "arrive", completes }
            }
            ("test_wait" | "try_wait", [phase, rest @ ..])
                if rest.len() <= usize::from(what == "try_wait") =>
            {
                let phase = match by_parity {
                    true => Phase::OfParity(self.read(phase, 32)?),
                    false => Phase::OfState(self.read(phase, 64)?),
                };
                let result = result.ok_or_else(|| self.error(unknown()))?;
                MBarrierAction::Test { phase, is_complete: self.write_bits(result, 1)? }
            }
            _ => return Err(self.error(unknown())),
        };
        let order = order.unwrap_or(match action {
            MBarrierAction::Arrive { .. } => Order::Release,
            MBarrierAction::Test { .. } => Order::Acquire,
            _ => Order::Relaxed,
        });
        self.emit(Op::MBarrier(MBarrier { address, action, order }))
    }

    /// `cp.async.mbarrier.arrive`: an arrival when the thread's copies so far are done.
    pub(super) fn arrive_behind_copies(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let (counts, space) = match modifiers {
            ["noinc", space @ .., "b64"] => (true, space),
            [space @ .., "b64"] => (false, space),
            _ => (false, modifiers),
        };
        let (space, [address]) = (
            match space {
                [] => None,
                ["shared" | "shared::cta"] => Some(Space::Shared),
                _ => return Err(self.error("unknown form of `cp.async.mbarrier.arrive`")),
            },
            operands,
        ) else {
            return Err(self.error("`cp.async.mbarrier.arrive` takes an address"));
        };
        let address = self.address(address, space)?;
        let action = MBarrierAction::ArriveBehindCopies { is_counted: counts };
        Ok(Op::MBarrier(MBarrier { address, action, order: Order::Release }))
    }

    /// `cp.async.bulk` from shared to global memory, and what waits for it.
    fn bulk_store(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Option<BulkStore>, PtxError> {
        Ok(Some(match (modifiers, operands) {
            (["commit_group"], []) => BulkStore::Commit,
            (["wait_group"] | ["wait_group", "read"], [Operand::Integer(groups)]) => {
                BulkStore::Wait { groups: u32::try_from(*groups).unwrap_or(u32::MAX) }
            }
            (["global", "shared::cta", "bulk_group"], [destination, source, bytes])
            | (
                ["global", "shared::cta", "bulk_group", "L2::cache_hint"],
                [destination, source, bytes, _],
            ) => BulkStore::Issue {
                destination: self.address(destination, Some(Space::Global))?,
                source: self.address(source, Some(Space::Shared))?,
                bytes: self.read(bytes, 32)?,
            },
            _ => return Ok(None),
        }))
    }

    /// `cp.async.bulk`: from global to shared memory, which an mbarrier counts, and back.
    pub(super) fn copy_bulk(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        if let Some(store) = self.bulk_store(modifiers, operands)? {
            return Ok(Op::BulkStore(store));
        }
        let hints = match modifiers {
            ["prefetch", "L2", ..] => return Ok(Op::Nothing),
            [
                "shared::cluster" | "shared::cta",
                "global",
                "mbarrier::complete_tx::bytes",
                hints @ ..,
            ] => hints,
            _ => &["other"],
        };
        let operands = match (hints, operands) {
            ([], operands) => operands,
            (["L2::cache_hint"], [operands @ .., _]) => operands,
            _ => {
                let name = modifiers.join(".");
                return Err(self.error(format!("unknown instruction `cp.async.bulk.{name}`")));
            }
        };
        let [destination, source, bytes, barrier] = operands else {
            return Err(self.error("`cp.async.bulk` takes two addresses, a size and an mbarrier"));
        };
        Ok(Op::CopyBulk {
            destination: self.address(destination, Some(Space::Shared))?,
            source: self.address(source, Some(Space::Global))?,
            bytes: self.read(bytes, 32)?,
            barrier: self.address(barrier, Some(Space::Shared))?,
        })
    }
}
