//! Bulk copies, and the fences between them and what threads access.

use super::PtxError;
use super::atomics::{exists, named_operation, named_type};
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{AtomicOperation, AtomicType, BulkCopy, BulkStore, Op, ProxyFence, Space};

impl<'m> Lowering<'m> {
    /// `cp.async.bulk`: to shared memory, which an mbarrier counts, or from there to global memory.
    pub(super) fn copy_bulk(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let (hints, space) = match modifiers {
            ["prefetch", "L2", ..] => return Ok(Op::Nothing),
            ["commit_group"] if operands.is_empty() => return Ok(Op::BulkStore(BulkStore::Commit)),
            ["wait_group", read @ ..] if matches!(read, [] | ["read"]) => {
                let [Operand::Integer(groups)] = operands else {
                    return Err(self.error("`cp.async.bulk.wait_group` takes a number"));
                };
                let groups = u32::try_from(*groups).unwrap_or(u32::MAX);
                let reads_only = !read.is_empty();
                return Ok(Op::BulkStore(BulkStore::Wait { groups, reads_only }));
            }
            ["global", "shared::cta", "bulk_group", hints @ ..] => {
                return self.store_bulk("cp.async.bulk", modifiers, hints, operands, None);
            }
            ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"] => {
                (&[][..], Space::Shared)
            }
            [
                "shared::cluster" | "shared::cta",
                "global",
                "mbarrier::complete_tx::bytes",
                hints @ ..,
            ] => (hints, Space::Global),
            _ => return Err(self.unknown_bulk("cp.async.bulk", modifiers)),
        };
        let has_policy = hints.contains(&"L2::cache_hint");
        let is_multicast = hints.contains(&"multicast::cluster");
        if hints.len() != usize::from(has_policy) + usize::from(is_multicast) {
            return Err(self.unknown_bulk("cp.async.bulk", modifiers));
        }
        let operands = match operands.split_last() {
            Some((_, rest)) if has_policy => rest,
            _ => operands,
        };
        let (operands, blocks) = match operands.split_last() {
            Some((mask, rest)) if is_multicast => (rest, Some(self.read(mask, 16)?)),
            _ => (operands, None),
        };
        let [destination, source, bytes, barrier] = operands else {
            return Err(self.error("`cp.async.bulk` takes two addresses, a size and an mbarrier"));
        };
        Ok(Op::CopyBulk(BulkCopy {
            destination: self.address(destination, Some(Space::Cluster))?,
            source: self.address(source, Some(space))?,
            bytes: self.read(bytes, 32)?,
            barrier: self.address(barrier, Some(Space::Cluster))?,
            blocks,
        }))
    }

    /// `cp.reduce.async.bulk` to global memory.
    pub(super) fn reduce_bulk(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        const NAME: &str = "cp.reduce.async.bulk";
        let unknown = || self.unknown_bulk(NAME, modifiers);
        let ["global", "shared::cta", "bulk_group", rest @ ..] = modifiers else {
            return Err(unknown());
        };
        let (hints, rest) = match rest {
            ["L2::cache_hint", rest @ ..] => (&["L2::cache_hint"][..], rest),
            rest => (&[][..], rest),
        };
        let (operation, ty) = match rest {
            [operation, "noftz", ty @ ("f16" | "bf16")] => (operation, ty),
            [operation, ty] => (operation, ty),
            _ => return Err(unknown()),
        };
        let known = named_operation(operation).zip(named_type(ty));
        let reduction = known.filter(|&(operation, (ty, _, is_bits))| {
            let swaps = [AtomicOperation::Exchange, AtomicOperation::CompareAndSwap];
            let is_half = matches!(ty, AtomicType::F16x2 | AtomicType::BF16x2 | AtomicType::B16);
            !swaps.contains(&operation) && !is_half && exists(operation, ty, is_bits)
        });
        let (operation, (ty, ..)) = reduction.ok_or_else(unknown)?;
        self.store_bulk(NAME, modifiers, hints, operands, Some((operation, ty)))
    }

    /// A bulk copy from shared to global memory.
    fn store_bulk(
        &mut self,
        name: &str,
        modifiers: &[&str],
        hints: &[&str],
        operands: &'m [Operand],
        reduction: Option<(AtomicOperation, AtomicType)>,
    ) -> Result<Op, PtxError> {
        let (destination, source, bytes) = match (hints, operands) {
            ([], [destination, source, bytes])
            | (["L2::cache_hint"], [destination, source, bytes, _]) => (destination, source, bytes),
            _ => return Err(self.unknown_bulk(name, modifiers)),
        };
        Ok(Op::BulkStore(BulkStore::Issue {
            destination: self.address(destination, Some(Space::Global))?,
            source: self.address(source, Some(Space::Shared))?,
            bytes: self.read(bytes, 32)?,
            reduction,
        }))
    }

    fn unknown_bulk(&self, name: &str, modifiers: &[&str]) -> PtxError {
        self.error(format!("unknown instruction `{name}.{}`", modifiers.join(".")))
    }
}

/// Which accesses `fence.proxy.async` orders, by what stands behind it.
pub(super) fn proxy_fence(modifiers: &[&str]) -> Option<ProxyFence> {
    match modifiers {
        [] => Some(ProxyFence::All),
        ["global"] => Some(ProxyFence::Global),
        ["shared::cta" | "shared::cluster"] => Some(ProxyFence::Shared),
        _ => None,
    }
}
