//! Calls of functions with code of their own: each thread has a stack.
//!
//! Registers are numbered for the whole kernel, so that a function that is called again before it
//! has returned would overwrite those of its caller: they are kept until it returns. The kernel
//! itself is called by nobody.

use std::ops::Range;
use std::sync::Arc;

use super::activations::Activation;
use super::core::Core;
use super::lanes::lanes_of;
use super::request::Use;
use super::warp::Warp;
use crate::code::{Call, Callee, Function, Kernel, Op, STACK_BYTES, WARP};
use crate::compute::Saved;
use crate::finding::FindingKind;

/// Bytes between frames, so that no access past one falls into another unseen.
const GAP: u64 = 64;

/// Where the first frame begins, behind what the kernel itself has.
fn stack_begins(kernel: &Kernel) -> u64 {
    u64::from(kernel.local_bytes).next_multiple_of(16) + GAP
}

impl Core<'_> {
    /// Some lanes of a group call a function, or one each; the others go on.
    pub(super) fn call(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        call: &Call,
        lanes: u32,
        group: u32,
    ) {
        warp.jump(group, counter + 1);
        let kernel = self.grid.kernel;
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let Some(number) = self.callee(warp, counter, call, lane) else { return };
            let Some(function) = kernel.functions.get(number as usize) else { return };
            let same = match call.callee {
                Callee::Function(_) => left,
                Callee::Pointer(pointer) => {
                    let pointers = warp.long(pointer);
                    let same = lanes_of(left).filter(|&other| pointers[other] == pointers[lane]);
                    same.fold(0, |mask, lane| mask | 1 << lane)
                }
            };
            left &= !same;
            if !self.enter(warp, counter, call, (number, function), same) {
                return;
            }
        }
    }

    /// The number of the function that a lane calls. One that calls nothing of the kind ends the
    /// launch, as on a device.
    fn callee(&mut self, warp: &Warp, counter: u32, call: &Call, lane: usize) -> Option<u32> {
        let pointer = match call.callee {
            Callee::Function(number) => return Some(number),
            Callee::Pointer(pointer) => pointer,
        };
        if warp.registers.undefined(pointer) >> lane & 1 != 0 {
            let at = Use { counter, warp: warp.index, lane, what: "what is called" };
            self.report_undefined(at, warp.registers.read_by(pointer), || None);
            self.is_stuck = true;
            return None;
        }
        let address = warp.long(pointer)[lane];
        let functions = &self.grid.kernel.functions;
        let is_like = |passed: &[Range<u32>], declared: &[Range<u32>]| {
            passed.iter().map(Range::len).eq(declared.iter().map(Range::len))
        };
        let found = (0..).zip(functions).find(|(_, function)| function.address == address);
        let why = match found {
            Some((number, function))
                if is_like(&call.arguments, &function.parameters)
                    && is_like(&call.results, &function.results) =>
            {
                return Some(number);
            }
            Some((_, function)) => {
                format!("`{}` is called with parameters or results of other sizes", function.name)
            }
            None => format!("a call of {address:#x}, where no function lies"),
        };
        self.report(FindingKind::Trap, counter, warp.index, lane, || (None, why));
        self.is_stuck = true;
        None
    }

    /// Sends lanes into a function; gives whether their stacks have room for it.
    fn enter(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        call: &Call,
        (number, function): (u32, &Function),
        lanes: u32,
    ) -> bool {
        let kernel = self.grid.kernel;
        if warp.calls.stacks.is_empty() {
            warp.calls.stacks.resize_with(WARP, Vec::new);
        }
        let caller = call.caller.and_then(|caller| kernel.functions.get(caller as usize));
        let kept = caller.map(|caller| Arc::new(warp.registers.save(&caller.registers)));
        let mut frames = [0; WARP];
        for lane in lanes_of(lanes) {
            let (from, frame, taken) = match warp.calls.last(lane) {
                None => (0, stack_begins(kernel), 0),
                Some(&Activation { function, frame, stack, .. }) => {
                    let caller = kernel.functions.get(function as usize);
                    let bytes = caller.map_or(0, |caller| u64::from(caller.frame_bytes));
                    (frame, (frame + bytes).next_multiple_of(16) + GAP, stack)
                }
            };
            let stack = taken + function.stack_bytes;
            if stack > STACK_BYTES {
                let depth = warp.calls.stacks.get(lane).map_or(0, Vec::len);
                self.report(FindingKind::StackOverflow, counter, warp.index, lane, || {
                    let reason = format!(
                        "the thread is {depth} calls deep, and more do not fit the stack of {STACK_BYTES} bytes that it \
                         has unless the host sets cudaLimitStackSize"
                    );
                    (None, reason)
                });
                self.is_stuck = true;
                return false;
            }
            warp.forget_local(lane, frame, function.frame_bytes);
            for (argument, parameter) in call.arguments.iter().zip(&function.parameters) {
                warp.copy_local(lane, from, argument, frame, parameter);
            }
            frames[lane] = frame;
            if let Some(stack_of) = warp.calls.stacks.get_mut(lane) {
                let (call, function, kept) = (counter, number, kept.clone());
                stack_of.push(Activation { call, function, frame, stack, kept });
            }
        }
        warp.set(function.frame, lanes, &frames);
        warp.jump(lanes, function.entry);
        true
    }

    /// Lanes go back to where they were called from, each to its own place.
    pub(super) fn go_back(&mut self, warp: &mut Warp, lanes: u32, group: u32, counter: u32) {
        warp.jump(group, counter + 1);
        let kernel = self.grid.kernel;
        // Those of a group mostly called together.
        let mut restored: Vec<(Arc<Saved>, u32)> = Vec::new();
        for lane in lanes_of(lanes) {
            let Some(done) = warp.calls.stacks.get_mut(lane).and_then(Vec::pop) else { continue };
            warp.jump(1 << lane, done.call + 1);
            let at = kernel.code.get(done.call as usize).map(|at| &at.op);
            let function = kernel.functions.get(done.function as usize);
            let (Some(Op::Call(call)), Some(function)) = (at, function) else { continue };
            let to = warp.calls.last(lane).map_or(0, |caller| caller.frame);
            for (result, place) in function.results.iter().zip(&call.results) {
                warp.copy_local(lane, done.frame, result, to, place);
            }
            if let Some(kept) = done.kept {
                match restored.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &kept)) {
                    Some((_, lanes)) => *lanes |= 1 << lane,
                    None => restored.push((kept, 1 << lane)),
                }
            }
        }
        for (kept, lanes) in restored {
            warp.registers.restore(&kept, lanes);
        }
    }
}

impl Warp {
    /// Makes a part of a lane's own memory one that nobody has written.
    fn forget_local(&mut self, lane: usize, from: u64, bytes: u32) {
        let words = from as usize / 4..(from as usize + bytes as usize).div_ceil(4);
        if self.local.len() < words.end {
            self.grow_local(words.end);
        }
        for word in self.local.iter_mut().take(words.end).skip(words.start) {
            word.defined.iter_mut().for_each(|lanes| *lanes &= !(1 << lane));
        }
    }

    /// Copies a variable of one frame of a lane's own memory to one of another.
    fn copy_local(
        &mut self,
        lane: usize,
        from: u64,
        source: &Range<u32>,
        to: u64,
        destination: &Range<u32>,
    ) {
        for (source, destination) in source.clone().zip(destination.clone()) {
            let [from, to] =
                [from + u64::from(source), to + u64::from(destination)].map(|at| at as usize);
            let Some(word) = self.local.get(from / 4) else { continue };
            let value = word.values[lane] >> (from % 4 * 8) & 0xFF;
            let is_defined = word.defined[from % 4] >> lane & 1;
            let Some(word) = self.local.get_mut(to / 4) else { continue };
            let shift = to % 4 * 8;
            word.values[lane] = word.values[lane] & !(0xFF << shift) | value << shift;
            word.defined[to % 4] = word.defined[to % 4] & !(1 << lane) | is_defined << lane;
        }
    }
}
