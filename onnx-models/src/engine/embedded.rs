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
    outputs: HashMap<String, usize>,
}

impl EmbeddedGraph {
    pub(super) fn new(mut file: &[u8]) -> Result<Self, EngineError> {
        let refused = |error| EngineError::Refused { engine: NAME, reason: one_line(&error) };
        let model = tract_onnx::onnx().model_for_read(&mut file).map_err(refused)?;
        let input_name =
            |outlet: &tract_onnx::prelude::OutletId| model.node(outlet.node).name.clone();
        let inputs = model.inputs.iter().map(input_name).collect();
        let label = |(place, outlet): (usize, &tract_onnx::prelude::OutletId)| {
            let label = model.outlet_label(*outlet).map(str::to_owned);
            (label.unwrap_or_else(|| model.node(outlet.node).name.clone()), place)
        };
        let outputs = model.outputs.iter().enumerate().map(label).collect();
        let plan = model.into_optimized().and_then(IntoRunnable::into_runnable);
        Ok(Self { plan: plan.map_err(refused)?, inputs, outputs })
    }
}

impl Graph for EmbeddedGraph {
    fn run(
        &self,
        inputs: &[Input<'_>],
        outputs: &[&'static str],
    ) -> Result<Vec<ArrayD<f32>>, EngineError> {
        let failed = |reason: String| EngineError::Failed { engine: NAME, reason };
        let mut by_name: HashMap<&str, TValue> = inputs
            .iter()
            .map(|input| match input {
                Input::Floats(name, array) => (*name, Tensor::from(array.to_owned()).into()),
                Input::Integers(name, array) => (*name, Tensor::from(array.to_owned()).into()),
            })
            .collect();
        let ordered = self.inputs.iter().map(|name| {
            by_name.remove(name.as_str()).ok_or_else(|| failed(format!("no input `{name}`")))
        });
        let ordered = ordered.collect::<Result<_, _>>()?;
        let found = self.plan.run(ordered).map_err(|error| failed(one_line(&error)))?;
        let output = |name: &&'static str| {
            let value = self.outputs.get(*name).and_then(|&place| found.get(place));
            let value = value.ok_or_else(|| failed(format!("no output `{name}`")))?;
            let array = value.to_plain_array_view::<f32>();
            Ok(array.map_err(|error| failed(one_line(&error)))?.to_owned())
        };
        outputs.iter().map(output).collect()
    }
}
