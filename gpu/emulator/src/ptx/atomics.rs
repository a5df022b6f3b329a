//! `atom` and `red`.

use super::PtxError;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{Atomic, AtomicOperation, AtomicType, Op, Order, Scope, Space};

impl<'m> Lowering<'m> {
    /// `atom` with a destination, `red` without.
    pub(super) fn atomic(
        &mut self,
        has_destination: bool,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let name = if has_destination { "atom" } else { "red" };
        let unknown = || format!("unknown instruction `{name}.{}`", modifiers.join("."));
        let (mut order, mut scope, mut space) = (Order::Relaxed, Scope::Device, None);
        let (mut operation, mut ty, mut has_policy) = (None, None, false);
        let mut elements = 1;
        for &modifier in modifiers {
            if let Some(known) = self.scope(modifier) {
                scope = known;
                continue;
            }
            match modifier {
                "relaxed" => order = Order::Relaxed,
                "acquire" => order = Order::Acquire,
                "release" => order = Order::Release,
                "acq_rel" => order = Order::AcquireRelease,
                "global" | "shared" | "shared::cta" | "shared::cluster" => {
                    space = self.space(modifier);
                }
                "noftz" => {}
                "L2::cache_hint" => has_policy = true,
                "v2" => elements = 2,
                "v4" => elements = 4,
                "v8" => elements = 8,
                _ if operation.is_none() => {
                    operation = Some(named_operation(modifier).ok_or_else(|| {
                        self.error(format!("unknown modifier `.{modifier}`: {}", unknown()))
                    })?);
                }
                _ if ty.is_none() => {
                    ty = Some(named_type(modifier).ok_or_else(|| {
                        self.error(format!("unknown modifier `.{modifier}`: {}", unknown()))
                    })?);
                }
                _ => return Err(self.error(unknown())),
            }
        }
        let (Some(operation), Some((ty, bits, is_bits))) = (operation, ty) else {
            return Err(self.error(unknown()));
        };
        let is_known = match elements {
            1 => exists(operation, ty, is_bits),
            elements => exists_for_vectors(operation, ty, elements),
        };
        if !is_known {
            return Err(self.error(unknown()));
        }
        let mut operands = operands;
        if let ([rest @ .., _], true) = (operands, has_policy) {
            operands = rest;
        }
        let mut destinations = Vec::new();
        if let ([first, rest @ ..], true) = (operands, has_destination) {
            for element in self.elements(first, elements)? {
                // A narrower element leaves the register's upper bits zero.
                destinations.push(self.write_bits(element, bits)?);
            }
            operands = rest;
        }
        let (address, operand, replacement) = match (operands, operation) {
            ([address, compared, new], AtomicOperation::CompareAndSwap) => {
                (address, compared, Some(new))
            }
            ([_, _], AtomicOperation::CompareAndSwap) => {
                return Err(self.error(format!("`{name}.cas` takes another operand")));
            }
            ([address, operand], _) => (address, operand, None),
            _ => return Err(self.error(format!("another number of operands: {}", unknown()))),
        };
        let address = self.address(address, space)?;
        if matches!(address.space, Space::Local | Space::Parameter) {
            return Err(self.error("atomics are of global or shared memory"));
        }
        if elements > 1 && matches!(address.space, Space::Shared | Space::Cluster) {
            return Err(self.error("atomics of vectors are of global memory"));
        }
        let operand = self.elements(operand, elements)?;
        let operands: Result<_, _> = operand.iter().map(|one| self.read(one, bits)).collect();
        let replacement = match replacement {
            Some(new) => Some(self.read(new, bits)?),
            None => None,
        };
        Ok(Op::Atomic(Atomic {
            address,
            operation,
            ty,
            order,
            scope,
            destinations: destinations.into(),
            operands: operands?,
            replacement,
        }))
    }
}

pub(super) fn named_operation(modifier: &str) -> Option<AtomicOperation> {
    Some(match modifier {
        "add" => AtomicOperation::Add,
        "min" => AtomicOperation::Min,
        "max" => AtomicOperation::Max,
        "and" => AtomicOperation::And,
        "or" => AtomicOperation::Or,
        "xor" => AtomicOperation::Xor,
        "exch" => AtomicOperation::Exchange,
        "cas" => AtomicOperation::CompareAndSwap,
        "inc" => AtomicOperation::Increment,
        "dec" => AtomicOperation::Decrement,
        _ => return None,
    })
}

/// The type, its bits, and whether it is written as bits.
pub(super) fn named_type(modifier: &str) -> Option<(AtomicType, u32, bool)> {
    Some(match modifier {
        "b16" => (AtomicType::B16, 16, true),
        "b32" => (AtomicType::U32, 32, true),
        "u32" => (AtomicType::U32, 32, false),
        "s32" => (AtomicType::S32, 32, false),
        "b64" => (AtomicType::U64, 64, true),
        "u64" => (AtomicType::U64, 64, false),
        "s64" => (AtomicType::S64, 64, false),
        "f32" => (AtomicType::F32, 32, false),
        "f64" => (AtomicType::F64, 64, false),
        "f16" => (AtomicType::F16, 16, false),
        "f16x2" => (AtomicType::F16x2, 32, false),
        "bf16" => (AtomicType::BF16, 16, false),
        "bf16x2" => (AtomicType::BF16x2, 32, false),
        _ => return None,
    })
}

/// Whether PTX has the operation for the type.
pub(super) fn exists(operation: AtomicOperation, ty: AtomicType, is_bits: bool) -> bool {
    use AtomicType::{B16, BF16, BF16x2, F16, F16x2, F32, F64, S32, S64, U32, U64};
    match operation {
        AtomicOperation::Add => !is_bits,
        AtomicOperation::Min | AtomicOperation::Max => {
            !is_bits && matches!(ty, U32 | S32 | U64 | S64 | F16 | F16x2 | BF16 | BF16x2)
        }
        AtomicOperation::And | AtomicOperation::Or | AtomicOperation::Xor => {
            matches!(ty, U32 | S32 | U64 | S64)
        }
        AtomicOperation::Exchange | AtomicOperation::CompareAndSwap => {
            matches!(ty, B16 | U32 | S32 | U64 | S64 | F32 | F64)
        }
        AtomicOperation::Increment | AtomicOperation::Decrement => ty == U32 && !is_bits,
    }
}

/// Whether PTX has the operation for vectors of so many elements.
fn exists_for_vectors(operation: AtomicOperation, ty: AtomicType, elements: usize) -> bool {
    use AtomicType::{BF16, BF16x2, F16, F16x2, F32};
    let is_half_operation =
        matches!(operation, AtomicOperation::Add | AtomicOperation::Min | AtomicOperation::Max);
    match ty {
        F32 => operation == AtomicOperation::Add && elements <= 4,
        F16x2 | BF16x2 => is_half_operation && elements <= 4,
        F16 | BF16 => is_half_operation,
        _ => false,
    }
}
