//! Calls of the C API from Rust.

#![allow(dead_code, reason = "each suite uses a part")]

use std::ffi::CStr;
use std::ptr;

use sparserl::api::*;

#[track_caller]
pub(crate) fn ok(status: sparserl_status) {
    // SAFETY: the text is a C string, and no other call of this thread fails meanwhile.
    let error = unsafe { CStr::from_ptr(sparserl_last_error()) };
    assert_eq!(status, SPARSERL_SUCCESS, "{error:?}");
}

/// An option and the bytes of its value.
pub(crate) type Setting = (i32, Vec<u8>);

pub(crate) fn text(option: i32, text: &str) -> Setting {
    (option, text.as_bytes().to_owned())
}

pub(crate) fn number(option: i32, number: i32) -> Setting {
    (option, number.to_ne_bytes().to_vec())
}

pub(crate) fn with_options<R>(
    settings: &[Setting],
    use_them: impl FnOnce(*mut sparserl_options) -> R,
) -> R {
    let mut options = ptr::null_mut();
    // SAFETY: it is a place for a handle.
    ok(unsafe { sparserl_options_create(&raw mut options) });
    for (option, value) in settings {
        // SAFETY: so many bytes are there.
        ok(unsafe { sparserl_options_set(options, *option, value.as_ptr().cast(), value.len()) });
    }
    let used = use_them(options);
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_options_destroy(options) });
    used
}

/// A tridiagonal matrix.
pub(crate) fn matrix(context: *mut sparserl_context) -> *mut sparserl_matrix {
    matrix_of(context, 500, 1.0)
}

/// A tridiagonal matrix of so many rows, whose entries are all this number.
pub(crate) fn matrix_of(
    context: *mut sparserl_context,
    rows: i32,
    number: f64,
) -> *mut sparserl_matrix {
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        columns.extend((row - 1).max(0)..(row + 2).min(rows));
        offsets.push(columns.len() as i32);
    }
    let values = vec![number; columns.len()];
    let csr = sparserl_csr {
        rows: rows.into(),
        cols: rows.into(),
        nnz: columns.len() as i64,
        row_offsets: offsets.as_ptr().cast(),
        column_indices: columns.as_ptr().cast(),
        values: values.as_ptr().cast(),
        offset_type: SPARSERL_I32,
        index_type: SPARSERL_I32,
        value_type: SPARSERL_F64,
        index_base: 0,
        location: SPARSERL_HOST,
        reserved: [0; 3],
    };
    let mut matrix = ptr::null_mut();
    // SAFETY: the arrays are what the structure says, and there is a place for a handle.
    ok(unsafe { sparserl_matrix_create(context, &raw const csr, &raw mut matrix) });
    matrix
}
