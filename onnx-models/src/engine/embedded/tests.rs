use ndarray::{Array2, ArrayD, IxDyn};
use proptest::prelude::*;

use super::arithmetic::{combine, erf, reduce, softmax};
use super::arrangement::{concat, gather, reshape, slice, transpose};
use super::product::{Packed, matmul};
use super::*;
use crate::Model;
use crate::onnx::{NodeProto, ValueInfoProto};

fn tensor(shape: &[usize], seed: usize) -> Tensor<f32> {
    let count = shape.iter().product();
    let number = |i: usize| ((i * 37 + seed * 11) % 101) as f32 / 25.0 - 2.0;
    Tensor::new(shape.to_vec(), (0..count).map(number).collect()).unwrap()
}

fn array(tensor: &Tensor<f32>) -> ArrayD<f32> {
    ArrayD::from_shape_vec(IxDyn(tensor.shape()), tensor.numbers().to_vec()).unwrap()
}

fn assert_close(found: &Tensor<f32>, expected: &ArrayD<f32>) {
    assert_eq!(found.shape(), expected.shape());
    for (one, other) in found.numbers().iter().zip(expected) {
        assert!((one - other).abs() <= 1e-5 * (1.0 + other.abs()), "{one} {other}");
    }
}

#[test]
fn the_error_function_is_that_of_the_c_library() {
    let steps = (-60_000..60_000).map(|step| step as f32 * 1e-4);
    for x in steps.chain([f32::NEG_INFINITY, f32::MAX]) {
        let (one, other) = (erf(x), libm::erff(x));
        assert!((one - other).abs() <= 4.0 * f32::EPSILON * other.abs(), "{x}: {one} {other}");
    }
}

#[test]
fn shares_add_up_and_follow_the_exponentials() {
    let scores = Tensor::new(vec![1, 4], vec![0.0, -1.0, -1e4, 30.0]).unwrap();
    let found = softmax(scores, -1).unwrap();
    let all = 1.0 + (-1.0_f64).exp() + 30.0_f64.exp();
    for (found, score) in found.numbers().iter().zip([0.0_f64, -1.0, -1e4, 30.0]) {
        let expected = score.exp() / all;
        assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected + 1e-30);
    }
    assert!(softmax(tensor(&[2, 3], 1), 0).is_err());
}

proptest! {
    #[test]
    fn smaller_tensors_are_repeated(
        shape in prop::collection::vec(1_usize..4, 0..5),
        ones in any::<[u8; 2]>(),
        shorter in 0_usize..5,
    ) {
        let with_ones = |bits: u8| -> Vec<usize> {
            let size = |(i, &size): (usize, &usize)| if bits >> i & 1 == 1 { 1 } else { size };
            shape.iter().enumerate().map(size).collect()
        };
        let [a, b] = ones.map(with_ones);
        let (a, b) = (tensor(&a, 1), tensor(&b[shorter.min(b.len())..], 2));
        let expected = &array(&a) - &array(&b);
        assert_close(&combine(a, &b, |x, y| x - y).unwrap(), &expected);
    }

    #[test]
    fn products_are_those_of_ndarray(
        rows in 0_usize..12, depth in 0_usize..11, columns in 0_usize..11, many in 1_usize..4,
        alone in any::<bool>(), transposed in any::<bool>(),
    ) {
        let a = tensor(&[many, rows, depth], 3);
        let b = tensor(&[if alone { 1 } else { many }, depth, columns], 4);
        let right = if transposed { transpose(&b, &[0, 2, 1]).unwrap() } else { b.clone() };
        let found = matmul(&a, &right, transposed).unwrap();
        assert_eq!(found.shape(), [many, rows, columns]);
        for i in 0..many {
            let of = |tensor: &Tensor<f32>, at: usize, shape: (usize, usize)| {
                let size = shape.0 * shape.1;
                let numbers = tensor.numbers()[at * size..(at + 1) * size].to_vec();
                Array2::from_shape_vec(shape, numbers).unwrap()
            };
            let b = of(&b, if alone { 0 } else { i }, (depth, columns));
            let expected = of(&a, i, (rows, depth)).dot(&b);
            let part = found.numbers()[i * rows * columns..][..rows * columns].to_vec();
            let part = Tensor::new(vec![rows, columns], part).unwrap();
            assert_close(&part, &expected.into_dyn());
        }
    }

    #[test]
    fn dimensions_are_exchanged_as_by_ndarray(
        shape in prop::collection::vec(0_usize..4, 4), order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let a = tensor(&shape, 5);
        let expected = array(&a).permuted_axes(IxDyn(&order));
        assert_close(&transpose(&a, &order.map(|axis| axis as i64)).unwrap(), &expected);
    }
}

#[test]
fn parts_of_tensors_are_those_that_were_asked_for() {
    let a = tensor(&[2, 3, 2], 6);
    let all = array(&a);
    let part = slice(&a, [1, i64::MAX, 1]).unwrap();
    assert_close(&part, &all.slice_axis(ndarray::Axis(1), (1..3).into()).to_owned());
    assert_eq!(slice(&a, [-1, 1, 1]).unwrap().shape(), [2, 0, 2]);
    let places = Tensor::new(vec![1, 2], vec![2, -3]).unwrap();
    let gathered = gather(&a, &places, 1).unwrap();
    assert_eq!(gathered.shape(), [2, 1, 2, 2]);
    assert_eq!(
        gathered.numbers()[..4],
        [a.numbers()[4], a.numbers()[5], a.numbers()[0], a.numbers()[1]]
    );
    assert!(gather(&a, &Tensor::new(vec![1], vec![3]).unwrap(), 1).is_err());
    let whole = concat(&[slice(&a, [0, 1, 1]).unwrap(), part], 1).unwrap();
    assert_close(&whole, &all);
    let sums = reduce(a.clone(), &[0, -1], false, false).unwrap();
    assert_close(&sums, &all.sum_axis(ndarray::Axis(2)).sum_axis(ndarray::Axis(0)));
    assert_eq!(reshape(a.clone(), &[0, -1]).unwrap().shape(), [2, 6]);
    for wanted in [&[5_i64, -1][..], &[-1, -1], &[0, 0, 0, 0], &[i64::MAX, 2], &[12, -2]] {
        assert!(reshape(a.clone(), wanted).is_err(), "{wanted:?}");
    }
}

#[test]
fn rows_of_a_product_are_the_same_whatever_is_beside_them() {
    for (depth, columns) in [(128, 128), (37, 41), (16, 1)] {
        let (a, b) = (tensor(&[23, depth], 7), tensor(&[depth, columns], 8));
        let all = matmul(&a, &b, false).unwrap();
        for row in 0..23 {
            let alone = slice(&a, [row, row + 1, 0]).unwrap();
            let found = matmul(&alone, &b, false).unwrap();
            assert_eq!(found.numbers(), slice(&all, [row, row + 1, 0]).unwrap().numbers());
        }
    }
}

#[test]
fn the_shipped_decoder_is_products_and_attention() {
    let shipped = Model::shipped().unwrap();
    let graph = EmbeddedGraph::new(shipped.decoder(), &["logits", "speeds"]).unwrap();
    let count =
        |is: fn(&Operator) -> bool| graph.steps.iter().filter(|step| is(&step.operator)).count();
    let layers = shipped.description().layers;
    assert_eq!(count(|of| matches!(of, Operator::RowAttention(_))), layers);
    assert_eq!(count(|of| matches!(of, Operator::SplitAttention(_))), layers);
    assert_eq!(count(|of| matches!(of, Operator::Softmax { .. } | Operator::Erf)), 0);
    // What of `ends` and `hidden` is taken is no product with a constant.
    assert_eq!(count(|of| matches!(of, Operator::MatMul { .. })), 1);
}

/// A file with one operator from `x` to `y`.
fn file(change: impl FnOnce(&mut ModelProto)) -> Vec<u8> {
    let named = |name: &str| ValueInfoProto { name: name.to_owned(), ..ValueInfoProto::default() };
    let node = NodeProto {
        op_type: "Identity".to_owned(),
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![node],
        input: vec![named("x")],
        output: vec![named("y")],
        ..GraphProto::default()
    };
    let set = crate::onnx::OperatorSetIdProto { version: OPSET, ..Default::default() };
    let mut model =
        ModelProto { graph: Some(graph), opset_import: vec![set], ..ModelProto::default() };
    change(&mut model);
    model.encode_to_vec()
}

#[test]
fn sizes_beside_a_zero_are_bounded() {
    for shape in [vec![0, 1 << 60], vec![1 << 60, 0], vec![0, usize::MAX, usize::MAX]] {
        let error = Tensor::<f32>::new(shape, Vec::new()).unwrap_err();
        assert!(matches!(error, OperatorError::Size(_)), "{error}");
    }
    assert_eq!(tensor(&[3, 0, 2], 0).numbers(), [0.0; 0]);
    // Its columns are filled up to sixteen.
    let narrow = [1 << 27, 1];
    assert!(matches!(Packed::new(&[], narrow, false), Err(OperatorError::Size(_))));
}

#[test]
fn any_number_of_heads_is_refused_or_right() {
    let shipped = Model::shipped().unwrap();
    let shipped = ModelProto::decode(shipped.decoder()).unwrap();
    let is_places = |of: &crate::onnx::TensorProto| of.data_type == i32::from(DataType::Int64);
    let constants = &shipped.graph.as_ref().unwrap().initializer;
    let shapes = constants.iter().filter(|of| is_places(of) && of.raw_data.len() == 32);
    let names: Vec<&String> = shapes.map(|of| &of.name).collect();
    assert!(!names.is_empty());
    for (name, heads) in
        names.iter().flat_map(|name| [1_i64 << 40, 1 << 62, 0, -1].map(|to| (name, to)))
    {
        let mut model = shipped.clone();
        let constants = &mut model.graph.as_mut().unwrap().initializer;
        let shape = constants.iter_mut().find(|of| of.name == **name).unwrap();
        shape.raw_data[8..16].copy_from_slice(&heads.to_le_bytes());
        drop(EmbeddedGraph::new(&model.encode_to_vec(), &["logits", "speeds"]));
    }
}

#[test]
fn tensors_are_let_go_while_their_thread_ends() {
    thread_local! {
        static LAST: std::cell::RefCell<Option<Tensor<f32>>> = const { std::cell::RefCell::new(None) };
    }
    let thread = std::thread::spawn(|| {
        // What is made first ends last: the pool is gone by then.
        LAST.with_borrow_mut(|last| *last = Some(tensor(&[4], 1)));
        drop(tensor(&[4], 2));
    });
    thread.join().unwrap();
}

#[test]
fn files_that_are_not_of_policies_are_refused_in_one_line() {
    EmbeddedGraph::new(&file(|_| {}), &["y"]).map(drop).unwrap();
    fn first(model: &mut ModelProto) -> &mut NodeProto {
        &mut model.graph.as_mut().unwrap().node[0]
    }
    type Change = fn(&mut ModelProto);
    let refused: [(Change, &str); 6] = [
        (|model| model.opset_import[0].version = 13, "version 17"),
        (|model| model.graph = None, "no graph"),
        (|model| first(model).op_type = "Loop".to_owned(), "not one of the operators"),
        (|model| first(model).input[0] = "z".to_owned(), "nothing before it gives `z`"),
        (|model| first(model).output[0] = "x".to_owned(), "nothing before it gives `y`"),
        (
            |model| {
                let twice = first(model).clone();
                model.graph.as_mut().unwrap().node.push(twice);
            },
            "two things are called `y`",
        ),
    ];
    for (change, expected) in refused {
        let error = EmbeddedGraph::new(&file(change), &["y"]).err().unwrap().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn damaged_policies_are_refused_or_run_and_nothing_panics() {
    let shipped = Model::shipped().unwrap();
    let whole = ModelProto::decode(shipped.decoder()).unwrap();
    let mut random = sparserl_core::random::SplitMix64::new(7);
    let mut ran = 0;
    for _ in 0..60 {
        let mut model = whole.clone();
        let graph = model.graph.as_mut().unwrap();
        let mut below = |count: usize| random.below(count);
        for _ in 0..2 {
            let node = below(graph.node.len());
            let other = graph.node[below(node + 1)].output[0].clone();
            match below(4) {
                0 => graph.node[node].input[0] = other,
                1 => graph.node[node].op_type = graph.node[below(graph.node.len())].op_type.clone(),
                2 => {
                    graph.node[node].attribute =
                        graph.node[below(graph.node.len())].attribute.clone();
                }
                _ => {
                    let places = graph.initializer.iter_mut();
                    let mut places: Vec<_> =
                        places.filter(|of| of.data_type == i32::from(DataType::Int64)).collect();
                    let count = places.len();
                    places[below(count)].raw_data[0] = below(256) as u8;
                }
            }
        }
        let opened = EmbeddedGraph::new(&model.encode_to_vec(), &["logits", "speeds"]);
        let description = shipped.description();
        let width = description.heads * description.head_width;
        let (rows, next) = (2, 3);
        let floats = |name, shape: &[usize]| Input::Floats(name, ArrayD::zeros(IxDyn(shape)));
        let integers = |name, shape: &[usize]| Input::Integers(name, ArrayD::zeros(IxDyn(shape)));
        let cache = [description.layers, rows, 1, width];
        let memory = [description.layers, description.heads, 5, description.head_width];
        if let Ok(graph) = opened {
            let inputs = vec![
                integers("tokens", &[rows, next]),
                integers("places", &[next]),
                floats("bias", &[next, 1 + next]),
                floats("keys", &cache),
                floats("values", &cache),
                floats("summary", &[1, width]),
                floats("memory_keys", &memory),
                floats("memory_values", &memory),
                floats("ends", &[rows, 1, next]),
                floats("terms", &[rows, crate::terms::TERMS]),
            ];
            ran += usize::from(graph.run(inputs).is_ok());
        }
    }
    assert!((1..60).contains(&ran), "{ran} of 60 ran");
}
