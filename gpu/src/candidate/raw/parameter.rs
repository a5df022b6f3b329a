//! What the parameters of a kernel are.

use sparserl_core::task::Dtype;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// rows + 1 offsets of the rows' entries.
    RowOffsets,
    /// The column of each entry.
    ColumnIndices,
    /// The value of each entry.
    Values,
    /// The dense operand, row-major.
    Dense,
    /// The result, row-major.
    Output,
    /// Rows of the matrix.
    NumRows,
    /// Columns of the matrix.
    NumCols,
    /// Entries of the matrix.
    Nnz,
    /// Columns of the dense operand and of the result; 1 for SpMV.
    DenseCols,
}

/// A parameter's C++ type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `int*` or `unsigned*`.
    Indices,
    /// `float*` or `double*`.
    Elements(Dtype),
    /// `int` or `unsigned`.
    Count,
}

impl Role {
    const ALL: [Self; 9] = [
        Self::RowOffsets,
        Self::ColumnIndices,
        Self::Values,
        Self::Dense,
        Self::Output,
        Self::NumRows,
        Self::NumCols,
        Self::Nnz,
        Self::DenseCols,
    ];

    /// Parameters of the usual kernel.
    const USUAL_ORDER: [Self; 7] = [
        Self::RowOffsets,
        Self::ColumnIndices,
        Self::Values,
        Self::Dense,
        Self::Output,
        Self::NumRows,
        Self::DenseCols,
    ];

    /// Its names, in lower case and without underscores.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let names = match self {
            Self::RowOffsets => {
                "rowptr rowptrs rowpointer rowpointers rowoffset rowoffsets offsets rowstart rowstarts rowindex \
                 csrrowptr csrrowptrs csrrowoffsets csrrow arowptr indptr ptr rp ia ap"
            }
            Self::ColumnIndices => {
                "colidx colidxs colind colinds colindex colindices colids col cols column columns columnindex \
                 columnindices csrcolidx csrcolind csrcolindices csrcol acolidx indices ci ja aj"
            }
            Self::Values => {
                "values value vals val data csrvalues csrvals csrval avalues avals aval nzvals nzval ax a"
            }
            Self::Dense => {
                "densematrix densemat dense densevector densevec denseinput densein matrixb bmatrix matb b \
                 vectorx vecx xvec vector vec x input in rhs"
            }
            Self::Output => {
                "outputmatrix output out denseoutput denseout results result res matrixc cmatrix matc c \
                 vectory vecy yvec y"
            }
            Self::NumRows => "numrows numrow nrows nrow rows rowcount arows anumrows m",
            Self::NumCols => {
                "numcols numcol ncols ncol cols colcount numcolumns ncolumns columns acols anumcols"
            }
            Self::Nnz => "nnz annz numnnz numnonzeros nonzeros numentries",
            Self::DenseCols => {
                "densecols densecolumns densencols ncolsdense numdensecols numcolsdense densewidth bcols ccols \
                 numcolsb bnumcols ncolsb n k width featuresize numfeatures featdim dim"
            }
        };
        names.split(' ')
    }

    fn accepts(self, kind: Kind) -> bool {
        match self {
            Self::RowOffsets | Self::ColumnIndices => kind == Kind::Indices,
            Self::Values | Self::Dense | Self::Output => matches!(kind, Kind::Elements(_)),
            Self::NumRows | Self::NumCols | Self::Nnz | Self::DenseCols => kind == Kind::Count,
        }
    }

    /// The name to recommend.
    fn name(self) -> &'static str {
        match self {
            Self::RowOffsets => "row_ptr",
            Self::ColumnIndices => "col_idx",
            Self::Values => "values",
            Self::Dense => "dense_matrix",
            Self::Output => "output",
            Self::NumRows => "num_rows",
            Self::NumCols => "num_cols",
            Self::Nnz => "nnz",
            Self::DenseCols => "dense_cols",
        }
    }
}

/// What a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) parameters: Vec<RawParameter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawParameter {
    name: String,
    pub(super) role: Role,
    kind: Kind,
}

impl RawParameter {
    /// As it is declared, or what it is where it has no name.
    pub(super) fn name(&self) -> &str {
        if self.name.is_empty() { self.role.name() } else { &self.name }
    }
}

impl Signature {
    /// A parameter of another element type than `task`'s.
    pub(super) fn other_element_type(&self, task: Dtype) -> Option<(&str, Dtype)> {
        self.parameters.iter().find_map(|parameter| match parameter.kind {
            Kind::Elements(dtype) if dtype != task => Some((parameter.name.as_str(), dtype)),
            _ => None,
        })
    }
}

/// Reads what stands between a kernel's parentheses, without comments.
pub(super) fn read_signature(text: &str) -> Result<Signature, ParameterError> {
    let texts = text.split(',').map(str::trim);
    let declared: Vec<Declared> = if text.trim().is_empty() {
        vec![]
    } else {
        texts.map(declared).collect::<Result<_, _>>()?
    };
    let named: Vec<Option<Role>> = declared.iter().map(role_by_name).collect();
    // All by their names, or else all by their places, unless a name says otherwise.
    let usual = Role::USUAL_ORDER;
    let fits_order = declared.len() == usual.len()
        && declared.iter().zip(usual).all(|(declared, role)| role.accepts(declared.kind))
        && named.iter().zip(usual).all(|(named, role)| named.is_none_or(|named| named == role));
    let mut parameters = Vec::new();
    for (index, (Declared { name, kind }, role)) in declared.into_iter().zip(named).enumerate() {
        let by_place = usual.get(index).copied().filter(|_| fits_order);
        let role = role.or(by_place).ok_or_else(|| unknown(&name, index, kind))?;
        parameters.push(RawParameter { name, role, kind });
    }
    for role in Role::ALL {
        let mut same = parameters.iter().filter(|parameter| parameter.role == role);
        match (same.next(), same.next()) {
            (Some(first), Some(second)) => {
                return Err(ParameterError::Twice {
                    first: first.name.clone(),
                    second: second.name.clone(),
                    role: role.name(),
                });
            }
            (None, _) if matches!(role, Role::Dense | Role::Output) => {
                return Err(ParameterError::Missing { role: role.name() });
            }
            _ => {}
        }
    }
    Ok(Signature { parameters })
}

/// A parameter before it is known what it is.
struct Declared {
    /// Empty when it has none.
    name: String,
    kind: Kind,
}

fn declared(text: &str) -> Result<Declared, ParameterError> {
    let declarator = text.split('=').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = declarator
        .split(|c| !is_name(c))
        .filter(|word| !word.is_empty() && !is_qualifier(word))
        .collect();
    let pointers = declarator.matches(['*', '[']).count();
    let is_other = |c: char| !(is_name(c) || c.is_whitespace() || "*[]".contains(c));
    let type_words = words.iter().take_while(|word| is_type(word)).count();
    let (types, names) = words.split_at(type_words);
    let has_other = declarator.contains(is_other) || names.len() > 1;
    let kind = match (types, pointers) {
        _ if has_other => None,
        (["float"], 1) => Some(Kind::Elements(Dtype::F32)),
        (["double"], 1) => Some(Kind::Elements(Dtype::F64)),
        (types, 1) if is_int(types) => Some(Kind::Indices),
        (types, 0) if is_int(types) => Some(Kind::Count),
        _ => None,
    };
    match kind {
        Some(kind) => {
            Ok(Declared { name: names.first().copied().unwrap_or_default().to_owned(), kind })
        }
        None => {
            let declaration = declarator.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(ParameterError::Type { declaration: declaration.chars().take(80).collect() })
        }
    }
}

fn is_qualifier(word: &str) -> bool {
    ["const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__"]
        .contains(&word)
}

fn is_type(word: &str) -> bool {
    let types = [
        "int", "unsigned", "signed", "float", "double", "int32_t", "uint32_t", "uint", "long",
        "short", "char", "bool",
    ];
    types.contains(&word)
}

/// Whether it has 32 bits.
fn is_int(types: &[&str]) -> bool {
    let ints: [&[&str]; 9] = [
        &["int"],
        &["unsigned"],
        &["unsigned", "int"],
        &["int", "unsigned"],
        &["signed"],
        &["signed", "int"],
        &["int32_t"],
        &["uint32_t"],
        &["uint"],
    ];
    ints.contains(&types)
}

fn role_by_name(declared: &Declared) -> Option<Role> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let name = plain(&declared.name);
    // Such as d_values, of device memory, or h_values by mistake.
    let stem = declared.name.strip_prefix("d_").map(plain);
    Role::ALL.into_iter().find(|role| {
        let has = |name: &str| role.names().any(|known| known == name);
        role.accepts(declared.kind) && (has(&name) || stem.as_deref().is_some_and(has))
    })
}

fn unknown(name: &str, index: usize, kind: Kind) -> ParameterError {
    let name = if name.is_empty() { format!("number {}", index + 1) } else { format!("`{name}`") };
    let roles = Role::ALL.into_iter().filter(|role| role.accepts(kind)).map(Role::name);
    ParameterError::Unknown { name, expected: roles.collect::<Vec<_>>().join(", ") }
}

/// The parameters of a kernel are not those of a product with a CSR matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No array or number of this type can be given.
    #[error(
        "the parameter `{declaration}` has a type that is not given: expected int*, float*, double* or int"
    )]
    Type {
        /// How it is declared.
        declaration: String,
    },
    /// It is not known what a parameter is.
    #[error("it is not known what the parameter {name} is: call it one of {expected}")]
    Unknown {
        /// Its name in backquotes, or its number.
        name: String,
        /// Names for parameters of its type.
        expected: String,
    },
    /// Two parameters are the same.
    #[error("the parameters `{first}` and `{second}` both look like {role}")]
    Twice {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// What they look like.
        role: &'static str,
    },
    /// The dense operand or the output is missing.
    #[error("the kernel has no parameter called {role}")]
    Missing {
        /// The name that it should have.
        role: &'static str,
    },
}
