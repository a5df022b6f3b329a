//! `mbarrier`, and the copies that arrive at one.

use super::PtxError;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{MBarrier, MBarrierAction, Op, Order, Phase, Space};

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
        let (mut order, mut scope, mut space) = (None, None, None);
        let (mut expects, mut by_parity, mut completes) = (false, false, true);
        for &modifier in rest {
            match modifier {
                "relaxed" => order = Some(Order::Relaxed),
                "acquire" => order = Some(Order::Acquire),
                "release" => order = Some(Order::Release),
                "cta" | "cluster" => scope = self.scope(modifier),
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
        self.emit(Op::MBarrier(MBarrier { address, action, order, scope }))
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
        Ok(Op::MBarrier(MBarrier { address, action, order: Order::Release, scope: None }))
    }
}
