//! What a layout has to be, whatever layouts there are.

use alloc::vec::Vec;

use super::array::{Array, Meaning};
use super::call::DeviceCall;
use super::cost::{CostModel, PartCost};
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::syntax::grammar::{Expand, Field, LayoutSet, Site, Slot};
use crate::syntax::{Access, Mask, Reader, Token, Word};
use crate::task::Task;

/// All that one layout is. A layout without one of these does not compile.
pub(crate) trait LayoutModule: Copy {
    /// The word that opens it in a program.
    const WORD: Word;
    /// Names of its fields in program text, in the order of their tokens.
    const FIELDS: &'static [&'static str];
    /// Whether what is stored depends on the threads of a block, too, as well as on the task.
    const STORES_BY_BLOCK: bool = false;
    /// Whether the input is read from one end to the other, whatever the L2 cache holds, as
    /// [`cost`](Self::cost) says; elsewhere entries read its rows one by one.
    const STREAMS_INPUT: bool = false;

    /// Its production: the slots of its fields, or `None` where it cannot store the rows of a site.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>>;

    /// Appends the tokens of its fields.
    fn write(&self, out: &mut Vec<Token>);

    /// Reads the fields that [`LayoutModule::write`] wrote.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;

    /// Coding and caching of its arrays.
    fn access(&self) -> Access;

    /// The layout as far as it decides what is stored: fields that only say what threads do are as
    /// in any other of the same storage.
    fn storage(&self) -> Self;

    /// Stores the rows of a part: the arrays that hold the matrix. Asked of a
    /// [`storage`](Self::storage) only.
    ///
    /// # Errors
    /// When the program does not fit the matrix, which only one that was decoded freely can meet.
    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError>;

    /// What a launch takes for a part that is stored so.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError>;

    /// Gives back position, column and value of each entry; `None` when an array is missing or too
    /// short.
    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()>;

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning>;

    /// The call of its device code.
    fn call(&self, task: Task, block: u32) -> DeviceCall;

    /// The largest number of items that its device code counts to for a part with so many rows and
    /// entries; 0 where it counts no other items than these.
    fn most_items(&self, _rows: u64, _nnz: u64) -> u64 {
        0
    }

    /// What a product is predicted to cost.
    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost;
}

/// The slot of a field that only one layout has.
pub(crate) fn field<M: LayoutModule, L>(
    name: &'static str,
    site: Site,
    expand: Expand<L>,
) -> Slot<L> {
    Slot::Field(Field { layout: M::WORD, name, site, expand })
}
