//! What the lanes of a warp or the threads of a block do together: shuffles, votes, barriers,
//! fences.

use super::PtxError;
use super::bulk::proxy_fence;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{
    AtomicOperation, BarrierOperation, BarrierReduction, BulkStore, Op, ProxyFence, Scope,
    ShuffleMode, VoteMode,
};

impl<'m> Lowering<'m> {
    /// `None` when there is no such instruction.
    pub(super) fn warp(
        &mut self,
        name: &str,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Option<Op>, PtxError> {
        Ok(Some(match (name, modifiers, operands) {
            ("shfl", ["sync", mode, "b32"], [destination, source, lane, clamp, members]) => {
                let mode = match *mode {
                    "up" => ShuffleMode::Up,
                    "down" => ShuffleMode::Down,
                    "bfly" => ShuffleMode::Butterfly,
                    "idx" => ShuffleMode::Index,
                    _ => return Ok(None),
                };
                let (destination, in_range) = self.write_with_predicate(destination, 32)?;
                let (source, lane) = (self.read(source, 32)?, self.read(lane, 32)?);
                let (clamp, members) = (self.read(clamp, 32)?, self.read(members, 32)?);
                Op::Shuffle { mode, destination, in_range, source, lane, clamp, members }
            }
            ("vote", ["sync", mode, ty], [destination, source, members]) => {
                let (mode, bits) = match (*mode, *ty) {
                    ("all", "pred") => (VoteMode::All, 1),
                    ("any", "pred") => (VoteMode::Any, 1),
                    ("uni", "pred") => (VoteMode::Uniform, 1),
                    ("ballot", "b32") => (VoteMode::Ballot, 32),
                    _ => return Ok(None),
                };
                let destination = self.write_bits(destination, bits)?;
                let (source, negated) = self.read_predicate(source)?;
                Op::Vote { mode, destination, source, negated, members: self.read(members, 32)? }
            }
            (
                "match",
                [mode @ ("any" | "all"), "sync", ty @ ("b32" | "b64")],
                [destination, source, members],
            ) => {
                let all = *mode == "all";
                let (destination, is_equal) = self.write_with_predicate(destination, 32)?;
                if is_equal.is_some() && !all {
                    return Err(self.error("`match.any` gives no predicate"));
                }
                let source = self.read(source, if *ty == "b64" { 64 } else { 32 })?;
                let members = self.read(members, 32)?;
                Op::Match { all, destination, is_equal, source, members }
            }
            ("redux", ["sync", operation, ty], [destination, source, members]) => {
                let operation = match (*operation, *ty) {
                    ("add", "u32" | "s32") => AtomicOperation::Add,
                    ("min", "u32" | "s32") => AtomicOperation::Min,
                    ("max", "u32" | "s32") => AtomicOperation::Max,
                    ("and", "b32") => AtomicOperation::And,
                    ("or", "b32") => AtomicOperation::Or,
                    ("xor", "b32") => AtomicOperation::Xor,
                    _ => return Ok(None),
                };
                let signed = *ty == "s32";
                let destination = self.write_bits(destination, 32)?;
                let (source, members) = (self.read(source, 32)?, self.read(members, 32)?);
                Op::Reduce { operation, signed, destination, source, members }
            }
            ("activemask", ["b32"], [destination]) => {
                Op::ActiveMask { destination: self.write_bits(destination, 32)? }
            }
            ("elect", ["sync"], [Operand::Pair(pair), members]) => {
                let destination = match &pair[0] {
                    Operand::Ignored => None,
                    destination => Some(self.write_bits(destination, 32)?),
                };
                let is_elected = self.write_bits(&pair[1], 1)?;
                Op::Elect { destination, is_elected, members: self.read(members, 32)? }
            }
            ("bar", ["warp", "sync"], [members]) => {
                Op::WarpBarrier { members: self.read(members, 32)? }
            }
            ("barrier", ["cluster", modifiers @ ..], []) => {
                let (aligned, modifiers) = match modifiers {
                    [rest @ .., "aligned"] => (true, rest),
                    rest => (false, rest),
                };
                match modifiers {
                    ["arrive"] | ["arrive", "release"] => {
                        Op::ClusterArrive { releases: true, aligned }
                    }
                    ["arrive", "relaxed"] => Op::ClusterArrive { releases: false, aligned },
                    ["wait"] | ["wait", "acquire"] => Op::ClusterWait,
                    _ => return Ok(None),
                }
            }
            ("bar" | "barrier", modifiers, operands) => {
                return self.barrier(name == "bar", modifiers, operands);
            }
            ("membar", [scope], []) => Op::Fence {
                scope: match *scope {
                    "cta" => Scope::Block,
                    "gl" | "sys" => Scope::Device,
                    _ => return Ok(None),
                },
                // From sm_70 on it is `fence.sc`.
                sequential: true,
            },
            ("fence", ["proxy", "async", rest @ ..], []) => match proxy_fence(rest) {
                Some(fence) => Op::BulkStore(BulkStore::Fence(fence)),
                None => return Ok(None),
            },
            ("fence", ["proxy", ..], _) => Op::Nothing,
            // Of mbarriers that were initialised only; that it orders more is not relied on.
            ("fence", ["mbarrier_init", "release", "cluster"], []) => {
                self.emit(Op::BulkStore(BulkStore::Fence(ProxyFence::Initialisation)))?;
                Op::Fence { sequential: false, scope: Scope::Cluster }
            }
            ("fence", [.., scope], []) => {
                let sequential = match modifiers {
                    ["sc", _] => true,
                    ["acq_rel" | "acquire" | "release", _] | [_] => false,
                    _ => return Ok(None),
                };
                let scope = match self.scope(scope) {
                    // The order of sequentially consistent fences is one of the device: those of a
                    // cluster are taken to reach all.
                    Some(Scope::Cluster) if sequential => Scope::Device,
                    Some(scope) => scope,
                    None => return Ok(None),
                };
                Op::Fence { sequential, scope }
            }
            _ => return Ok(None),
        }))
    }

    /// `bar`, whose forms are all aligned, and `barrier`.
    fn barrier(
        &mut self,
        is_aligned: bool,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Option<Op>, PtxError> {
        let modifiers = modifiers.strip_prefix(&["cta"]).unwrap_or(modifiers);
        // `barrier.sync.aligned`, but `barrier.red.popc.aligned.u32`.
        let aligned = is_aligned || modifiers.contains(&"aligned");
        let modifiers: Vec<&str> =
            modifiers.iter().copied().filter(|&m| is_aligned || m != "aligned").collect();
        let (waits, reduction, operands) = match (modifiers.as_slice(), operands) {
            (["sync"], operands) => (true, None, operands),
            (["arrive"], operands @ [_, _]) => (false, None, operands),
            (["red", operation, ty], [destination, operands @ .., source]) => {
                let (operation, bits) = match (*operation, *ty) {
                    ("popc", "u32") => (BarrierOperation::Count, 32),
                    ("and", "pred") => (BarrierOperation::And, 1),
                    ("or", "pred") => (BarrierOperation::Or, 1),
                    _ => return Ok(None),
                };
                let destination = self.write_bits(destination, bits)?;
                let (source, negated) = self.read_predicate(source)?;
                let reduction = BarrierReduction { operation, destination, source, negated };
                (true, Some(reduction), operands)
            }
            _ => return Ok(None),
        };
        let (barrier, threads) = match operands {
            [barrier] => (self.read(barrier, 32)?, None),
            [barrier, threads] => (self.read(barrier, 32)?, Some(self.read(threads, 32)?)),
            _ => return Ok(None),
        };
        Ok(Some(Op::Barrier { waits, barrier, threads, reduction, aligned }))
    }
}
