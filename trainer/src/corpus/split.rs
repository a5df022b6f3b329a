//! Which matrices are trained on, and which are not.

use serde::{Deserialize, Serialize};

use super::recipe::Recipe;

/// Families of generated matrices that are trained on by no split but [`Split::Everything`]: they
/// tell when to stop. Each has relatives among the others, and looks like something real.
pub const VALIDATION: [&str; 4] =
    ["generated/mesh", "generated/netlist", "generated/radix_layer", "generated/saddle_point"];

/// Divides the corpus by family, never by matrix: what was made from one matrix is alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// No real matrix, and nothing made from one, is trained on; they are the test.
    NoReal,
    /// These families, and what was made from them, are the test.
    LeaveOut(Vec<String>),
    /// All are trained on, and nothing is left to test.
    Everything,
}

/// What a matrix is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Trained on.
    Train,
    /// Tells when to stop, and chooses between settings.
    Validation,
    /// Looked at once, at the end.
    Test,
    /// Made of families with different roles.
    Unused,
}

impl Split {
    /// The role of a recipe's matrix: that of its families if they agree.
    #[must_use]
    pub fn role(&self, recipe: &Recipe) -> Role {
        let mut roles = recipe.origins().into_iter().map(|(family, real)| self.of(family, real));
        let first = roles.next().unwrap_or(Role::Unused);
        if roles.all(|role| role == first) { first } else { Role::Unused }
    }

    fn of(&self, family: &str, real: bool) -> Role {
        match self {
            Self::Everything => Role::Train,
            Self::NoReal if real => Role::Test,
            Self::LeaveOut(left_out) if left_out.iter().any(|name| name == family) => Role::Test,
            _ if !real && VALIDATION.contains(&family) => Role::Validation,
            _ => Role::Train,
        }
    }
}
