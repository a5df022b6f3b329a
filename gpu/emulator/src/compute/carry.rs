//! Arithmetic on numbers of more than one register, with a carry flag between.

use super::integer::{Integer, with_integer};
use super::lanes::{Destination, Run, Source, read_lanes, spread};
use super::registers::Registers;
use super::select::{Flow, Form, Plan, Type};
use crate::compute::WARP;
use crate::error::PtxError;

/// Whether an opcode reads or writes the carry flag.
pub(super) fn is_carried(opcode: &[&str]) -> bool {
    matches!(opcode.first(), Some(&("addc" | "subc" | "madc"))) || opcode.contains(&"cc")
}

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
pub(super) fn select(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    if matches!(ty, Type::U16 | Type::S16) {
        return Err(form.unknown());
    }
    let writes = form.take("cc");
    let (is_mad, is_difference) = match form.root() {
        "add" | "addc" => (false, false),
        "sub" | "subc" => (false, true),
        "mad" | "madc" => (true, false),
        _ => return Err(form.unknown()),
    };
    let reads = form.root().ends_with('c');
    let is_high = form.take("hi");
    if is_mad != (form.take("lo") || is_high) {
        return Err(form.unknown());
    }
    let run = with_integer!(form, ty, T => {
        let d = form.destination::<T>(0)?;
        let (a, b) = (form.source::<T>(1)?, form.source::<T>(2)?);
        if is_mad {
            let c = form.source(3)?;
            let first = move |registers: &Registers| {
                let (a, b) = (read_lanes(a, registers), read_lanes(b, registers));
                let product = if is_high { T::mul_high } else { T::mul };
                std::array::from_fn(|lane| product(a[lane], b[lane]))
            };
            sum(d, first, c, false, reads, writes)
        } else {
            sum(d, move |registers: &Registers| read_lanes(a, registers), b, is_difference, reads, writes)
        }
    });
    Ok(Plan { run, flow: Flow::Carry { reads, writes } })
}

/// `d = a + b + carry` or `d = a - b - borrow`.
fn sum<T: Integer>(
    d: Destination<T>,
    a: impl Fn(&Registers) -> [T; WARP] + Send + Sync + 'static,
    b: Source<T>,
    is_difference: bool,
    reads: bool,
    writes: bool,
) -> Run {
    std::sync::Arc::new(move |registers, lanes| {
        let (a, b) = (a(registers), read_lanes(b, registers));
        let carry = spread(if reads { registers.carry } else { 0 }, 1, 0);
        let mut values = [<T::Bits as Default>::default(); WARP];
        let mut carries = 0;
        for (lane, value) in values.iter_mut().enumerate() {
            // Exact in 128 bits; a carry or borrow is what does not fit into those of the type.
            let (a, b) = (i128::from(a[lane].both().1), i128::from(b[lane].both().1));
            let exact = if is_difference { a - b - carry[lane] } else { a + b + carry[lane] };
            *value = T::truncate(exact).to_bits();
            carries |= u32::from(exact >> T::SIZE != 0) << lane;
        }
        d.write(registers, lanes, &values);
        if writes {
            registers.carry = registers.carry & !lanes | carries & lanes;
        }
        0
    })
}
