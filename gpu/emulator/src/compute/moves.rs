//! `mov`: copies, and takes registers apart or puts them together.

use std::array;
use std::sync::Arc;

use super::bits;
use super::lanes::{Destination, Run, Source, Value, map1, read_lanes};
use super::registers::Registers;
use super::select::{Form, Plan, Type};
use crate::compute::WARP;
use crate::error::PtxError;

/// `mov`
pub(super) fn select(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    if ty == Type::Predicate {
        return bits::move_predicate(form);
    }
    let (to, from) = (form.elements(0), form.elements(1));
    let run = match (ty.bits(), to, from) {
        (16, 1, 1) => copy::<u16>(form)?,
        (32, 1, 1) => copy::<u32>(form)?,
        (64, 1, 1) => copy::<u64>(form)?,
        (16, 2, 1) => unpack::<u16, u8>(form, to)?,
        (32, 2, 1) => unpack::<u32, u16>(form, to)?,
        (32, 4, 1) => unpack::<u32, u8>(form, to)?,
        (64, 2, 1) => unpack::<u64, u32>(form, to)?,
        (64, 4, 1) => unpack::<u64, u16>(form, to)?,
        (16, 1, 2) => pack::<u8, u16>(form, from)?,
        (32, 1, 2) => pack::<u16, u32>(form, from)?,
        (32, 1, 4) => pack::<u8, u32>(form, from)?,
        (64, 1, 2) => pack::<u32, u64>(form, from)?,
        (64, 1, 4) => pack::<u16, u64>(form, from)?,
        _ => return Err(form.unknown()),
    };
    Ok(Plan::keep(run))
}

fn copy<T: Value>(form: &mut Form<'_>) -> Result<Run, PtxError> {
    Ok(map1(form.destination::<T>(0)?, form.source::<T>(1)?, |a| a))
}

/// Takes a register apart, the lowest bits first.
fn unpack<A, D>(form: &mut Form<'_>, count: usize) -> Result<Run, PtxError>
where
    A: Value + Into<u64>,
    D: Value<Bits = u32>,
{
    let a: Source<A> = form.source(1)?;
    let destinations: Vec<Destination<D>> =
        (0..count).map(|element| form.destination_element(0, element)).collect::<Result<_, _>>()?;
    Ok(Arc::new(move |registers: &mut Registers, lanes| {
        let whole: [A; WARP] = read_lanes(a, registers);
        let mut shift = 0;
        for d in &destinations {
            let values =
                array::from_fn(|lane| D::from_bits((whole[lane].into() >> shift) as u32).to_bits());
            d.write(registers, lanes, &values);
            shift += D::SIZE;
        }
        0
    }))
}

/// Puts registers together, the lowest bits first.
fn pack<A, D>(form: &mut Form<'_>, count: usize) -> Result<Run, PtxError>
where
    A: Value + Into<u64>,
    D: Value + super::integer::Integer,
{
    let d: Destination<D> = form.destination(0)?;
    let sources: Vec<Source<A>> =
        (0..count).map(|element| form.source_element(1, element)).collect::<Result<_, _>>()?;
    Ok(Arc::new(move |registers: &mut Registers, lanes| {
        let mut whole = [0_u64; WARP];
        let mut shift = 0;
        for &source in &sources {
            let part: [A; WARP] = read_lanes(source, registers);
            for (whole, part) in whole.iter_mut().zip(part) {
                *whole |= part.into() << shift;
            }
            shift += A::SIZE;
        }
        let values = array::from_fn(|lane| D::truncate(whole[lane].into()).to_bits());
        d.write(registers, lanes, &values);
        0
    }))
}
