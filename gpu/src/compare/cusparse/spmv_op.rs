//! `cusparseSpMVOp`: z = αAx + βy with a plan, of CUDA 13.1 and later. An experimental interface:
//! its signatures differ from version to version, so it is called in versions only whose header is
//! known.

use std::ffi::{c_int, c_void};

use libloading::Library;

use super::description::Description;
use super::library::{
    AS_IS, Address, Descriptor, Destroy, Handle, LibraryVersion, ScalarPointer, Status,
};
use super::{Cusparse, CusparseError};
use crate::run::device::DeviceBuffer;

/// From this version on, `bufferSize` and `createDescr` take an algorithm.
const TAKES_ALGORITHM: LibraryVersion = [12, 8, 1];
/// The last version, of CUDA 13.5, whose signatures are known to be those below.
const LAST_KNOWN: LibraryVersion = [12, 9, 4];

/// Which signatures a version has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    /// There is one algorithm.
    Plain,
    /// The algorithm is named.
    OfAlgorithm,
    /// Later than all whose header is known.
    Unknown,
}

impl Interface {
    fn of(version: LibraryVersion) -> Self {
        match version {
            version if version < TAKES_ALGORITHM => Self::Plain,
            version if version <= LAST_KNOWN => Self::OfAlgorithm,
            _ => Self::Unknown,
        }
    }
}

/// `cusparseSpMVOp` of a library, as far as it can be called.
#[derive(Debug)]
pub(super) enum Offer {
    /// The library does not have it.
    Absent,
    /// It may be called.
    Known(SpMvOpFunctions),
    /// The library has it, with signatures that may be others.
    Unknown(LibraryVersion),
}

type BufferSize = unsafe extern "C" fn(
    Handle,
    c_int,
    Descriptor,
    Descriptor,
    Descriptor,
    Descriptor,
    c_int,
    *mut usize,
) -> Status;
type BufferSizeOf = unsafe extern "C" fn(
    Handle,
    c_int,
    Descriptor,
    Descriptor,
    Descriptor,
    Descriptor,
    c_int,
    c_int,
    *mut usize,
) -> Status;
type CreateDescription = unsafe extern "C" fn(
    Handle,
    *mut *mut c_void,
    c_int,
    Descriptor,
    Descriptor,
    Descriptor,
    Descriptor,
    c_int,
    Address,
) -> Status;
type CreateDescriptionOf = unsafe extern "C" fn(
    Handle,
    *mut *mut c_void,
    c_int,
    Descriptor,
    Descriptor,
    Descriptor,
    Descriptor,
    c_int,
    c_int,
    Address,
) -> Status;
type CreatePlan =
    unsafe extern "C" fn(Handle, *mut c_void, *mut *mut c_void, *const c_void, usize) -> Status;
type Run = unsafe extern "C" fn(
    Handle,
    *mut c_void,
    ScalarPointer,
    ScalarPointer,
    Descriptor,
    Descriptor,
    Descriptor,
) -> Status;

/// The functions of a library that has them.
#[derive(Debug)]
pub(super) struct SpMvOpFunctions {
    preparation: Preparation,
    destroy_description: Destroy,
    create_plan: CreatePlan,
    destroy_plan: Destroy,
    run: Run,
}

/// The functions whose signatures changed.
#[derive(Debug)]
enum Preparation {
    /// There is one algorithm.
    Plain { buffer_size: BufferSize, create_description: CreateDescription },
    /// The algorithm is named.
    OfAlgorithm { buffer_size: BufferSizeOf, create_description: CreateDescriptionOf },
}

impl Offer {
    /// Looks up what the library has.
    pub(super) fn of(library: &Library, version: LibraryVersion) -> Self {
        let functions = match Interface::of(version) {
            // SAFETY: the address is not called, only known to be there.
            Interface::Unknown => match unsafe { library.get::<*const ()>("cusparseSpMVOp") } {
                Ok(_) => return Self::Unknown(version),
                Err(_) => None,
            },
            Interface::Plain => SpMvOpFunctions::load(library, false),
            Interface::OfAlgorithm => SpMvOpFunctions::load(library, true),
        };
        functions.map_or(Self::Absent, Self::Known)
    }

    /// The functions, where they can be called.
    ///
    /// # Errors
    /// Why they cannot be.
    pub(super) fn functions(&self) -> Result<Option<&SpMvOpFunctions>, CusparseError> {
        match self {
            Self::Absent => Ok(None),
            Self::Known(functions) => Ok(Some(functions)),
            &Self::Unknown(found) => {
                Err(CusparseError::UnknownInterface { found, last: LAST_KNOWN })
            }
        }
    }
}

impl SpMvOpFunctions {
    /// Looks them up in a library whose version has these signatures; `None` where one is missing.
    fn load(library: &Library, takes_algorithm: bool) -> Option<Self> {
        fn function<F: Copy>(library: &Library, symbol: &str) -> Option<F> {
            // SAFETY: each type below is the one in cusparse.h of the library's version, which is
            // not past the last one whose header was compared; the caller says which of the two
            // kinds it is. The library is never unloaded.
            unsafe { library.get::<F>(symbol) }.ok().map(|function| *function)
        }
        let buffer_size = "cusparseSpMVOp_bufferSize";
        let create_description = "cusparseSpMVOp_createDescr";
        let preparation = if takes_algorithm {
            Preparation::OfAlgorithm {
                buffer_size: function(library, buffer_size)?,
                create_description: function(library, create_description)?,
            }
        } else {
            Preparation::Plain {
                buffer_size: function(library, buffer_size)?,
                create_description: function(library, create_description)?,
            }
        };
        Some(Self {
            preparation,
            destroy_description: function(library, "cusparseSpMVOp_destroyDescr")?,
            create_plan: function(library, "cusparseSpMVOp_createPlan")?,
            destroy_plan: function(library, "cusparseSpMVOp_destroyPlan")?,
            run: function(library, "cusparseSpMVOp")?,
        })
    }

    /// Whether there is more than one algorithm.
    pub(super) fn has_algorithms(&self) -> bool {
        matches!(self.preparation, Preparation::OfAlgorithm { .. })
    }
}

/// A planned product.
#[derive(Debug)]
pub(super) struct SpMvOp<'c> {
    cusparse: &'c Cusparse,
    functions: &'c SpMvOpFunctions,
    scalars: Box<[u64; 2]>,
    operands: Operands,
    /// The library's description of the operation; null before it is made.
    description: *mut c_void,
    /// Null before it is made.
    plan: *mut c_void,
    _workspace: Option<DeviceBuffer>,
}

/// A, x, y and z. What is added is a vector of its own, all 0: a library that reads y though β is 0
/// may not find the output there, which holds NaN before a product is verified.
#[derive(Debug)]
pub(super) struct Operands {
    pub(super) a: Description,
    pub(super) x: Description,
    pub(super) y: Description,
    pub(super) z: Description,
    /// What `y` describes.
    pub(super) _zeros: DeviceBuffer,
}

impl<'c> SpMvOp<'c> {
    /// Takes memory and makes the plan. `number` is the algorithm's, and `compute` the type of the
    /// scalars. Also gives the bytes of memory.
    pub(super) fn prepare(
        cusparse: &'c Cusparse,
        functions: &'c SpMvOpFunctions,
        (number, compute): (c_int, c_int),
        operands: Operands,
        scalars: [u64; 2],
    ) -> Result<(Self, usize), CusparseError> {
        cusparse.device.bind()?;
        let check = |call, status| cusparse.functions.check(call, status);
        let Operands { a, x, y, z, .. } = &operands;
        let (handle, a, x, y, z) = (cusparse.handle, a.raw(), x.raw(), y.raw(), z.raw());
        let mut bytes = 0;
        // SAFETY: the handle and the descriptions are live, of operands whose sizes were checked to
        // fit; the pointer is to a live integer.
        let status = unsafe {
            match functions.preparation {
                Preparation::Plain { buffer_size, .. } => {
                    buffer_size(handle, AS_IS, a, x, y, z, compute, &raw mut bytes)
                }
                Preparation::OfAlgorithm { buffer_size, .. } => {
                    buffer_size(handle, AS_IS, a, x, y, z, compute, number, &raw mut bytes)
                }
            }
        };
        check("cusparseSpMVOp_bufferSize", status)?;
        let workspace = DeviceBuffer::new(&cusparse.device, bytes)?;
        let buffer = workspace.address() as Address;
        let mut planned = Self {
            cusparse,
            functions,
            scalars: Box::new(scalars),
            operands,
            description: std::ptr::null_mut(),
            plan: std::ptr::null_mut(),
            _workspace: Some(workspace),
        };
        let description = &raw mut planned.description;
        // SAFETY: as above; the workspace has as many bytes as were asked for, and is dropped after
        // the description.
        let status = unsafe {
            match functions.preparation {
                Preparation::Plain { create_description, .. } => {
                    create_description(handle, description, AS_IS, a, x, y, z, compute, buffer)
                }
                Preparation::OfAlgorithm { create_description, .. } => create_description(
                    handle,
                    description,
                    AS_IS,
                    a,
                    x,
                    y,
                    z,
                    compute,
                    number,
                    buffer,
                ),
            }
        };
        check("cusparseSpMVOp_createDescr", status)?;
        // SAFETY: the description was just made; without code, the epilogue is the plain one.
        let status = unsafe {
            (functions.create_plan)(
                handle,
                planned.description,
                &raw mut planned.plan,
                std::ptr::null(),
                0,
            )
        };
        check("cusparseSpMVOp_createPlan", status)?;
        Ok((planned, bytes))
    }

    /// Enqueues the product.
    pub(super) fn run(&self) -> Result<(), CusparseError> {
        let Self { cusparse, functions, plan, .. } = self;
        let Operands { x, y, z, .. } = &self.operands;
        let [alpha, beta] = self.scalars.each_ref().map(|cell| std::ptr::from_ref(cell).cast());
        cusparse.device.bind()?;
        // SAFETY: the handle, the plan and the descriptions are live, and so are the scalars, of
        // the type that the plan was made for.
        let status = unsafe {
            (functions.run)(cusparse.handle, *plan, alpha, beta, x.raw(), y.raw(), z.raw())
        };
        cusparse.functions.check("cusparseSpMVOp", status)
    }
}

impl Drop for SpMvOp<'_> {
    fn drop(&mut self) {
        if self.cusparse.device.bind().is_err() {
            return;
        }
        // A failure leaves nothing that could be done.
        if !self.plan.is_null() {
            // SAFETY: made in `prepare`, destroyed only here.
            let _ = unsafe { (self.functions.destroy_plan)(self.plan) };
        }
        if !self.description.is_null() {
            // SAFETY: as above.
            let _ = unsafe { (self.functions.destroy_description)(self.description) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_whose_header_is_known_are_called() {
        for (version, interface) in [
            ([12, 7, 2], Interface::Plain),
            ([12, 8, 0], Interface::Plain),
            ([12, 8, 1], Interface::OfAlgorithm),
            ([12, 9, 4], Interface::OfAlgorithm),
            ([12, 9, 5], Interface::Unknown),
            ([12, 10, 0], Interface::Unknown),
            ([13, 0, 0], Interface::Unknown),
        ] {
            assert_eq!(Interface::of(version), interface, "{version:?}");
        }
    }

    #[test]
    fn a_later_version_is_not_compared_and_says_so() {
        let error = Offer::Unknown([12, 10, 1]).functions().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("12.10.1") && text.contains("12.9.4"), "{text}");
        assert!(text.starts_with("not compared: ") && text.lines().count() == 1, "{text}");
        // As a finding, with its reason.
        assert!(!error.is_not_applicable());
        assert!(Offer::Absent.functions().unwrap().is_none());
    }
}
