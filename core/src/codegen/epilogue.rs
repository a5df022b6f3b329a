//! SpMV whose result goes elsewhere, or through a function of the caller's before it is stored.
//!
//! Such a kernel has the parameters of the plain one, of which `y` is called `z`, and behind them
//! the old vector and, with an epilogue, the caller's values.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use thiserror::Error;

use super::CudaSource;
use crate::layout::ElementType;
use crate::task::{Dtype, Task};

/// What becomes of αAx before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `z = αAx + βy`.
    Apart,
    /// `z = epilogue(row, αAx, βy, user)`.
    Fused(Epilogue),
}

/// A function in CUDA C that is applied to each element before it is stored:
///
/// ```text
/// __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user)
/// ```
///
/// `Scalar` is the type of the dense vectors, `product` an element of αAx, `old` one of βy, or 0
/// where β is 0; `User` has the members that were declared.
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
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: UserKind,
}

/// What a member of the caller's values is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// A number of the dense vectors' type.
    Number,
    /// A pointer to an array in device memory that is only read.
    Input(Extent),
    /// A pointer to an array in device memory with an element for each row, each of which is
    /// written for its own row only.
    Output,
}

/// How many elements an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As many as the matrix has rows.
    Rows,
    /// As many as the matrix has columns.
    Columns,
}

/// A text that declares no values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{declaration}` declares no value of an epilogue: expected `Scalar NAME`, \
     `const Scalar NAME[rows]`, `const Scalar NAME[columns]` or `Scalar NAME[rows]`, each followed by `;`"
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
            let rest = rest.strip_prefix("Scalar ").ok_or_else(refused)?.trim();
            let (name, extent) = match rest.strip_suffix(']').map(|rest| rest.split_once('[')) {
                None => (rest, None),
                Some(Some((name, "rows"))) => (name, Some(Extent::Rows)),
                Some(Some((name, "columns"))) => (name, Some(Extent::Columns)),
                Some(_) => return Err(refused()),
            };
            let kind = match (is_const, extent) {
                (false, None) => UserKind::Number,
                (true, Some(extent)) => UserKind::Input(extent),
                (false, Some(Extent::Rows)) => UserKind::Output,
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
    /// Bytes of the caller's values, as C lays the struct of them out: 0 where there are none.
    #[must_use]
    pub fn user_bytes(&self, dtype: Dtype) -> usize {
        let size = |field: &UserField| match field.kind {
            UserKind::Number => dtype.size(),
            UserKind::Input(_) | UserKind::Output => size_of::<u64>(),
        };
        let end = |end: usize, field: &UserField| {
            let size = size(field);
            end.next_multiple_of(size) + size
        };
        let alignment = self.user.iter().map(size).max().unwrap_or(1);
        self.user.iter().fold(0, end).next_multiple_of(alignment)
    }

    /// Where each of the caller's values begins in the struct of them.
    #[must_use]
    pub fn user_offsets(&self, dtype: Dtype) -> Vec<usize> {
        let end = |end: &mut usize, field: &UserField| {
            let size = if field.kind == UserKind::Number { dtype.size() } else { 8 };
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
            UserKind::Input(Extent::Rows) => format!("const Scalar {name}[rows];"),
            UserKind::Input(Extent::Columns) => format!("const Scalar {name}[columns];"),
            UserKind::Output => format!("Scalar {name}[rows];"),
        };
        self.user.iter().map(declaration).collect()
    }

    /// The caller's values and function, as they stand in a source.
    fn definitions(&self) -> String {
        let mut text = "\n// What the caller hands to the epilogue.\nstruct User {\n".to_owned();
        for UserField { name, kind } in &self.user {
            let declaration = match kind {
                UserKind::Number => format!("Scalar {name};"),
                UserKind::Input(_) => format!("const Scalar* {name};"),
                UserKind::Output => format!("Scalar* {name};"),
            };
            text.push_str(&format!("  {declaration}\n"));
        }
        // Messages of the compiler name the line of the caller's text.
        text.push_str(&format!("}};\n\n#line 1 \"epilogue\"\n{}\n", self.text.trim_end()));
        text.push_str("#line 1 \"kernel\"\n");
        text
    }

    /// A kernel that applies the epilogue to a product that is there already: what a fused kernel
    /// has to agree with. Its parameters are `product`, `y`, `z`, `beta`, `rows` and, where there
    /// are any, the caller's values.
    #[must_use]
    pub fn unfused(&self, task: Task) -> CudaSource {
        let scalar = ElementType::from(task.precision.dense()).cuda_type();
        let kernel = "sparserl_unfused_epilogue";
        let definitions = self.definitions();
        let (parameter, user) =
            if self.user.is_empty() { ("", "User{}") } else { (", User user", "user") };
        let text = format!(
            "namespace {{\nusing Scalar = {scalar};\n{definitions}\n\
             __device__ float rounded(float a, float b) {{ return __fmul_rn(a, b); }}\n\
             __device__ double rounded(double a, double b) {{ return __dmul_rn(a, b); }}\n\n\
             }}  // namespace\n\n\
             extern \"C\" __global__ void {kernel}(const {scalar}* product, const {scalar}* y,\n    \
             {scalar}* z, {scalar} beta, unsigned rows{parameter}) {{\n  \
             const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;\n  \
             if (row >= rows) return;\n  \
             const {scalar} old = beta == 0 ? {scalar}(0) : rounded(beta, y[row]);\n  \
             z[row] = epilogue(row, product[row], old, {user});\n}}\n"
        );
        CudaSource { text, kernel: kernel.to_string(), parameters: Vec::new() }
    }
}

impl Ending {
    /// What a source defines for it before its own definitions.
    pub(super) fn definitions(&self) -> String {
        match self {
            Self::Apart => String::new(),
            Self::Fused(epilogue) => epilogue.definitions(),
        }
    }

    /// Declarations of the parameters that follow those of the plain kernel.
    pub(super) fn declarations(&self, scalar: &str) -> Vec<String> {
        let mut declarations = alloc::vec![format!("const {scalar}* y")];
        if self.has_user() {
            declarations.push("User user".to_owned());
        }
        declarations
    }

    /// The output as the kernel makes it.
    pub(super) fn output(&self) -> &'static str {
        match self {
            Self::Apart => "Output{z, y, alpha, beta}",
            Self::Fused(_) if self.has_user() => "Output{z, y, alpha, beta, user}",
            Self::Fused(_) => "Output{z, y, alpha, beta, User{}}",
        }
    }

    fn has_user(&self) -> bool {
        matches!(self, Self::Fused(epilogue) if !epilogue.user.is_empty())
    }

    /// What the kernel computes, in words.
    pub(super) fn write_header(&self, text: &mut String) -> core::fmt::Result {
        let product = match self {
            Self::Apart => "z = alpha * A * x + beta * y",
            Self::Fused(_) => "z = epilogue(row, alpha * A * x, beta * y, user)",
        };
        writeln!(
            text,
            "// Here {product}, where z may be y. Behind the arguments below, of which z is the\n\
             // output, come y and the caller's values, where there are any."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_declared_like_members() {
        let text =
            "const Scalar lower[rows]; const Scalar at[columns];Scalar step ; Scalar out[rows];";
        let fields = UserField::parse_all(text).unwrap();
        let kinds: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("lower", UserKind::Input(Extent::Rows)),
                ("at", UserKind::Input(Extent::Columns)),
                ("step", UserKind::Number),
                ("out", UserKind::Output),
            ]
        );
        let epilogue = Epilogue { text: String::new(), user: fields.clone() };
        assert_eq!(UserField::parse_all(&epilogue.declarations()).unwrap(), fields);
        assert_eq!(UserField::parse_all(" ").unwrap(), []);
        for wrong in [
            "double a",
            "const Scalar a",
            "Scalar a[columns]",
            "Scalar a[3]",
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
        let none = Epilogue { text: String::new(), user: Vec::new() };
        assert_eq!(none.user_bytes(Dtype::F64), 0);
    }
}
