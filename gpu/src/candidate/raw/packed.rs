//! Kernels over the packed arrays of a program: what `gen` writes, as it is or edited.

use sparserl_core::codegen::{ArgumentKind, EmitError, emit_for};
use sparserl_core::kernel::{Kernel, WriteError};
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::task::Task;

use super::RawError;
use super::parameter::{Element, Kind, Parameter, ParameterError};
use super::rule_error::{RuleError, shortened};
use super::source::Code;
use crate::candidate::executable::Prepared;
use crate::compile::nvrtc::Cubin;
use crate::run::device::Geometry;

/// What the parameters of a program's kernel are given, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PackedArguments {
    program: Program,
    /// As the program's own kernel calls them.
    names: Vec<String>,
}

impl PackedArguments {
    /// What the launch passes, or else what the parameters are called.
    pub(super) fn new(
        program: Program,
        parameters: &[Parameter],
        said: Option<&[String]>,
    ) -> Result<Self, ParameterError> {
        let names: Vec<String> = match said {
            Some(said) => said.to_vec(),
            None => parameters.iter().map(|parameter| parameter.name.clone()).collect(),
        };
        if names.len() != parameters.len() {
            let (arguments, parameters) = (names.len(), parameters.len());
            return Err(ParameterError::Count { arguments, parameters });
        }
        Ok(Self { program, names })
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The launch of `source`, whose kernel has these parameters, on a matrix. `geometry` is that
    /// for the blocks of the packed matrix.
    pub(super) fn prepare<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        task: Task,
        parameters: &[Parameter],
        source: &str,
        geometry: impl Fn(Option<u64>) -> Result<Geometry, RuleError>,
    ) -> Result<Prepared, RawError> {
        let own = self.program.task;
        if (own.operation, own.precision) != (task.operation, task.precision) {
            return Err(RawError::Task { program: own });
        }
        let own = Kernel::<Cubin>::for_matrix(matrix, &self.program)?;
        let arguments = &own.launch.arguments;
        let special = emit_for(&own.packed).map_err(WriteError::from)?;
        let sizes = special.constants.iter();
        let other = sizes.map(|size| size.check_source(source)).find_map(Result::err);
        if let Some(other) = other {
            return Err(WriteError::from(EmitError::from(other)).into());
        }
        let own_texts = [&own.source.text, &special.text];
        let is_edited = !own_texts.iter().any(|own| is_of_program(source, own));
        let mut places = Vec::new();
        for (index, (parameter, name)) in parameters.iter().zip(&self.names).enumerate() {
            let place = arguments.iter().position(|argument| argument.name == *name);
            let Some((place, argument)) = place.and_then(|at| Some((at, arguments.get(at)?)))
            else {
                let known: Vec<_> = arguments.iter().map(|a| a.name.as_str()).collect();
                let (name, known) = (shortened(name), known.join(", "));
                return Err(RawError::NotOfProgram { name, known });
            };
            let kind = match argument.kind {
                ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_) => Kind::Number,
                ArgumentKind::Input
                | ArgumentKind::Output
                | ArgumentKind::Matrix
                | ArgumentKind::Workspace => Kind::Array,
            };
            let wanted = kind(Element::from(argument.element));
            if wanted != parameter.kind {
                let (parameter, kind) = (parameter.quoted(index), parameter.kind);
                return Err(RawError::PackedType { parameter, kind, name: name.clone(), wanted });
            }
            // Its own kernel is known to leave nothing there that a later launch relies on.
            if argument.kind == ArgumentKind::Workspace && is_edited {
                return Err(RawError::Workspace { name: name.clone() });
            }
            if let Some(first) = places.iter().position(|other| *other == place) {
                let first = parameters.get(first).map(|p| p.quoted(first)).unwrap_or_default();
                let (second, role) = (parameter.quoted(index), name.clone());
                return Err(ParameterError::Twice { first, second, role }.into());
            }
            places.push(place);
        }
        for (kind, role) in [(ArgumentKind::Input, 0), (ArgumentKind::Output, 1)] {
            let place = arguments.iter().position(|argument| argument.kind == kind);
            if place.is_none_or(|place| !places.contains(&place)) {
                let role = arguments.get(role).map(|a| a.name.clone()).unwrap_or_default();
                return Err(ParameterError::Missing { role }.into());
            }
        }
        let geometry = geometry(Some(own.launch.geometry.grid.into()))?;
        Ok(Prepared::of_kernel(&own).selected(&places, geometry))
    }
}

/// Whether a source is what a program is made into, but for comments behind it.
fn is_of_program(source: &str, own: &str) -> bool {
    source.strip_prefix(own).is_some_and(|rest| Code::read(rest).is_blank())
}
