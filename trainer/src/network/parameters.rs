//! The parameters of a network by name.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use sparserl_core::random::SplitMix64;

/// A parameter's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its path, such as `decoder.layers.0.attention.query.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, the last dimension running fastest.
    pub numbers: Vec<f32>,
}

impl Parameter {
    /// Whether all its numbers are.
    pub(super) fn is_finite(&self) -> bool {
        self.numbers.iter().all(|number| number.is_finite())
    }
}

/// Where a walk over modules is.
#[derive(Default)]
pub(super) struct ParameterPath(Vec<String>);

impl ParameterPath {
    pub(super) fn enter(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(super) fn exit(&mut self) {
        self.0.pop();
    }

    pub(super) fn name(&self) -> String {
        self.0.join(".")
    }
}

/// All parameters, in a fixed order.
pub(super) fn list<B: Backend, M: Module<B>>(module: &M) -> Vec<Parameter> {
    struct List {
        path: ParameterPath,
        found: Vec<Parameter>,
    }
    impl<B: Backend> ModuleVisitor<B> for List {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.enter(name);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.exit();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let tensor = param.val();
            self.found.push(Parameter {
                name: self.path.name(),
                shape: tensor.dims().to_vec(),
                numbers: numbers(tensor),
            });
        }
    }
    let mut list = List { path: ParameterPath::default(), found: Vec::new() };
    module.visit(&mut list);
    list.found
}

/// The numbers of a tensor, on this side.
pub(super) fn numbers<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// The module with other numbers for the parameters that `change` gives some for, by name and
/// shape. As many as the shape has, or they are left as they were.
pub(super) fn change<B: Backend, M: Module<B>>(
    module: M,
    change: impl FnMut(&str, &[usize]) -> Option<Vec<f32>>,
) -> M {
    struct Change<F> {
        path: ParameterPath,
        change: F,
    }
    impl<B: Backend, F: FnMut(&str, &[usize]) -> Option<Vec<f32>>> ModuleMapper<B> for Change<F> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.enter(name);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.exit();
        }

        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let (id, tensor, mapper) = param.consume();
            let shape = tensor.dims();
            let count = shape.iter().product::<usize>();
            let changed = (self.change)(&self.path.name(), &shape);
            let tensor = match changed.filter(|numbers| numbers.len() == count) {
                Some(numbers) => {
                    let data = TensorData::new(numbers, shape);
                    let changed = Tensor::from_data(data, &tensor.device());
                    changed.set_require_grad(tensor.is_require_grad())
                }
                None => tensor,
            };
            Param::from_mapped_value(id, tensor, mapper)
        }
    }
    module.map(&mut Change { path: ParameterPath::default(), change })
}

/// The module with the numbers of parameters that are given by name; others stay.
pub(super) fn set<B: Backend, M: Module<B>>(module: M, given: &[Parameter]) -> M {
    change(module, |name, _| {
        given.iter().find(|given| given.name == name).map(|given| given.numbers.clone())
    })
}

/// Draws the weights, each from its name and the seed: of linear layers evenly within
/// ±√(1 / inputs), of tables of vectors with a standard deviation of 0.02. Biases stay 0, scales of
/// norms 1, and so do the layers named `correction`, which add nothing to begin with.
pub(super) fn initialise<B: Backend, M: Module<B>>(module: M, seed: u64) -> M {
    change(module, |name, shape| {
        let &[inputs, _] = shape else { return None };
        let last = name.rsplit('.').next().unwrap_or_default();
        let most = match last {
            "weight" if name.contains(".correction.") => return None,
            "weight" => (1.0 / inputs as f64).sqrt(),
            _ => 0.02 * 3f64.sqrt(),
        };
        let hash = blake3::hash(name.as_bytes());
        let (first, _) = hash.as_bytes().split_at(8);
        let of_name = first.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let mut random = SplitMix64::new(SplitMix64::new(seed).bits() ^ of_name);
        let count = shape.iter().product();
        Some((0..count).map(|_| ((2.0 * random.uniform() - 1.0) * most) as f32).collect())
    })
}
