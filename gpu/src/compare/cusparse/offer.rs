//! `cusparseSpMVOp` as libraries have it, from CUDA 13.1 on. An experimental interface: its
//! signatures differ from version to version, so it is called in versions only whose header is
//! known.

use std::ffi::{c_int, c_void};

use libloading::Library;

use super::CusparseError;
use super::types::{Address, Descriptor, Destroy, Handle, LibraryVersion, ScalarPointer, Status};

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
    pub(super) preparation: Preparation,
    pub(super) destroy_description: Destroy,
    pub(super) create_plan: CreatePlan,
    pub(super) destroy_plan: Destroy,
    pub(super) run: Run,
}

/// The functions whose signatures changed.
#[derive(Debug)]
pub(super) enum Preparation {
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
