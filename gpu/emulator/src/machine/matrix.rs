//! `mma`, `ldmatrix` and `stmatrix`: small matrices that the lanes of a warp hold together.
//!
//! Products are exact and added up in binary64, of which the sum is rounded once. A device adds
//! them in an order and with a precision of its own, which are not documented.

use half::{bf16, f16};

use super::core::Core;
use super::lanes::lanes_of;
use super::request::Request;
use super::touch::in_shared;
use super::warp::Warp;
use crate::code::{
    Address, LoadMatrix, Mma, MmaShape, MmaType, Order, Register, Scope, StoreMatrix, WARP,
};
use crate::finding::FindingKind;

/// Columns of B, C and D.
const COLUMNS: usize = 8;
/// Bytes of a row that `ldmatrix` loads and `stmatrix` stores.
const ROW_BYTES: u32 = 16;

/// A matrix by rows, with what is known of its elements.
struct Matrix {
    columns: usize,
    values: Vec<f64>,
    undefined: Vec<bool>,
    /// The instruction that read what is undefined.
    read_by: Option<u32>,
}

/// Which matrix of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    A,
    B,
    Sums,
}

/// Row and column of element `index` of a lane, after the figures of the PTX ISA, "Matrix Fragments
/// for mma".
fn place(shape: MmaShape, part: Part, lane: usize, index: usize) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    match (part, shape.factors.packed()) {
        (Part::Sums, _) => (group + index / 2 * 8, thread * 2 + index % 2),
        (Part::A, 2) => (group + index / 2 % 2 * 8, thread * 2 + index % 2 + index / 4 * 8),
        (Part::B, 2) => (thread * 2 + index % 2 + index / 2 * 8, group),
        (Part::A, _) if shape.rows == 16 => (group + index % 2 * 8, thread + index / 2 * 4),
        (Part::A, _) => (group, thread),
        (Part::B, _) => (thread + index * 4, group),
    }
}

impl MmaType {
    /// An element of a register, of which there are one or two.
    fn read(self, bits: u64, index: usize) -> f64 {
        let half = (bits >> (16 * index)) as u16;
        match self {
            Self::F16 => f16::from_bits(half).to_f64(),
            Self::BF16 => bf16::from_bits(half).to_f64(),
            Self::TF32 => f64::from(f32::from_bits(bits as u32 & !0x1FFF)),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
        }
    }

    /// Bits of a sum, rounded.
    fn rounded(self, sum: f64) -> u64 {
        match self {
            Self::F16 => f16::from_f64(sum).to_bits().into(),
            Self::BF16 => bf16::from_f64(sum).to_bits().into(),
            Self::TF32 | Self::F32 => (sum as f32).to_bits().into(),
            Self::F64 => sum.to_bits(),
        }
    }
}

impl Core<'_> {
    /// Executes `mma` for a whole warp.
    pub(super) fn mma(&mut self, warp: &mut Warp, counter: u32, mma: &Mma, lanes: u32) {
        self.need_all_lanes(warp, counter, lanes);
        let Mma { shape, .. } = *mma;
        let (rows, depth) = (shape.rows as usize, shape.depth as usize);
        let a = gather(warp, shape, Part::A, &mma.a, [rows, depth]);
        let b = gather(warp, shape, Part::B, &mma.b, [depth, COLUMNS]);
        let c = gather(warp, shape, Part::Sums, &mma.c, [rows, COLUMNS]);
        let read_by = a.read_by.or(b.read_by).or(c.read_by);
        let packed = shape.sums.packed() as usize;
        for (number, &register) in mma.d.iter().enumerate() {
            let (mut bits, mut undefined) = ([0_u64; WARP], 0);
            for (lane, bits) in bits.iter_mut().enumerate() {
                for index in 0..packed {
                    let (row, column) = place(shape, Part::Sums, lane, number * packed + index);
                    let sum = (0..depth).fold(c.at(row, column), |sum, k| {
                        a.at(row, k).mul_add(b.at(k, column), sum)
                    });
                    *bits |= shape.sums.rounded(sum) << (16 * index);
                    let is_undefined = c.is_undefined(row, column)
                        || (0..depth).any(|k| a.is_undefined(row, k) || b.is_undefined(k, column));
                    undefined |= u32::from(is_undefined) << lane;
                }
            }
            warp.set(register, lanes, &bits);
            if undefined & lanes != 0 {
                warp.registers.taint(register, lanes, undefined, read_by);
            }
        }
    }

    /// Executes `ldmatrix` for a whole warp.
    pub(super) fn load_matrix(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        load: &LoadMatrix,
        lanes: u32,
    ) {
        self.need_all_lanes(warp, counter, lanes);
        let grid = self.grid;
        let matrices = load.destinations.len();
        let (giving, addresses) = self.rows(warp, counter, &load.address, matrices, lanes);
        let request = rows_of(warp, counter);
        let mut rows = [[(0_u64, true); 8]; WARP];
        for lane in lanes_of(giving) {
            let Some(offset) = self.within_shared(request, lane, addresses[lane]) else { continue };
            for (column, element) in rows[lane].iter_mut().enumerate() {
                *element = self.shared.read(offset + column * 2, 2);
            }
            let conflict = self.observe_shared(request, lane, offset, false);
            self.report_race(request, lane, conflict, || in_shared(grid, offset as u64));
        }
        for (matrix, &register) in load.destinations.iter().enumerate() {
            let (mut words, mut undefined) = ([0_u64; WARP], 0);
            for (lane, word) in words.iter_mut().enumerate() {
                for half in 0..2 {
                    let (row, column) = element(load.transposed, lane, half);
                    let (bits, is_defined) = rows[matrix * 8 + row][column];
                    *word |= bits << (16 * half);
                    undefined |= u32::from(!is_defined) << lane;
                }
            }
            warp.set(register, lanes, &words);
            if undefined & lanes != 0 {
                let parts = [(crate::code::Space::Shared, giving); 3];
                self.remember_undefined(
                    counter,
                    warp.index,
                    undefined & giving,
                    (&addresses, &parts),
                );
                warp.registers.taint(register, lanes, undefined, Some(counter));
            }
        }
    }

    /// Executes `stmatrix` for a whole warp.
    pub(super) fn store_matrix(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        store: &StoreMatrix,
        lanes: u32,
    ) {
        self.need_all_lanes(warp, counter, lanes);
        let grid = self.grid;
        let mut rows = [[(0_u64, true); 8]; WARP];
        for (matrix, &register) in store.sources.iter().enumerate() {
            let (words, undefined) = (warp.word(register), warp.registers.undefined(register));
            for (lane, &word) in words.iter().enumerate() {
                for half in 0..2 {
                    let (row, column) = element(store.transposed, lane, half);
                    let bits = word >> (16 * half) & 0xFFFF;
                    rows[matrix * 8 + row][column] = (bits.into(), undefined >> lane & 1 == 0);
                }
            }
        }
        let matrices = store.sources.len();
        let (giving, addresses) = self.rows(warp, counter, &store.address, matrices, lanes);
        let request = rows_of(warp, counter);
        for lane in lanes_of(giving) {
            let Some(offset) = self.within_shared(request, lane, addresses[lane]) else { continue };
            let conflict = self.observe_shared(request, lane, offset, true);
            self.needs_fence(offset, ROW_BYTES);
            self.report_race(request, lane, conflict, || in_shared(grid, offset as u64));
            for (column, &(bits, is_defined)) in rows[lane].iter().enumerate() {
                self.shared.write(offset + column * 2, 2, bits, is_defined);
            }
        }
    }

    /// Which lanes give the addresses of rows of so many matrices, and these: those of other lanes
    /// are not looked at.
    fn rows(
        &mut self,
        warp: &Warp,
        counter: u32,
        address: &Address,
        matrices: usize,
        lanes: u32,
    ) -> (u32, [u64; WARP]) {
        let giving = lanes & (u64::MAX >> (64 - 8 * matrices)) as u32;
        let (addresses, _) = self.places(warp, counter, address, giving);
        self.count_shared(&addresses, giving, ROW_BYTES);
        (giving, addresses)
    }

    /// All lanes of a warp have to take part.
    fn need_all_lanes(&mut self, warp: &Warp, counter: u32, lanes: u32) {
        if lanes != u32::MAX {
            let lane = lanes.trailing_zeros() as usize;
            self.report(FindingKind::MissingLanes, counter, warp.index, lane, || {
                (None, format!("only lanes {lanes:#010x} take part, and all have to"))
            });
        }
    }
}

/// Row and column of the two elements that a lane has of a matrix of 8 × 8.
fn element(transposed: bool, lane: usize, half: usize) -> (usize, usize) {
    match transposed {
        false => (lane / 4, lane % 4 * 2 + half),
        true => (lane % 4 * 2 + half, lane / 4),
    }
}

/// What lanes access, a row each.
fn rows_of(warp: &Warp, counter: u32) -> Request {
    Request {
        counter,
        warp: warp.index,
        bytes: ROW_BYTES,
        order: Order::Weak,
        scope: Scope::Block,
        read_only_path: false,
        early: 0,
    }
}

/// A matrix that the lanes of a warp hold in registers.
fn gather(
    warp: &Warp,
    shape: MmaShape,
    part: Part,
    registers: &[Register],
    [rows, columns]: [usize; 2],
) -> Matrix {
    let ty = if part == Part::Sums { shape.sums } else { shape.factors };
    let packed = ty.packed() as usize;
    let mut matrix = Matrix {
        columns,
        values: vec![0.0; rows * columns],
        undefined: vec![false; rows * columns],
        read_by: registers.iter().find_map(|&register| warp.registers.read_by(register)),
    };
    for (number, &register) in registers.iter().enumerate() {
        let (bits, undefined) = (warp.long(register), warp.registers.undefined(register));
        for (lane, &bits) in bits.iter().enumerate() {
            for index in 0..packed {
                let (row, column) = place(shape, part, lane, number * packed + index);
                let at = row * columns + column;
                if let (Some(value), Some(is_undefined)) =
                    (matrix.values.get_mut(at), matrix.undefined.get_mut(at))
                {
                    *value = ty.read(bits, index);
                    *is_undefined = undefined >> lane & 1 != 0;
                }
            }
        }
    }
    matrix
}

impl Matrix {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.values.get(row * self.columns + column).copied().unwrap_or(0.0)
    }

    fn is_undefined(&self, row: usize, column: usize) -> bool {
        self.undefined.get(row * self.columns + column).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_place() {
        use MmaType::{BF16, F16, F32, F64, TF32};
        for (factors, sums, rows, depth) in [
            (F16, F32, 16, 8),
            (F16, F16, 16, 16),
            (BF16, F32, 16, 16),
            (TF32, F32, 16, 4),
            (TF32, F32, 16, 8),
            (F64, F64, 8, 4),
            (F64, F64, 16, 4),
            (F64, F64, 16, 8),
            (F64, F64, 16, 16),
        ] {
            let shape = MmaShape { factors, sums, rows, depth };
            let (rows, depth) = (rows as usize, depth as usize);
            for (part, [rows, columns]) in
                [(Part::A, [rows, depth]), (Part::B, [depth, 8]), (Part::Sums, [rows, 8])]
            {
                let elements = rows * columns / WARP;
                let lanes = (0..WARP).flat_map(|lane| (0..elements).map(move |i| (lane, i)));
                let mut seen: Vec<_> = lanes.map(|(l, i)| place(shape, part, l, i)).collect();
                seen.sort_unstable();
                let all: Vec<_> =
                    (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))).collect();
                assert_eq!(seen, all, "{shape:?}");
            }
        }
    }
}
