//! How a graph is made ready: what follows from constants is computed, operators are put together.

use std::collections::HashMap;

use super::fusion::Fusion;
use super::tensor::Value;
use super::{EmbeddedGraph, FileError, Node, Source, Step};
use crate::onnx::GraphProto;

/// A graph that is being made ready.
#[derive(Default)]
pub(super) struct Plan {
    known: HashMap<String, Source>,
    constants: Vec<Value>,
    /// How many values there will be.
    values: usize,
    steps: Vec<Step>,
}

impl Plan {
    fn know(&mut self, name: &str, source: Source) -> Result<(), FileError> {
        match self.known.insert(name.to_owned(), source) {
            None => Ok(()),
            Some(_) => Err(FileError::Twice(name.to_owned())),
        }
    }

    pub(super) fn constant(&mut self, name: &str, value: Value) -> Result<(), FileError> {
        self.know(name, Source::Constant(self.constants.len()))?;
        self.constants.push(value);
        Ok(())
    }

    pub(super) fn value(&mut self, name: &str) -> Result<(), FileError> {
        self.know(name, Source::Value { place: self.values, last: false })?;
        self.values += 1;
        Ok(())
    }

    fn source(&self, name: &str) -> Result<Source, FileError> {
        self.known.get(name).copied().ok_or_else(|| FileError::Missing(name.to_owned()))
    }

    /// Adds an operator, or what it makes of constants.
    pub(super) fn add(&mut self, node: Node<'_>) -> Result<(), FileError> {
        let Node { operator, inputs, output } = node;
        let inputs =
            inputs.into_iter().map(|name| self.source(name)).collect::<Result<Vec<_>, _>>()?;
        let constant = |source: &Source| match *source {
            Source::Constant(place) => self.constants.get(place).cloned(),
            Source::Value { .. } => None,
        };
        if let Some(constants) = inputs.iter().map(constant).collect() {
            let made = operator.run(constants).map_err(|source| FileError::Operator {
                name: output.to_owned(),
                operator: format!("{operator:?}"),
                source,
            })?;
            return self.constant(output, made);
        }
        self.steps.push(Step { operator, inputs, name: output.to_owned() });
        self.value(output)
    }

    /// Leaves the steps that the outputs need after [`Fusion`], and gives values new places.
    fn renumber(&mut self, inputs: usize, outputs: &mut [Source]) {
        let mut needed = vec![false; self.values];
        needed[..inputs].fill(true);
        let need = |needed: &mut [bool], sources: &[Source]| {
            for source in sources {
                if let Source::Value { place, .. } = *source {
                    needed[place] = true;
                }
            }
        };
        need(&mut needed, outputs);
        for (at, step) in self.steps.iter().enumerate().rev() {
            if needed[inputs + at] {
                need(&mut needed, &step.inputs);
            }
        }
        let mut kept = needed[inputs..].iter();
        self.steps.retain(|_| kept.next().is_some_and(|&kept| kept));
        self.values = inputs + self.steps.len();
        let places: Vec<usize> = needed
            .iter()
            .scan(0, |next, &kept| Some(std::mem::replace(next, *next + usize::from(kept))))
            .collect();
        let users = self.steps.iter_mut().flat_map(|step| &mut step.inputs).chain(outputs);
        for source in users {
            if let Source::Value { place, .. } = source {
                *place = places[*place];
            }
        }
    }

    /// The graph that gives these outputs.
    pub(super) fn graph(
        mut self,
        graph: &GraphProto,
        outputs: &[&str],
    ) -> Result<EmbeddedGraph, FileError> {
        let mut outputs =
            outputs.iter().map(|name| self.source(name)).collect::<Result<Vec<_>, _>>()?;
        let inputs = graph.input.len();
        Fusion { constants: &self.constants, inputs, steps: &mut self.steps }.run();
        self.renumber(inputs, &mut outputs);
        // From the end: who needs a value last.
        let mut seen = vec![false; self.values];
        let users = self.steps.iter_mut().map(|step| &mut step.inputs).chain([&mut outputs]);
        for source in users.rev().flat_map(|sources| sources.iter_mut().rev()) {
            if let Source::Value { place, last } = source {
                *last = !std::mem::replace(&mut seen[*place], true);
            }
        }
        let inputs = graph.input.iter().enumerate();
        let inputs = inputs.map(|(place, input)| (input.name.clone(), place)).collect();
        let mut plan =
            EmbeddedGraph { constants: self.constants, inputs, steps: self.steps, outputs };
        plan.forget_unused();
        Ok(plan)
    }
}

impl EmbeddedGraph {
    /// Lets go of constants that others were made of.
    fn forget_unused(&mut self) {
        let mut places = HashMap::new();
        let mut kept = Vec::new();
        let users = self.steps.iter_mut().map(|step| &mut step.inputs).chain([&mut self.outputs]);
        for source in users.flatten() {
            if let Source::Constant(place) = source {
                let constants = &self.constants;
                *place = *places.entry(*place).or_insert_with(|| {
                    kept.push(constants[*place].clone());
                    kept.len() - 1
                });
            }
        }
        self.constants = kept;
    }
}
