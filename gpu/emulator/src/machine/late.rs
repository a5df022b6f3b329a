//! Atomics that nobody waits for, and that later accesses overtake.
//!
//! What a relaxed atomic without a result (`red`) does is on its way while its thread goes on.
//! Nothing but a fence orders it with relaxed accesses of other places that follow, since program
//! order is no causality order (PTX ISA, memory consistency model), so that another thread may see
//! those first. Where turns are taken at random some are held back, and one later access of the
//! warp is executed before them. They are executed before anything else of the warp that is no
//! arithmetic.

use super::access::addresses;
use super::core::Core;
use super::lanes::lanes_of;
use super::order::{Log, Releases};
use super::warp::{Late, Warp};
use crate::code::{Address, Instruction, Op, Order, Space};
use crate::finding::FindingKind;

/// Stands for the number of an instruction where a warp waits for its turn to execute what was held
/// back.
pub(super) const LATE: u32 = u32::MAX;
/// So many of 256 atomics are held back.
const SHARE: u8 = 64;

impl Core<'_> {
    /// Holds an atomic back whose turn it is, if it may be and chance will have it.
    pub(super) fn hold_back(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        lanes: u32,
    ) -> bool {
        let Op::Atomic(atomic) = &instruction.op else { return false };
        let may_be = atomic.destinations.is_empty()
            && matches!(atomic.order, Order::Weak | Order::Relaxed)
            && warp.late.is_none();
        if !may_be {
            return false;
        }
        let addresses = addresses(warp, &atomic.address);
        let is_in_device_memory = match atomic.address.space {
            Space::Global => true,
            Space::Generic => lanes_of(lanes)
                .all(|lane| self.resolve(Space::Generic, addresses[lane]).0 == Space::Global),
            _ => false,
        };
        let chance = |random: &mut fastrand::Rng| random.u8(..) < SHARE;
        if !is_in_device_memory || !self.random.as_mut().is_some_and(chance) {
            return false;
        }
        let read = instruction.op.read().into_iter();
        let operands = read.map(|register| (register, warp.copy(register))).collect();
        let bytes = atomic.bytes().into();
        let late = Late { counter, lanes, operands, addresses, bytes, is_overtaken: false };
        warp.late = Some(Box::new(late));
        true
    }

    /// Whether an access whose turn it is overtakes what was held back, which it does once.
    pub(super) fn overtakes(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        lanes: u32,
    ) -> bool {
        let Some(mut late) = warp.late.take() else { return false };
        let access: Option<(&Address, Order, u32)> = match &instruction.op {
            Op::Load { address, access, destinations } => {
                Some((address, access.order, access.bytes * destinations.len() as u32))
            }
            Op::Store { address, access, sources } => {
                Some((address, access.order, access.bytes * sources.len() as u32))
            }
            Op::Atomic(atomic) => Some((&atomic.address, atomic.order, atomic.bytes())),
            _ => None,
        };
        let is_elsewhere = |address: u64, bytes: u64| {
            lanes_of(late.lanes).all(|lane| {
                let other = late.addresses[lane];
                address + bytes <= other || other + late.bytes <= address
            })
        };
        let overtakes = !late.is_overtaken
            && access.is_some_and(|(address, order, bytes)| {
                let addresses = addresses(warp, address);
                matches!(order, Order::Weak | Order::Relaxed)
                    && lanes_of(lanes).all(|lane| is_elsewhere(addresses[lane], bytes.into()))
            });
        if overtakes {
            let (lane, kernel) = (lanes.trailing_zeros() as usize, self.grid.kernel);
            self.report(FindingKind::Overtaking, counter, warp.index, lane, || {
                (None, format!("nothing orders it after that {}", kernel.place(late.counter)))
            });
        }
        late.is_overtaken |= overtakes;
        warp.late = Some(late);
        overtakes
    }

    /// Executes what was held back, if anything was.
    pub(super) fn execute_late(&mut self, warp: &mut Warp, releases: &mut Releases) {
        let Some(late) = warp.late.take() else { return };
        let code = &self.grid.kernel.code;
        let Some(instruction) = code.get(late.counter as usize) else { return };
        let now: Vec<_> =
            late.operands.iter().map(|&(register, _)| (register, warp.copy(register))).collect();
        for (register, then) in &late.operands {
            warp.paste(*register, then, u32::MAX);
        }
        self.access(warp, late.counter, instruction, late.lanes, &mut Log::Turn(releases));
        for (register, now) in &now {
            warp.paste(*register, now, u32::MAX);
        }
    }
}
