//! Changes of the policy that is compiled in: its files are refused in one line, or choose
//! programs, or fail in one line.

use std::sync::{Arc, LazyLock};

use prost::Message as _;
use sparserl_core::decode::{PolicyError, PolicyInput, beam_search};
use sparserl_core::language::{Mask, Program};
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::Objective;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_onnx_models::onnx::{GraphProto, ModelProto, NodeProto, TensorProto};
use sparserl_onnx_models::speeds::{SpeedModel as _, expected_fastest};
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};

use crate::bytes::Bytes;

/// Changes, at most: more are never read.
const MOST_CHANGES: usize = 8;

static SHIPPED: LazyLock<Model> = LazyLock::new(|| Model::shipped().unwrap());
static MATRIX: LazyLock<Csr<f64>> = LazyLock::new(|| generate::uniform(20, 20, 3, 1));

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (mut encoder, mut decoder) = (SHIPPED.encoder().to_vec(), SHIPPED.decoder().to_vec());
    for file in [&mut encoder, &mut decoder] {
        let changes = bytes.choose(MOST_CHANGES + 1);
        if changes > 0 {
            *file = changed(file, changes, &mut bytes);
        }
    }
    let model = match Model::new("a policy", encoder, decoder) {
        Ok(model) => model,
        Err(error) => return one_line(&error),
    };
    let policy = match OnnxPolicy::open(&model, &Engine::Embedded) {
        Ok(policy) => policy,
        Err(error) => return one_line(&error),
    };
    if let Err(error) = choose(&policy) {
        one_line(&error);
    }
}

/// Two programs, and what is predicted of them.
fn choose(policy: &OnnxPolicy) -> Result<(), PolicyError> {
    let task = Task::new(Operation::SpMV, Dtype::F64);
    let stats = Arc::new(MatrixStats::new(MATRIX.view()));
    let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
    let mut reading = policy.read_for_speeds(&input)?;
    let found = beam_search(&mut *reading, Mask::legal(&stats, task), 2)?;
    let programs: Vec<Program> = found.into_iter().map(|found| found.program).collect();
    let speeds = reading.speeds(&programs)?;
    assert_eq!(speeds.len(), programs.len());
    let places = expected_fastest(&speeds, &[], Objective::Both, 1);
    assert!(places.iter().all(|&place| place < programs.len()));
    Ok(())
}

fn one_line(error: &dyn std::error::Error) {
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// A file with so many changes.
fn changed(file: &[u8], changes: usize, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut model = ModelProto::decode(file).unwrap();
    for _ in 0..changes {
        if bytes.choose(16) == 0 {
            return cut(file, bytes);
        }
        if let Some(graph) = &mut model.graph {
            change(graph, bytes);
        }
    }
    model.encode_to_vec()
}

/// A file that ends early, or one byte of which is another.
fn cut(file: &[u8], bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut file = file.to_vec();
    let place = number(bytes) % file.len();
    match bytes.choose(2) {
        0 => file.truncate(place),
        _ => file[place] = bytes.byte(),
    }
    file
}

fn change(graph: &mut GraphProto, bytes: &mut Bytes<'_>) {
    match bytes.choose(8) {
        kind @ 0..5 => change_node(&mut graph.node, kind, bytes),
        kind => change_tensor(&mut graph.initializer, kind, bytes),
    }
}

/// Takes a node away, or gives it another operator, input or attribute.
fn change_node(nodes: &mut Vec<NodeProto>, kind: usize, bytes: &mut Bytes<'_>) {
    let (place, other) = (number(bytes), number(bytes));
    let (Some(place), Some(other)) =
        (place.checked_rem(nodes.len()), other.checked_rem(nodes.len()))
    else {
        return;
    };
    let (name, operator) = (nodes[other].output.first().cloned(), nodes[other].op_type.clone());
    let node = &mut nodes[place];
    match kind {
        0 => drop(nodes.remove(place)),
        1 => node.op_type = operator,
        2 => {
            let which = bytes.choose(3);
            if let (Some(input), Some(name)) = (node.input.get_mut(which), name) {
                *input = name;
            }
        }
        3 => node.input.truncate(bytes.choose(3)),
        _ => {
            let value = small(bytes);
            if let Some(attribute) = node.attribute.first_mut() {
                (attribute.i, attribute.f) = (value, value as f32);
                if let Some(of) = attribute.ints.first_mut() {
                    *of = value;
                }
            }
        }
    }
}

/// Gives a tensor in the file another shape, or other numbers.
fn change_tensor(tensors: &mut [TensorProto], kind: usize, bytes: &mut Bytes<'_>) {
    let Some(place) = number(bytes).checked_rem(tensors.len()) else { return };
    let tensor = &mut tensors[place];
    match kind {
        5 => {
            let value = small(bytes);
            let which = bytes.choose(3);
            if let Some(size) = tensor.dims.get_mut(which) {
                *size = value;
            }
        }
        6 => tensor.dims.reverse(),
        _ => {
            let length = tensor.raw_data.len();
            let from = number(bytes) % length.max(1);
            let fill = bytes.byte();
            tensor.raw_data.iter_mut().skip(from).take(8).for_each(|byte| *byte = fill);
        }
    }
}

fn number(bytes: &mut Bytes<'_>) -> usize {
    usize::from(bytes.byte()) | usize::from(bytes.byte()) << 8 | usize::from(bytes.byte()) << 16
}

/// A small number, or one that is far too large.
fn small(bytes: &mut Bytes<'_>) -> i64 {
    match bytes.byte() {
        255 => i64::MAX,
        254 => i64::MIN,
        253 => 1 << 40,
        byte => i64::from(byte) - 8,
    }
}
