//! Functions under way, by lane.

use std::sync::Arc;

use super::lanes::lanes_of;
use crate::code::{Function, Kernel};
use crate::compute::Saved;

/// What each lane has called and not returned from.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// By lane, the last call last. Empty before the first call.
    pub(super) stacks: Vec<Vec<Activation>>,
}

/// A function under way.
#[derive(Debug)]
pub(super) struct Activation {
    /// Number of the instruction that called it.
    pub(super) call: u32,
    /// Its number.
    pub(super) function: u32,
    /// Where its frame begins in the thread's own memory.
    pub(super) frame: u64,
    /// Bytes of the device's stack that are taken with it.
    pub(super) stack: u32,
    /// The caller's registers.
    pub(super) kept: Option<Arc<Saved>>,
}

impl Calls {
    pub(super) fn last(&self, lane: usize) -> Option<&Activation> {
        self.stacks.get(lane)?.last()
    }

    /// Of some lanes those that have called most functions: they are behind the others.
    #[inline]
    pub(crate) fn deepest(&self, lanes: u32) -> u32 {
        if self.stacks.is_empty() {
            return lanes;
        }
        let depth = |lane: usize| self.stacks.get(lane).map_or(0, Vec::len);
        let most = lanes_of(lanes).map(depth).max().unwrap_or(0);
        lanes_of(lanes).filter(|&lane| depth(lane) == most).fold(0, |mask, lane| mask | 1 << lane)
    }

    /// The function in whose frame an address of a lane lies, and where the frame begins.
    pub(crate) fn frame<'k>(
        &self,
        kernel: &'k Kernel,
        lane: usize,
        address: u64,
    ) -> Option<(&'k Function, u64)> {
        let stack = self.stacks.get(lane)?;
        let after = stack.partition_point(|activation| activation.frame <= address);
        let Activation { function, frame, .. } = stack.get(after.checked_sub(1)?)?;
        let function = kernel.functions.get(*function as usize)?;
        (address - frame < function.frame_bytes.into()).then_some((function, *frame))
    }
}
