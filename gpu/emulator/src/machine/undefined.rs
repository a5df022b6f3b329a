//! Uses of values that nobody has written. What is wrong is told where such a value was read, for
//! it may have come a long way to where it matters.

use super::core::Core;
use super::lanes::lanes_of;
use super::request::Use;
use super::touch::{in_local, in_shared};
use crate::code::{SHARED_BITS, Space, WARP};
use crate::finding::{FindingKind, PlacedAddress};

impl Core<'_> {
    /// Notes where an undefined value comes from that is stored in shared memory, or in that of a
    /// thread.
    #[cold]
    pub(super) fn store_undefined(
        &mut self,
        thread: Option<usize>,
        offset: usize,
        read_by: Option<u32>,
    ) {
        if let Some(read) = read_by {
            self.undefined_stored.insert((thread, offset), read);
        }
    }

    /// The instruction that first read what is undefined there, if it has been stored since.
    #[cold]
    pub(super) fn undefined_since(&self, thread: Option<usize>, offset: usize) -> Option<u32> {
        self.undefined_stored.get(&(thread, offset)).copied()
    }

    /// Notes what an instruction has read that was never written, the first time that it does.
    #[cold]
    pub(super) fn remember_undefined(
        &mut self,
        counter: u32,
        warp: usize,
        undefined: u32,
        (addresses, parts): (&[u64; WARP], &[(Space, u32)]),
    ) {
        let (grid, awaited) = (self.grid, &self.shared.awaited);
        let waited_at = self.waited_at.get(&warp).copied();
        self.undefined_reads.entry(counter).or_insert_with(|| {
            let lane = lanes_of(undefined).next()?;
            let (space, _) = parts.iter().find(|(_, lanes)| lanes >> lane & 1 != 0)?;
            let address = addresses[lane];
            match space {
                Space::Global | Space::Generic => Some(grid.global.place(address)),
                Space::Shared | Space::Cluster => {
                    let offset = address & ((1 << SHARED_BITS) - 1);
                    let mut found = in_shared(grid, offset);
                    let is_own = *space == Space::Shared;
                    let coming = awaited.get(&(offset as usize / 4 * 4)).filter(|_| is_own);
                    if let Some(coming) = coming {
                        let issued = grid.kernel.place(coming.issued_at);
                        found.place += &format!(
                            ", to which an asynchronous copy is under way, issued {issued}"
                        );
                        if let Some(waited_at) = waited_at {
                            let waited = grid.kernel.place(waited_at);
                            found.place += &format!("; the warp has waited last {waited}");
                        }
                    }
                    Some(found)
                }
                Space::Local => {
                    Some(PlacedAddress { address, place: in_local(grid.kernel, address) })
                }
                Space::Parameter => None,
            }
        });
    }

    /// Reports that something depends on an undefined value: there where it was read, if that is
    /// known, and else here.
    #[cold]
    pub(super) fn report_undefined(
        &mut self,
        at: Use,
        read_by: Option<u32>,
        place: impl FnOnce() -> Option<PlacedAddress>,
    ) {
        let Use { counter, warp, lane, what } = at;
        let kind = FindingKind::Uninitialised;
        let kernel = self.grid.kernel;
        match read_by.filter(|&read| read != counter) {
            Some(read) if self.read_absent.contains(&read) => {
                self.report(FindingKind::InactiveLane, read, warp, lane, || {
                    let at = kernel.place(counter);
                    let of = "a lane that has ended or does not take part";
                    (None, format!("it reads from {of}, and {what} {at} depends on it"))
                });
            }
            None => self
                .report(kind, counter, warp, lane, || (place(), format!("{what} depends on it"))),
            Some(read) => {
                let of = self.undefined_reads.get(&read).cloned().flatten();
                self.report(kind, read, warp, lane, || {
                    (of, format!("{what} {} depends on it", kernel.place(counter)))
                });
            }
        }
    }
}
