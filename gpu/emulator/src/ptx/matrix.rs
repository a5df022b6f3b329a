//! `mma`, `ldmatrix` and `stmatrix`.

use super::PtxError;
use super::lower::Lowering;
use super::syntax::Operand;
use crate::code::{Constant, LoadMatrix, Mma, MmaShape, MmaType, Op, Register, Space, StoreMatrix};

impl<'m> Lowering<'m> {
    /// `mma.sync`, but for integers, sparse and block-scaled forms.
    pub(super) fn mma(
        &mut self,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let unknown = || format!("unknown instruction `mma.{}`", modifiers.join("."));
        let (["sync", "aligned", size, "row", "col", d, a, b, c], [to, from_a, from_b, from_c]) =
            (modifiers, operands)
        else {
            return Err(self.error(unknown()));
        };
        let shape = shape(size, [d, a, b, c]).ok_or_else(|| self.error(unknown()))?;
        let MmaShape { factors, sums, rows, depth } = shape;
        let registers = |ty: MmaType, elements: u32| (elements / 32 / ty.packed()) as usize;
        let bits = |ty| if ty == MmaType::F64 { 64 } else { 32 };
        let d = self.matrix_parts(to, registers(sums, rows * 8))?;
        let d: Result<_, _> = d.iter().map(|part| self.write_bits(part, bits(sums))).collect();
        let mut read = |operand, ty, elements| -> Result<Box<[Register]>, PtxError> {
            let parts = self.matrix_parts(operand, registers(ty, elements))?;
            parts.iter().map(|part| self.read(part, bits(ty))).collect()
        };
        let a = read(from_a, factors, rows * depth)?;
        let b = read(from_b, factors, depth * 8)?;
        let c = read(from_c, sums, rows * 8)?;
        let members = self.constant(Constant::Bits(u32::MAX.into()), 32)?;
        Ok(Op::Mma(Box::new(Mma { shape, d: d?, a, b, c, members })))
    }

    /// `ldmatrix` or `stmatrix`, of elements of 16 bits.
    pub(super) fn move_matrix(
        &mut self,
        name: &str,
        modifiers: &[&str],
        operands: &'m [Operand],
    ) -> Result<Op, PtxError> {
        let unknown = || format!("unknown instruction `{name}.{}`", modifiers.join("."));
        let ["sync", "aligned", "m8n8", count, rest @ ..] = modifiers else {
            return Err(self.error(unknown()));
        };
        let (transposed, space) = match rest {
            ["trans", space @ .., "b16"] => (true, space),
            [space @ .., "b16"] => (false, space),
            _ => return Err(self.error(unknown())),
        };
        let space = match space {
            [] => None,
            ["shared" | "shared::cta"] => Some(Space::Shared),
            _ => return Err(self.error(unknown())),
        };
        let count = match *count {
            "x1" => 1,
            "x2" => 2,
            "x4" => 4,
            _ => return Err(self.error(unknown())),
        };
        let (address, parts) = match (name, operands) {
            ("stmatrix", [address, parts]) | (_, [parts, address]) => (address, parts),
            _ => return Err(self.error(unknown())),
        };
        let parts = self.matrix_parts(parts, count)?;
        let members = self.constant(Constant::Bits(u32::MAX.into()), 32)?;
        if name == "stmatrix" {
            let sources: Result<_, _> = parts.iter().map(|part| self.read(part, 32)).collect();
            let address = self.address(address, space)?;
            let sources = sources?;
            return Ok(Op::StoreMatrix(StoreMatrix { address, sources, transposed, members }));
        }
        let destinations: Result<_, _> =
            parts.iter().map(|part| self.write_bits(part, 32)).collect();
        let address = self.address(address, space)?;
        let destinations = destinations?;
        Ok(Op::LoadMatrix(LoadMatrix { address, destinations, transposed, members }))
    }

    fn matrix_parts(&self, operand: &'m Operand, count: usize) -> Result<&'m [Operand], PtxError> {
        let parts = match operand {
            Operand::Vector(parts) => parts.as_slice(),
            operand => std::slice::from_ref(operand),
        };
        match parts.len() == count {
            true => Ok(parts),
            false => Err(self.error(format!("expected {count} registers, found {}", parts.len()))),
        }
    }
}

/// The shapes of the PTX ISA for floating-point numbers.
fn shape(size: &str, types: [&str; 4]) -> Option<MmaShape> {
    use MmaType::{BF16, F16, F32, F64, TF32};
    let (factors, sums) = match types {
        ["f32", "f16", "f16", "f32"] => (F16, F32),
        ["f16", "f16", "f16", "f16"] => (F16, F16),
        ["f32", "bf16", "bf16", "f32"] => (BF16, F32),
        ["f32", "tf32", "tf32", "f32"] => (TF32, F32),
        ["f64", "f64", "f64", "f64"] => (F64, F64),
        _ => return None,
    };
    let (rows, depth) = match (size, factors) {
        ("m16n8k8", F16 | BF16 | TF32 | F64) => (16, 8),
        ("m16n8k16", F16 | BF16 | F64) => (16, 16),
        ("m16n8k4", TF32 | F64) => (16, 4),
        ("m8n8k4", F64) => (8, 4),
        _ => return None,
    };
    Some(MmaShape { factors, sums, rows, depth })
}
