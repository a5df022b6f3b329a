//! What a kernel over plain CSR is given, by the words that launches and parameters have for it.

use super::expression::Expression;
use super::parameter::{Element, Kind, Parameter, ParameterError};
use super::rule_error::shortened;

/// What a parameter is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// rows + 1 offsets of the rows' entries.
    RowOffsets,
    /// The column of each entry.
    Columns,
    /// The value of each entry.
    Values,
    /// The dense operand, row-major.
    Input,
    /// The result, row-major.
    Output,
    /// Factor of the product.
    Alpha,
    /// Factor of the old output.
    Beta,
    /// A number that depends on sizes only.
    Number(Expression),
}

/// All but numbers, each under its standard names.
static NAMES: [(Role, &[&str]); 7] = [
    (Role::RowOffsets, &["row_offsets", "row_ptr"]),
    (Role::Columns, &["columns", "col_idx"]),
    (Role::Values, &["values"]),
    (Role::Input, &["x", "B", "dense_matrix"]),
    (Role::Output, &["y", "C", "output"]),
    (Role::Alpha, &["alpha"]),
    (Role::Beta, &["beta"]),
];

/// Sizes of the problem, which are numbers.
const SIZES: [&str; 4] = ["num_rows", "num_cols", "nnz", "dense_cols"];

impl Role {
    /// What has a standard name; case counts.
    fn of_name(name: &str) -> Option<Self> {
        if SIZES.contains(&name) {
            return Expression::parse(name).ok().map(Self::Number);
        }
        let named = NAMES.iter().find(|(_, names)| names.contains(&name));
        named.map(|(role, _)| role.clone())
    }

    /// What a launch names as an argument.
    fn of_argument(text: &str) -> Result<Self, ParameterError> {
        let role = Self::of_name(text);
        let number = || Expression::parse(text).map(Self::Number);
        role.map_or_else(number, Ok).map_err(|_| ParameterError::Argument {
            argument: shortened(text),
            known: known(|_| true),
        })
    }

    /// Whether a parameter of that type can be given it.
    fn suits(&self, kind: Kind) -> bool {
        match self {
            Self::RowOffsets | Self::Columns => {
                matches!(kind, Kind::Array(Element::Integer { bytes: 4 | 8 }))
            }
            Self::Values | Self::Input | Self::Output => {
                // As CUDA's headers are not there, 16 bits may be a number that has no type.
                matches!(kind, Kind::Array(Element::Float(_) | Element::Integer { bytes: 2 }))
            }
            Self::Alpha | Self::Beta => matches!(kind, Kind::Number(Element::Float(_))),
            Self::Number(_) => {
                matches!(kind, Kind::Number(Element::Integer { bytes: 4 | 8 }))
            }
        }
    }

    /// Its first standard name, or the number.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Number(expression) => expression.to_string(),
            role => {
                let named = NAMES.iter().find(|(named, _)| named == role);
                named.and_then(|(_, names)| names.first()).map_or("", |name| *name).to_owned()
            }
        }
    }
}

/// Standard names for what parameters of some types are given.
fn known(suits: impl Fn(&Role) -> bool) -> String {
    let roles = NAMES.iter().filter(|(role, _)| suits(role));
    let names = roles.filter_map(|(_, names)| names.first().copied());
    let number =
        Role::of_name("nnz").filter(|role| suits(role)).map(|_| SIZES).into_iter().flatten();
    names.chain(number).collect::<Vec<_>>().join(", ")
}

/// What each parameter is given: the launch's `arguments` in order, or what its own name says.
/// `advice` makes the launch with such arguments, for errors.
pub(super) fn roles(
    parameters: &[Parameter],
    arguments: Option<&[String]>,
    advice: impl Fn(&[&str]) -> String,
) -> Result<Vec<Role>, ParameterError> {
    let roles = match arguments {
        Some(arguments) => {
            if arguments.len() != parameters.len() {
                let (arguments, parameters) = (arguments.len(), parameters.len());
                return Err(ParameterError::Count { arguments, parameters });
            }
            let roles = arguments.iter().map(|argument| Role::of_argument(argument));
            roles.collect::<Result<Vec<_>, _>>()?
        }
        None => {
            let named: Vec<_> = parameters.iter().map(|p| Role::of_name(&p.name)).collect();
            let unknown = parameters.iter().zip(&named).enumerate().find(|(_, (_, r))| r.is_none());
            if let Some((index, (parameter, _))) = unknown {
                let words = parameters.iter().zip(&named);
                let words = words.map(|(p, role)| role.as_ref().map_or("?", |_| p.name.as_str()));
                return Err(ParameterError::Unknown {
                    parameter: parameter.quoted(index),
                    expected: known(|role| role.suits(parameter.kind)),
                    line: advice(&words.collect::<Vec<_>>()),
                });
            }
            named.into_iter().flatten().collect()
        }
    };
    let given = || parameters.iter().zip(&roles).enumerate();
    if let Some((index, (parameter, role))) = given().find(|(_, (p, role))| !role.suits(p.kind)) {
        let (parameter, kind) = (parameter.quoted(index), parameter.kind);
        return Err(ParameterError::Unsuitable { parameter, kind, role: role.name() });
    }
    for (role, _) in &NAMES {
        let mut same = given().filter(|(_, (_, other))| *other == role);
        match (same.next(), same.next()) {
            (Some((first, (one, _))), Some((second, (other, _)))) => {
                return Err(ParameterError::Twice {
                    first: one.quoted(first),
                    second: other.quoted(second),
                    role: role.name(),
                });
            }
            (None, _) if matches!(role, Role::Input | Role::Output) => {
                return Err(ParameterError::Missing { role: role.name() });
            }
            _ => {}
        }
    }
    Ok(roles)
}
