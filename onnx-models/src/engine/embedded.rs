use std::collections::HashMap;
use std::sync::Arc;

use ndarray::ArrayD;
use tract_onnx::prelude::{
    Framework as _, InferenceModelExt as _, IntoRunnable, TValue, Tensor, TypedRunnableModel,
};

use super::{EngineError, Graph, Input, one_line};

pub(super) const NAME: &str = "tract";

/// A graph that tract runs on the calling thread.
pub(super) struct EmbeddedGraph {
    plan: Arc<TypedRunnableModel>,
    inputs: Vec<String>,
}

impl EmbeddedGraph {
    pub(super) fn new(mut file: &[u8], outputs: &[&str]) -> Result<Self, EngineError> {
        let refused = |error| EngineError::Refused { engine: NAME, reason: one_line(&error) };
        let mut model = tract_onnx::onnx().model_for_read(&mut file).map_err(refused)?;
        let input_name =
            |outlet: &tract_onnx::prelude::OutletId| model.node(outlet.node).name.clone();
        let inputs = model.inputs.iter().map(input_name).collect();
        model.select_outputs_by_name(outputs).map_err(refused)?;
        let plan = model.into_optimized().and_then(IntoRunnable::into_runnable);
        Ok(Self { plan: plan.map_err(refused)?, inputs })
    }
}

impl Graph for EmbeddedGraph {
    fn run(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, EngineError> {
        let failed = |reason: String| EngineError::Failed { engine: NAME, reason };
        let mut by_name: HashMap<&str, TValue> = inputs
            .into_iter()
            .map(|input| match input {
                Input::Floats(name, array) => (name, Tensor::from(array).into()),
                Input::Integers(name, array) => (name, Tensor::from(array).into()),
            })
            .collect();
        let ordered = self.inputs.iter().map(|name| {
            by_name.remove(name.as_str()).ok_or_else(|| failed(format!("no input `{name}`")))
        });
        let ordered = ordered.collect::<Result<_, _>>()?;
        let found = self.plan.run(ordered).map_err(|error| failed(one_line(&error)))?;
        let output = |value: &TValue| {
            let array = value.to_plain_array_view::<f32>();
            Ok(array.map_err(|error| failed(one_line(&error)))?.to_owned())
        };
        found.iter().map(output).collect()
    }
}
