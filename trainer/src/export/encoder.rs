//! The encoder as an ONNX graph, which also gives the keys and values that the decoder attends to.

use sparserl_core::structure::{DensityGrids, Features, GRID_SIDES};
use sparserl_onnx_models::inputs::SCALARS;

use super::ExportError;
use super::graph::{Graph, Size, Value};
use crate::network::{MEMORY, NetworkConfig, PATCHES};

/// Writes the graph that reads a case; see [`sparserl_onnx_models::Model`].
pub(super) fn encoder(g: &mut Graph<'_>, config: &NetworkConfig) -> Result<(), ExportError> {
    let width = config.width;
    let sizes = [config.heads, width / config.heads];
    let fixed = Size::Fixed;
    let scalars = g.floats("scalars", &[fixed(1), fixed(SCALARS)]);
    let grids = g.floats("grids", &[fixed(1), fixed(DensityGrids::CELLS)]);
    let token_width = config.embedding().token_width();
    let shape = [fixed(1), Size::Any("positions"), fixed(token_width)];
    let positions = g.floats("positions", &shape);
    let shape = [fixed(1), fixed(1), fixed(1), Size::Any("positions")];
    let position_bias = g.floats("position_bias", &shape);
    let present = g.floats("present", &[fixed(1), fixed(3)]);

    let tokens = |g: &mut Graph<'_>, from: usize, to: usize, name: &str| {
        let scalars = g.slice(&scalars, 1, from, to);
        let flat = g.mlp(&scalars, name)?;
        Ok::<Value, ExportError>(g.reshape(&flat, &[1, -1, width as i64]))
    };
    let condition = tokens(g, Features::COUNT, SCALARS, "encoder.condition")?;
    let features = tokens(g, 0, Features::COUNT, "encoder.features")?;
    let (mut first, mut of_grids) = (0, Vec::new());
    for (number, &side) in GRID_SIDES.iter().enumerate() {
        let cells = g.slice(&grids, 1, first, first + side * side);
        first += side * side;
        of_grids.push(grid(g, &cells, number, side, sizes)?);
    }
    let of_grids: Vec<&Value> = of_grids.iter().collect();
    let grids = g.concat(&of_grids, 1);
    let positions = g.mlp(&positions, "encoder.positions")?;
    let positions = pool(g, &positions, Some(&position_bias), "encoder.pool", sizes)?;

    let absent = g.parameter("encoder.absent")?;
    let one = g.number(1.0);
    let mut all = vec![condition];
    for (modality, tokens) in [features, grids, positions].iter().enumerate() {
        let present = g.slice(&present, 1, modality, modality + 1);
        let present = g.unsqueeze(&present, 2);
        let missing = g.op("Sub", &[&one, &present], &[]);
        let absent = g.slice(&absent, 0, modality, modality + 1);
        let absent = g.unsqueeze(&absent, 0);
        let (shown, hidden) = (g.mul(tokens, &present), g.mul(&absent, &missing));
        all.push(g.add(&shown, &hidden));
    }
    let all: Vec<&Value> = all.iter().collect();
    let places = g.parameter("encoder.places")?;
    let all = g.concat(&all, 1);
    let mut x = g.add(&all, &places);
    for layer in 0..config.encoder_layers {
        let name = format!("encoder.layers.{layer}");
        let normed = g.norm(&x, &format!("{name}.norm"))?;
        let found = attend_to_itself(g, &normed, &normed, None, &name, sizes)?;
        x = g.add(&x, &found);
        x = g.feed_forward(&x, &format!("{name}.feed_forward"))?;
    }
    let x = g.norm(&x, "encoder.norm")?;
    let summary = g.mean(&x, 1, false);
    g.output("summary", &summary, &[fixed(1), fixed(width)]);
    for of in ["key", "value"] {
        let mut layers = Vec::new();
        for layer in 0..config.decoder_layers {
            layers.push(g.by_heads(&x, &format!("decoder.layers.{layer}.memory.{of}"), sizes)?);
        }
        let layers: Vec<&Value> = layers.iter().collect();
        let together = g.concat(&layers, 0);
        let shape = [config.decoder_layers, sizes[0], MEMORY, sizes[1]].map(Size::Fixed);
        g.output(&format!("memory_{of}s"), &together, &shape);
    }
    Ok(())
}

/// Attention of `x` to `of`, by the layer `name`.
fn attend_to_itself(
    g: &mut Graph<'_>,
    x: &Value,
    of: &Value,
    bias: Option<&Value>,
    name: &str,
    sizes: [usize; 2],
) -> Result<Value, ExportError> {
    let name = format!("{name}.attention");
    let keys = g.by_heads(of, &format!("{name}.key"), sizes)?;
    let values = g.by_heads(of, &format!("{name}.value"), sizes)?;
    g.attend(x, (&keys, &values), bias, &name, sizes)
}

/// `[1, queries, width]` of `x`, `[1, positions, width]`.
fn pool(
    g: &mut Graph<'_>,
    x: &Value,
    bias: Option<&Value>,
    name: &str,
    sizes: [usize; 2],
) -> Result<Value, ExportError> {
    let queries = g.parameter(&format!("{name}.queries"))?;
    let queries = g.unsqueeze(&queries, 0);
    let normed = g.norm(x, &format!("{name}.norm"))?;
    attend_to_itself(g, &queries, &normed, bias, name, sizes)
}

/// The tokens of the cells of a grid, `[1, side²]`.
fn grid(
    g: &mut Graph<'_>,
    cells: &Value,
    number: usize,
    side: usize,
    sizes: [usize; 2],
) -> Result<Value, ExportError> {
    let name = format!("encoder.grids.{number}");
    let (patches, patch) = (PATCHES as i64, (side / PATCHES) as i64);
    let cells = g.reshape(cells, &[1, patches, patch, patches, patch]);
    let cells = g.transpose(&cells, &[0, 1, 3, 2, 4]);
    let cells = g.reshape(&cells, &[1, patches * patches, patch * patch]);
    let places = g.parameter(&format!("{name}.places"))?;
    let placed = g.linear(&cells, &format!("{name}.patch"))?;
    let placed = g.add(&placed, &places);
    let mixed = g.mlp(&placed, &format!("{name}.mix"))?;
    let mixed = g.add(&placed, &mixed);
    let mean = g.mean(&mixed, 1, true);
    let asked = pool(g, &mixed, None, "encoder.grid_pool", sizes)?;
    Ok(g.concat(&[&asked, &mean], 1))
}
