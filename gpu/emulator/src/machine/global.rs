//! Device memory as a launch sees it: the buffers, and the module's variables.

use super::races::{Room, SharedCells};
use crate::code::VARIABLES;
use crate::finding::PlacedAddress;
use crate::memory::{Buffer, Memory};

/// Words of a variable that is made as large as any input may need, and used as far as one does.
const LARGE_VARIABLE: usize = 1 << 14;

/// Device memory, with who touched it during the launch.
#[derive(Debug)]
pub(crate) struct Global<'m> {
    buffers: &'m [Buffer],
    /// By address.
    variables: &'m [Buffer],
    /// Of buffers, then of variables; only of those that may be written, as a write to another is a
    /// finding by itself.
    cells: Vec<Option<SharedCells>>,
    /// For cells of vast buffers.
    room: Room,
}

/// A buffer or a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'g> {
    pub(crate) buffer: &'g Buffer,
    pub(crate) cells: Option<&'g SharedCells>,
}

impl<'m> Global<'m> {
    pub(crate) fn new(memory: &'m Memory) -> Self {
        let (buffers, variables) = (memory.buffers(), memory.variables());
        let room = Room::default();
        let cells = |buffer: &Buffer| {
            let words = buffer.len().div_ceil(4);
            buffer.is_writable().then(|| match buffer.is_vast() {
                true => SharedCells::vast(words, room.clone()),
                false => SharedCells::new(words),
            })
        };
        let of_variable = |variable: &Buffer| {
            let words = variable.len().div_ceil(4);
            match words > LARGE_VARIABLE {
                true => variable.is_writable().then(|| SharedCells::on_demand(words)),
                false => cells(variable),
            }
        };
        let of_variables = variables.iter().map(of_variable);
        let cells = buffers.iter().map(cells).chain(of_variables).collect();
        Self { buffers, variables, cells, room }
    }

    /// Whether more of vast buffers was touched than races can be looked for in.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Whether half as much was.
    pub(crate) fn is_half_full(&self) -> bool {
        self.room.is_half_full()
    }

    /// The one that an address lies in or near.
    #[inline]
    pub(crate) fn near(&self, address: u64) -> Option<Region<'_>> {
        let (index, buffer) = if VARIABLES.contains(&address) {
            let after = self.variables.partition_point(|variable| variable.address() <= address);
            let index = after.checked_sub(1)?;
            (self.buffers.len() + index, self.variables.get(index)?)
        } else {
            let index = Memory::near(address)?;
            (index, self.buffers.get(index)?)
        };
        Some(Region { buffer, cells: self.cells.get(index)?.as_ref() })
    }

    /// Puts an address in words.
    pub(crate) fn place(&self, address: u64) -> PlacedAddress {
        match self.near(address) {
            Some(region) => region.buffer.place(address),
            None => PlacedAddress { address, place: "near no buffer".to_owned() },
        }
    }
}
