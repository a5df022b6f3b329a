//! Places the module's variables in device memory, with what they hold at first.

use std::collections::HashMap;

use super::PtxError;
use super::syntax::{Declaration, DeclaredSpace, Initial, Kind, Source};
use crate::code::{FUNCTIONS, VARIABLES, Variable};

/// Bytes between variables, so that no access past one falls into another unseen.
const GAP: u64 = 1 << 20;
/// Bytes that all variables may have together.
const MOST_BYTES: u64 = 1 << 26;

/// Addresses by name, those of functions among them, and the variables by address.
pub(super) fn place(
    source: &Source,
    functions: &HashMap<String, usize>,
) -> Result<(HashMap<String, u64>, Vec<Variable>), PtxError> {
    let is_placed =
        |d: &&Declaration| matches!(d.space, DeclaredSpace::Global | DeclaredSpace::Constant);
    let declared = || source.variables.iter().filter(is_placed).filter(|d| !d.is_extern);
    let address = |(name, &number): (&String, &usize)| (name.clone(), function_address(number));
    let mut addresses: HashMap<String, u64> = functions.iter().map(address).collect();
    let (mut next, mut bytes) = (VARIABLES.start, 0_u64);
    for declaration in declared() {
        let address = next.next_multiple_of(declaration.align);
        bytes = bytes.saturating_add(declaration.bytes());
        next = address.saturating_add(declaration.bytes()).saturating_add(GAP);
        if bytes > MOST_BYTES || next > VARIABLES.end {
            let reason = format!("the module's variables are larger than {MOST_BYTES} bytes");
            return Err(PtxError::new(declaration.line, reason));
        }
        if addresses.insert(declaration.name.clone(), address).is_some() {
            let reason = format!("`{}` is defined a second time", declaration.name);
            return Err(PtxError::new(declaration.line, reason));
        }
    }
    let mut variables = Vec::new();
    for declaration in declared() {
        variables.push(Variable {
            name: declaration.name.clone(),
            address: addresses.get(&declaration.name).copied().unwrap_or_default(),
            initial: initial_bytes(declaration, &addresses)?,
            constant: declaration.space == DeclaredSpace::Constant,
        });
    }
    Ok((addresses, variables))
}

/// What pointers to the module's function of that number hold.
pub(super) fn function_address(number: usize) -> u64 {
    FUNCTIONS.start + 16 * number as u64
}

fn initial_bytes(
    declaration: &Declaration,
    addresses: &HashMap<String, u64>,
) -> Result<Vec<u8>, PtxError> {
    let element = (declaration.ty.bits / 8) as usize;
    let mut bytes = Vec::with_capacity(declaration.bytes() as usize);
    for initial in &declaration.initial {
        let value = initial_bits(initial, declaration, addresses)?;
        // Numbers of 128 bits are extended by their sign.
        let sign = if value >> 63 == 1 { 0xFF } else { 0 };
        bytes.extend(value.to_le_bytes().into_iter().chain([sign; 8]).take(element));
    }
    bytes.resize(declaration.bytes() as usize, 0);
    Ok(bytes)
}

/// The bits of an element; those above its size are to be dropped.
fn initial_bits(
    initial: &Initial,
    declaration: &Declaration,
    addresses: &HashMap<String, u64>,
) -> Result<u64, PtxError> {
    let is_float = declaration.ty.kind == Kind::Float;
    let bits = match initial {
        Initial::Integer(value) if is_float => float_bits(*value as f64, declaration.ty.bits),
        Initial::Integer(value) => *value,
        Initial::Single(bits) => match declaration.ty.bits {
            64 => f64::from(f32::from_bits(*bits)).to_bits(),
            _ => u64::from(*bits),
        },
        Initial::Double(bits) => float_bits(f64::from_bits(*bits), declaration.ty.bits),
        Initial::Address { name, offset, mask } => {
            let address = addresses.get(name).ok_or_else(|| {
                let reason = format!("no address of `{name}` is known for `{}`", declaration.name);
                PtxError::new(declaration.line, reason)
            })?;
            let address = address.wrapping_add_signed(*offset);
            if mask.is_none() && declaration.ty.bits != 64 {
                let reason = format!("the address of `{name}` does not fit `{}`", declaration.name);
                return Err(PtxError::new(declaration.line, reason));
            }
            let mask = mask.unwrap_or(u64::MAX);
            (address & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0)
        }
    };
    Ok(bits)
}

fn float_bits(value: f64, bits: u32) -> u64 {
    if bits == 32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
}
