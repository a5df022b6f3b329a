//! `ld`, `st`, `cp.async`, and conversions of addresses.

use super::PtxError;
use super::lower::Lowering;

use super::syntax::{Kind, Operand, Type};
use crate::code::{
    Access, CLUSTER_WINDOW, Constant, LOCAL_WINDOW, MBarrier, MBarrierAction, Op, Order,
    SHARED_WINDOW, Scope, Space, VARIABLES,
};

/// What the modifiers of `ld` and `st` say.
#[derive(Debug)]
struct Modifiers {
    space: Option<Space>,
    order: Order,
    scope: Scope,
    read_only_path: bool,
    elements: usize,
    ty: Type,
    /// A cache policy is the last operand.
    has_policy: bool,
}

impl<'m> Lowering<'m> {
    /// `ld`
    pub(super) fn load(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let modifiers = self.modifiers("ld", modifiers)?;
        let (destination, address) = self.two(operands, modifiers.has_policy)?;
        let access = self.access(&modifiers)?;
        let address = self.address(address, modifiers.space)?;
        let (mut destinations, mut narrow) = (Vec::new(), Vec::new());
        for element in self.elements(destination, modifiers.elements)? {
            let bits = modifiers.ty.bits;
            let (register, held) = match self.write(element)? {
                Some(written) => written,
                None => (self.fresh(bits)?, bits.max(32)),
            };
            if held < bits {
                let reason = format!("the destination has {held} bits, fewer than {bits}");
                return Err(self.error(reason));
            }
            if access.signed && bits < held && held < 32 {
                narrow.push(register);
            }
            destinations.push(register);
        }
        self.emit(Op::Load { address, access, destinations: destinations.into() })?;
        for register in narrow {
            // What is extended to 32 bits has 16 too many.
            self.emit_compute(&["cvt", "u32", "u16"], &[register, register])?;
        }
        Ok(())
    }

    /// `st.async`: a store to the shared memory of a block of the cluster, and its bytes come to an
    /// mbarrier there.
    pub(super) fn store_async(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let unknown = || format!("unknown instruction `st.async.{}`", modifiers.join("."));
        let counted = "mbarrier::complete_tx::bytes";
        let [address, source, barrier] = operands else { return Err(self.error(unknown())) };
        if !modifiers.contains(&counted) || !modifiers.contains(&"shared::cluster") {
            return Err(self.error(unknown()));
        }
        let kept = modifiers.iter().filter(|modifier| **modifier != counted);
        let modifiers = self.modifiers("st", &kept.copied().collect::<Vec<_>>())?;
        let access = self.access(&modifiers)?;
        let bytes = access.bytes * modifiers.elements as u32;
        let store = self.store_of(address, source, &modifiers)?;
        self.emit(store)?;
        let bytes = self.constant(Constant::Bits(bytes.into()), 32)?;
        let address = self.address(barrier, Some(Space::Cluster))?;
        let action = MBarrierAction::Complete { bytes };
        Ok(Op::MBarrier(MBarrier { address, action, order: Order::Release, scope: None }))
    }

    /// `st`
    pub(super) fn store(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        if let Some((&"async", rest)) = modifiers.split_first() {
            return self.store_async(rest, operands);
        }
        let modifiers = self.modifiers("st", modifiers)?;
        let (address, source) = self.two(operands, modifiers.has_policy)?;
        self.store_of(address, source, &modifiers)
    }

    fn store_of(
        &mut self,
        address: &'m Operand,
        source: &'m Operand,
        modifiers: &Modifiers,
    ) -> Result<Op, PtxError> {
        let access = self.access(modifiers)?;
        let address = self.address(address, modifiers.space)?;
        if address.space == Space::Parameter {
            return Err(self.error("the kernel's parameters cannot be written"));
        }
        let elements = self.elements(source, modifiers.elements)?;
        let sources: Result<_, _> =
            elements.iter().map(|element| self.read_wide(element, modifiers.ty.bits)).collect();
        Ok(Op::Store { address, access, sources: sources? })
    }

    fn modifiers(&self, name: &str, modifiers: &[&str]) -> Result<Modifiers, PtxError> {
        let (mut space, mut order, mut elements) = (None, Order::Weak, 1);
        let (mut scope, mut read_only_path) = (Scope::Device, false);
        let (mut ty, mut has_policy) = (None, false);
        for &modifier in modifiers {
            if let Some(known) = self.scope(modifier) {
                scope = known;
                continue;
            }
            match modifier {
                "nc" => read_only_path = true,
                "weak" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "unified" => {}
                "volatile" | "relaxed" | "mmio" => order = Order::Relaxed,
                "acquire" if name == "ld" => order = Order::Acquire,
                "release" if name == "st" => order = Order::Release,
                "L2::cache_hint" => has_policy = true,
                _ if modifier.starts_with("L1::") || modifier.starts_with("L2::") => {}
                "v2" => elements = 2,
                "v4" => elements = 4,
                _ => match (self.space(modifier), Type::parse(modifier)) {
                    (Some(known), _) => space = Some(known),
                    (_, Some(known)) if known.bits >= 8 => ty = Some(known),
                    _ => {
                        let all = modifiers.join(".");
                        let reason = format!("unknown modifier `.{modifier}` of `{name}.{all}`");
                        return Err(self.error(reason));
                    }
                },
            }
        }
        let ty = ty.ok_or_else(|| self.error(format!("`{name}` has no type")))?;
        Ok(Modifiers { space, order, scope, read_only_path, elements, ty, has_policy })
    }

    /// Whom an access is strong to. A block may be a cluster of its own.
    pub(super) fn scope(&self, modifier: &str) -> Option<Scope> {
        Some(match modifier {
            "cta" => Scope::Block,
            "cluster" if self.cluster.is_none_or(|size| size == [1; 3]) => Scope::Block,
            "cluster" => Scope::Cluster,
            "gpu" | "sys" => Scope::Device,
            _ => return None,
        })
    }

    /// A state space; constant variables lie among the global ones.
    pub(super) fn space(&self, modifier: &str) -> Option<Space> {
        Some(match modifier {
            "global" | "const" => Space::Global,
            "shared" | "shared::cta" => Space::Shared,
            "shared::cluster" => Space::Cluster,
            "local" => Space::Local,
            "param" => Space::Parameter,
            "param::entry" if self.frame.is_kernel => Space::Parameter,
            "param::func" => Space::Local,
            _ => return None,
        })
    }

    fn access(&self, modifiers: &Modifiers) -> Result<Access, PtxError> {
        let Modifiers { order, scope, read_only_path, ty, .. } = *modifiers;
        if ty.bits > 64 {
            return Err(self.error("elements of 128 bits are not supported"));
        }
        let signed = ty.kind == Kind::Signed;
        Ok(Access { bytes: ty.bits / 8, signed, order, scope, read_only_path })
    }

    /// The two operands, without a cache policy.
    fn two(
        &self,
        operands: &'m [Operand],
        has_policy: bool,
    ) -> Result<(&'m Operand, &'m Operand), PtxError> {
        match operands {
            [first, second] => Ok((first, second)),
            [first, second, _] if has_policy => Ok((first, second)),
            _ => Err(self.error("expected two operands")),
        }
    }

    /// The elements of a vector, or the operand itself.
    pub(super) fn elements(
        &self,
        operand: &'m Operand,
        count: usize,
    ) -> Result<&'m [Operand], PtxError> {
        let elements = match operand {
            Operand::Vector(elements) => elements.as_slice(),
            operand => std::slice::from_ref(operand),
        };
        if elements.len() != count {
            return Err(self.error(format!("expected {count} elements, found {}", elements.len())));
        }
        Ok(elements)
    }

    /// `cp.async`
    pub(super) fn copy_async(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let unknown = || format!("unknown instruction `cp.{}`", modifiers.join("."));
        let hints = match modifiers {
            ["async", "commit_group"] if operands.is_empty() => return Ok(Op::CopyAsyncCommit),
            ["async", "wait_all"] if operands.is_empty() => {
                return Ok(Op::CopyAsyncWait { groups: None });
            }
            ["async", "wait_group"] => {
                let [Operand::Integer(groups)] = operands else {
                    return Err(self.error("`cp.async.wait_group` takes a number"));
                };
                let groups = Some(u32::try_from(*groups).unwrap_or(u32::MAX));
                return Ok(Op::CopyAsyncWait { groups });
            }
            ["async", "mbarrier", "arrive", rest @ ..] => {
                return self.arrive_behind_copies(rest, operands);
            }
            ["async", "bulk", rest @ ..] => return self.copy_bulk(rest, operands),
            ["reduce", "async", "bulk", rest @ ..] => return self.reduce_bulk(rest, operands),
            ["async", "ca" | "cg", "shared" | "shared::cta", "global", hints @ ..] => hints,
            _ => return Err(self.error(unknown())),
        };
        if hints.iter().any(|hint| !hint.starts_with("L2::")) {
            return Err(self.error(unknown()));
        }
        let operands = match operands.split_last() {
            Some((_, rest)) if hints.contains(&"L2::cache_hint") => rest,
            _ => operands,
        };
        let [destination, source, Operand::Integer(bytes), rest @ ..] = operands else {
            return Err(self.error("`cp.async` takes two addresses and a number of bytes"));
        };
        let is_past_first_level = modifiers.contains(&"cg");
        let bytes = match *bytes {
            4 | 8 if !is_past_first_level => *bytes as u32,
            16 => 16,
            bytes => return Err(self.error(format!("`cp.async` does not copy {bytes} bytes"))),
        };
        let source_bytes = match rest {
            [] => None,
            [count] => Some(self.read(count, 32)?),
            _ => return Err(self.error("`cp.async` has too many operands")),
        };
        let destination = self.address(destination, Some(Space::Shared))?;
        let source = self.address(source, Some(Space::Global))?;
        Ok(Op::CopyAsync { destination, source, bytes, source_bytes })
    }

    /// `cvta`: adds or subtracts where a space lies among the generic addresses.
    pub(super) fn convert_address(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let unknown = || format!("unknown instruction `cvta.{}`", modifiers.join("."));
        let (is_to, space) = match modifiers {
            ["to", space, "u64"] => (true, *space),
            [space, "u64"] => (false, *space),
            _ => return Err(self.error(unknown())),
        };
        let start = match space {
            "global" | "const" => None,
            "shared" | "shared::cta" | "shared::cluster" => Some(SHARED_WINDOW.start),
            "local" => Some(LOCAL_WINDOW.start),
            _ => return Err(self.error(unknown())),
        };
        let [destination, source] = operands else {
            return Err(self.error("`cvta` takes two operands"));
        };
        let source = self.read(source, 64)?;
        let destination = self.write_bits(destination, 64)?;
        match start {
            None => self.emit_compute(&["mov", "b64"], &[destination, source]),
            Some(start) => {
                let start = self.constant(Constant::Bits(start), 64)?;
                let opcode = if is_to { ["sub", "s64"] } else { ["add", "s64"] };
                self.emit_compute(&opcode, &[destination, source, start])
            }
        }
    }

    /// `isspacep`: whether an address lies in a window.
    pub(super) fn is_space(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<(), PtxError> {
        let (window, compare) = match modifiers {
            ["shared" | "shared::cta"] => (SHARED_WINDOW, "lt"),
            ["shared::cluster"] => (CLUSTER_WINDOW, "lt"),
            ["local"] => (LOCAL_WINDOW, "lt"),
            // What lies between shared memory and the variables is not global.
            ["global"] => (SHARED_WINDOW.start..VARIABLES.start, "ge"),
            _ => {
                let reason = format!("unknown instruction `isspacep.{}`", modifiers.join("."));
                return Err(self.error(reason));
            }
        };
        let [destination, source] = operands else {
            return Err(self.error("`isspacep` takes two operands"));
        };
        let source = self.read(source, 64)?;
        let destination = self.write_bits(destination, 1)?;
        let start = self.constant(Constant::Bits(window.start), 64)?;
        let size = self.constant(Constant::Bits(window.end - window.start), 64)?;
        let offset = self.fresh(64)?;
        self.emit_compute(&["sub", "s64"], &[offset, source, start])?;
        self.emit_compute(&["setp", compare, "u64"], &[destination, offset, size])
    }
}
