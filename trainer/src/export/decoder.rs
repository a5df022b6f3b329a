//! The decoder and its heads as an ONNX graph.

use sparserl_core::language::Token;
use sparserl_onnx_models::speeds::{ENSEMBLE, REGIMES};
use sparserl_onnx_models::terms::{ProgramTerms, TERMS};

use super::ExportError;
use super::graph::{Graph, Size, Value};
use crate::network::{MEMORY, NetworkConfig};

/// Writes the graph that continues programs; see [`sparserl_onnx_models::Model`].
pub(super) fn decoder(g: &mut Graph<'_>, config: &NetworkConfig) -> Result<(), ExportError> {
    let width = config.width;
    let sizes = [config.heads, width / config.heads];
    let (fixed, rows, next) = (Size::Fixed, || Size::Any("rows"), || Size::Any("tokens"));
    let tokens = g.integers("tokens", &[rows(), next()]);
    let places = g.integers("places", &[next()]);
    let bias = g.floats("bias", &[next(), Size::Any("before + tokens")]);
    let cache = |positions: &'static str| {
        [fixed(config.decoder_layers), rows(), Size::Any(positions), fixed(width)]
    };
    let keys = g.floats("keys", &cache("before"));
    let values = g.floats("values", &cache("before"));
    let summary = g.floats("summary", &[fixed(1), fixed(width)]);
    let memory = [config.decoder_layers, sizes[0], MEMORY, sizes[1]];
    let memory_keys = g.floats("memory_keys", &memory.map(fixed));
    let memory_values = g.floats("memory_values", &memory.map(fixed));
    let ends = g.floats("ends", &[rows(), fixed(1), next()]);
    let terms = g.floats("terms", &[rows(), fixed(TERMS)]);

    let table = g.parameter("decoder.tokens")?;
    let embedded = g.gather(&table, &tokens, 0);
    let table = g.parameter("decoder.places")?;
    let place = g.gather(&table, &places, 0);
    let mut x = g.add(&embedded, &place);
    let (mut next_keys, mut next_values) = (Vec::new(), Vec::new());
    // All rows ask the memory together.
    let shape = g.op("Shape", &[&x], &[]);
    for layer in 0..config.decoder_layers {
        let name = format!("decoder.layers.{layer}");
        let normed = g.norm(&x, &format!("{name}.norm"))?;
        let attention = format!("{name}.attention");
        let next_k = g.linear(&normed, &format!("{attention}.key"))?;
        let next_v = g.linear(&normed, &format!("{attention}.value"))?;
        let known = |g: &mut Graph<'_>, before: &Value, next: &Value| {
            let before = g.at(before, 0, layer);
            g.concat(&[&before, next], 1)
        };
        let (k, v) = (known(g, &keys, &next_k), known(g, &values, &next_v));
        let found = g.attend_rows(&normed, (&k, &v), &bias, &attention, sizes)?;
        x = g.add(&x, &found);
        next_keys.push(g.unsqueeze(&next_k, 0));
        next_values.push(g.unsqueeze(&next_v, 0));

        let asked = g.norm(&x, &format!("{name}.memory_norm"))?;
        let asked = g.reshape(&asked, &[1, -1, width as i64]);
        let [k, v] = [&memory_keys, &memory_values].map(|m| g.slice(m, 0, layer, layer + 1));
        let found = g.attend(&asked, (&k, &v), None, &format!("{name}.memory"), sizes)?;
        let found = g.op("Reshape", &[&found, &shape], &[]);
        x = g.add(&x, &found);
        x = g.feed_forward(&x, &format!("{name}.feed_forward"))?;
    }
    let hidden = g.norm(&x, "decoder.norm")?;

    let logits = g.linear(&hidden, "heads.tokens")?;
    g.output("logits", &logits, &[rows(), next(), fixed(Token::VOCABULARY)]);
    let critic = g.mlp(&hidden, "heads.critic")?;
    let axis = g.places(&[2]);
    let critic = g.op("Squeeze", &[&critic, &axis], &[]);
    g.output("critic", &critic, &[rows(), next()]);
    let all = |g: &mut Graph<'_>, layers: &[Value]| {
        let layers: Vec<&Value> = layers.iter().collect();
        g.concat(&layers, 0)
    };
    let (next_keys, next_values) = (all(g, &next_keys), all(g, &next_values));
    g.output("next_keys", &next_keys, &cache("tokens"));
    g.output("next_values", &next_values, &cache("tokens"));
    let speeds = speeds(g, &hidden, &ends, &summary, &terms)?;
    g.output("speeds", &speeds, &[rows(), fixed(ENSEMBLE), fixed(REGIMES.len())]);
    Ok(())
}

/// What the ensemble says of the programs that end where `ends` is 1.
fn speeds(
    g: &mut Graph<'_>,
    hidden: &Value,
    ends: &Value,
    summary: &Value,
    terms: &Value,
) -> Result<Value, ExportError> {
    let axis = g.places(&[1]);
    let last = g.matmul(ends, hidden);
    let last = g.op("Squeeze", &[&last, &axis], &[]);
    // As many rows of the summary as there are programs.
    let shape = g.op("Shape", &[&last], &[]);
    let summary = g.op("Expand", &[summary, &shape], &[]);
    let known = g.concat(&[&last, &summary, terms], 1);
    let predicted = ProgramTerms::PREDICTED;
    let predicted = g.slice(terms, 1, predicted, predicted + 1);
    let mut members = Vec::new();
    for member in 0..ENSEMBLE {
        let name = format!("heads.speeds.{member}");
        let hidden = g.gelu_linear(&known, &format!("{name}.first"))?;
        let hidden = g.gelu_linear(&hidden, &format!("{name}.second"))?;
        let correction = g.linear(&hidden, &format!("{name}.correction"))?;
        let speed = g.add(&correction, &predicted);
        members.push(g.unsqueeze(&speed, 1));
    }
    let members: Vec<&Value> = members.iter().collect();
    Ok(g.concat(&members, 1))
}
