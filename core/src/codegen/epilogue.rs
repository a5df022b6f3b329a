//! Functions of the caller's that results go through before they are stored.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use super::dense::dense_type;
use crate::task::{Dtype, Operation, Task};

/// A function in CUDA C that is applied to each element before it is stored, for SpMV and SpMM:
///
/// ```text
/// __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user)
/// __device__ Scalar epilogue(unsigned row, unsigned column, Scalar product, Scalar old,
///                            const User& user)
/// ```
///
/// `Scalar` is the type of sums, `product` an element of αAx or αAB, `old` one of βy or βC, or 0
/// where β is 0; `User` has the members that were declared. `Dense` is the type of the dense
/// operands, which becomes a `Scalar` by itself and is made of one by `Dense::nearest` where it is
/// another; for SpMM `N` is their number of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epilogue {
    /// The function, and whatever it uses.
    pub text: String,
    /// What the caller hands to each launch.
    pub user: Vec<UserField>,
}

/// A member of the caller's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserField {
    /// Name of the member.
    pub name: String,
    /// What it is.
    pub kind: UserKind,
}

/// What a member of the caller's values is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// A number of the type of sums.
    Number,
    /// A pointer to an array in device memory that is only read.
    Input(UserArray),
    /// A pointer to an array in device memory, each element of which is written for its own element
    /// of the result only.
    Output(UserArray),
}

/// An array among the caller's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserArray {
    /// Type of its elements.
    pub element: UserElement,
    /// How many it has.
    pub extent: Extent,
}

/// Type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserElement {
    /// That of sums.
    Scalar,
    /// That of the dense operands.
    Dense,
}

/// How many elements an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One: a number in device memory, which may change between replays of a CUDA graph.
    One,
    /// As many as the matrix has rows.
    Rows,
    /// As many as the matrix has columns.
    Columns,
    /// As many as the dense operands have columns.
    DenseColumns,
    /// As many as the result has elements, row-major.
    Result,
}

impl Extent {
    const WRITTEN: [(&str, Self); 5] = [
        ("[1]", Self::One),
        ("[rows]", Self::Rows),
        ("[columns]", Self::Columns),
        ("[N]", Self::DenseColumns),
        ("[rows][N]", Self::Result),
    ];

    fn written(self) -> &'static str {
        Self::WRITTEN.iter().find(|(_, extent)| *extent == self).map_or("", |(text, _)| text)
    }

    /// How many elements these are for a matrix of `rows` and `cols`, and dense operands of
    /// `dense_columns`.
    #[must_use]
    pub fn elements(self, rows: usize, cols: usize, dense_columns: usize) -> usize {
        match self {
            Self::One => 1,
            Self::Rows => rows,
            Self::Columns => cols,
            Self::DenseColumns => dense_columns,
            Self::Result => rows * dense_columns,
        }
    }
}

impl UserElement {
    /// Its run-time name, for dense operands of a type.
    #[must_use]
    pub fn dtype(self, dense: Dtype) -> Dtype {
        match self {
            Self::Scalar => dense.accumulator(),
            Self::Dense => dense,
        }
    }

    fn written(self) -> &'static str {
        match self {
            Self::Scalar => "Scalar",
            Self::Dense => "Dense",
        }
    }
}

/// A text that declares no values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{declaration}` declares no value of an epilogue: expected `Scalar NAME`, or \
     `const Scalar NAME[1]`, `[rows]`, `[columns]`, `[N]` or `[rows][N]`, or without `const` \
     `Scalar NAME[rows]` or `[rows][N]`, arrays also of `Dense`, each followed by `;`"
)]
pub struct UserFieldError {
    declaration: String,
}

impl UserField {
    /// Reads declarations like the members of a struct: `const Scalar lower[rows]; Scalar step;`.
    ///
    /// # Errors
    /// At the first that is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, UserFieldError> {
        let mut fields: Vec<Self> = Vec::new();
        for declaration in text.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let refused = || UserFieldError { declaration: declaration.to_owned() };
            let (is_const, rest) = match declaration.strip_prefix("const ") {
                Some(rest) => (true, rest.trim_start()),
                None => (false, declaration),
            };
            let (element, rest) = [UserElement::Scalar, UserElement::Dense]
                .into_iter()
                .find_map(|element| Some((element, rest.strip_prefix(element.written())?)))
                .filter(|(_, rest)| rest.starts_with(' '))
                .ok_or_else(refused)?;
            let (name, extent) = match rest.split_once('[') {
                None => (rest, None),
                Some((name, _)) => {
                    let written = rest[name.len()..].trim();
                    let known = Extent::WRITTEN.iter().find(|(text, _)| *text == written);
                    (name, Some(known.ok_or_else(refused)?.1))
                }
            };
            let kind = match (is_const, extent) {
                (false, None) if element == UserElement::Scalar => UserKind::Number,
                (true, Some(extent)) => UserKind::Input(UserArray { element, extent }),
                (false, Some(extent @ (Extent::Rows | Extent::Result))) => {
                    UserKind::Output(UserArray { element, extent })
                }
                _ => return Err(refused()),
            };
            let name = name.trim();
            let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
            let is_name = name.starts_with(is_letter)
                && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
            if !is_name || fields.iter().any(|field| field.name == name) {
                return Err(refused());
            }
            fields.push(Self { name: name.to_owned(), kind });
        }
        Ok(fields)
    }
}

impl Epilogue {
    /// The epilogue of a kernel whose function has this body, in which `at` is the place of the
    /// element in the result, row-major.
    #[must_use]
    pub fn of_body(body: &str, user: Vec<UserField>, operation: Operation) -> Self {
        let (place, at) = match operation {
            Operation::SpMV => ("unsigned row", "row"),
            Operation::SpMM { .. } => ("unsigned row, unsigned column", "size_t(row) * N + column"),
        };
        let text = format!(
            "__device__ Scalar epilogue({place}, Scalar product, Scalar old, const User& user) {{\n  \
             const size_t at = {at};\n  {body}\n}}"
        );
        Self { text, user }
    }

    /// Bytes of the caller's values, as C lays the struct of them out, for dense operands of a
    /// type: 0 where there are none.
    #[must_use]
    pub fn user_bytes(&self, dense: Dtype) -> usize {
        let end = |end: usize, field: &UserField| {
            let size = field.kind.size(dense);
            end.next_multiple_of(size) + size
        };
        let sizes = self.user.iter().map(|field| field.kind.size(dense));
        self.user.iter().fold(0, end).next_multiple_of(sizes.max().unwrap_or(1))
    }

    /// Where each of the caller's values begins in the struct of them.
    #[must_use]
    pub fn user_offsets(&self, dense: Dtype) -> Vec<usize> {
        let end = |end: &mut usize, field: &UserField| {
            let size = field.kind.size(dense);
            let start = end.next_multiple_of(size);
            *end = start + size;
            Some(start)
        };
        self.user.iter().scan(0, end).collect()
    }

    /// The declarations of the caller's values, as [`UserField::parse_all`] reads them.
    #[must_use]
    pub fn declarations(&self) -> String {
        let declaration = |UserField { name, kind }: &UserField| match kind {
            UserKind::Number => format!("Scalar {name};"),
            UserKind::Input(UserArray { element, extent }) => {
                format!("const {} {name}{};", element.written(), extent.written())
            }
            UserKind::Output(UserArray { element, extent }) => {
                format!("{} {name}{};", element.written(), extent.written())
            }
        };
        self.user.iter().map(declaration).collect()
    }

    /// The caller's values and function, as they stand in a source.
    pub(super) fn definitions(&self, task: Task) -> String {
        let dense = dense_type(task);
        let mut text = format!("\n// Types of the epilogue.\nusing Dense = {dense};\n");
        if let Operation::SpMM { columns } = task.operation {
            text.push_str(&format!("constexpr unsigned N = {columns};\n"));
        }
        text.push_str("\n// What the caller hands to the epilogue.\nstruct User {\n");
        for UserField { name, kind } in &self.user {
            let declaration = match kind {
                UserKind::Number => format!("Scalar {name};"),
                UserKind::Input(array) => format!("const {}* {name};", array.element.written()),
                UserKind::Output(array) => format!("{}* {name};", array.element.written()),
            };
            text.push_str(&format!("  {declaration}\n"));
        }
        // Messages of the compiler name the line of the caller's text.
        text.push_str(&format!("}};\n\n#line 1 \"epilogue\"\n{}\n", self.text.trim_end()));
        text.push_str("#line 1 \"kernel\"\n");
        text
    }
}

impl UserKind {
    /// Bytes in the struct of the caller's values, which are its alignment, too.
    fn size(self, dense: Dtype) -> usize {
        match self {
            Self::Number => dense.accumulator().size(),
            Self::Input(_) | Self::Output(_) => size_of::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn values_are_declared_like_members() {
        let text = "const Scalar lower[rows]; const Dense at[columns];Scalar step ; Scalar out[rows];\
                    const Dense bias [N]; Dense all[rows][N]; const Scalar tau[1]";
        let array = |element, extent| UserArray { element, extent };
        let fields = UserField::parse_all(text).unwrap();
        let kinds: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("lower", UserKind::Input(array(UserElement::Scalar, Extent::Rows))),
                ("at", UserKind::Input(array(UserElement::Dense, Extent::Columns))),
                ("step", UserKind::Number),
                ("out", UserKind::Output(array(UserElement::Scalar, Extent::Rows))),
                ("bias", UserKind::Input(array(UserElement::Dense, Extent::DenseColumns))),
                ("all", UserKind::Output(array(UserElement::Dense, Extent::Result))),
                ("tau", UserKind::Input(array(UserElement::Scalar, Extent::One))),
            ]
        );
        let epilogue = Epilogue { text: String::new(), user: fields.clone() };
        assert_eq!(UserField::parse_all(&epilogue.declarations()).unwrap(), fields);
        assert_eq!(UserField::parse_all(" ").unwrap(), []);
        for wrong in [
            "double a",
            "const Scalar a",
            "Scalar a[columns]",
            "Scalar a[N]",
            "Scalar a[1]",
            "Dense a",
            "ScalarA a",
            "const Scalar a[N][rows]",
            "const Scalar a[rows][N",
            "Scalar a[3]",
            "const Scalar a[2]",
            "Scalar 1a",
            "Scalar a; Scalar a",
            "Scalar a[rows",
            "Scalar ",
        ] {
            let error = UserField::parse_all(wrong).unwrap_err().to_string();
            assert!(error.contains("declares no value") && !error.contains('\n'), "{wrong}");
        }
    }

    #[test]
    fn values_lie_as_c_lays_them_out() {
        let fields = UserField::parse_all("Scalar a; const Scalar b[rows]; Scalar c").unwrap();
        let epilogue = Epilogue { text: String::new(), user: fields };
        assert_eq!((epilogue.user_bytes(Dtype::F32), epilogue.user_bytes(Dtype::F64)), (24, 24));
        assert_eq!(epilogue.user_offsets(Dtype::F32), [0, 8, 16]);
        // Numbers are of the type of sums.
        assert_eq!(epilogue.user_bytes(Dtype::F16), 24);
        let fields = UserField::parse_all("Scalar a; Scalar b").unwrap();
        let numbers = Epilogue { text: String::new(), user: fields };
        assert_eq!((numbers.user_bytes(Dtype::BF16), numbers.user_bytes(Dtype::F64)), (8, 16));
        let none = Epilogue { text: String::new(), user: Vec::new() };
        assert_eq!(none.user_bytes(Dtype::F64), 0);
    }
}
