//! The layers of [`crate::network`] in ONNX's operators.

use super::ExportError;
use super::graph::{Attribute, Graph, Value};

type Made = Result<Value, ExportError>;

impl Graph<'_> {
    pub(super) fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Add", &[a, b], &[])
    }

    pub(super) fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Mul", &[a, b], &[])
    }

    pub(super) fn matmul(&mut self, a: &Value, b: &Value) -> Value {
        self.op("MatMul", &[a, b], &[])
    }

    /// 0 keeps a dimension, −1 follows from the others.
    pub(super) fn reshape(&mut self, x: &Value, shape: &[i64]) -> Value {
        let shape = self.places(shape);
        self.op("Reshape", &[x, &shape], &[])
    }

    pub(super) fn transpose(&mut self, x: &Value, axes: &[i64]) -> Value {
        self.op("Transpose", &[x], &[("perm", Attribute::Integers(axes.to_vec()))])
    }

    pub(super) fn concat(&mut self, values: &[&Value], axis: i64) -> Value {
        self.op("Concat", values, &[("axis", Attribute::Integer(axis))])
    }

    pub(super) fn gather(&mut self, x: &Value, places: &Value, axis: i64) -> Value {
        self.op("Gather", &[x, places], &[("axis", Attribute::Integer(axis))])
    }

    /// The elements from `first` to before `last` along an axis.
    pub(super) fn slice(&mut self, x: &Value, axis: i64, first: usize, last: usize) -> Value {
        let [first, last] = [first, last].map(|place| self.places(&[place as i64]));
        let axis = self.places(&[axis]);
        self.op("Slice", &[x, &first, &last, &axis], &[])
    }

    /// One of a dimension's elements, which goes.
    pub(super) fn at(&mut self, x: &Value, axis: i64, place: usize) -> Value {
        let slice = self.slice(x, axis, place, place + 1);
        let axis = self.places(&[axis]);
        self.op("Squeeze", &[&slice, &axis], &[])
    }

    pub(super) fn unsqueeze(&mut self, x: &Value, axis: i64) -> Value {
        let axis = self.places(&[axis]);
        self.op("Unsqueeze", &[x, &axis], &[])
    }

    pub(super) fn mean(&mut self, x: &Value, axis: i64, keep: bool) -> Value {
        let axes = Attribute::Integers(vec![axis]);
        self.op(
            "ReduceMean",
            &[x],
            &[("axes", axes), ("keepdims", Attribute::Integer(i64::from(keep)))],
        )
    }

    /// The exact GELU (Hendrycks and Gimpel, 2016): x · (1 + erf(x / √2)) / 2.
    fn gelu(&mut self, x: &Value) -> Value {
        let (root, one, half) = (self.number(0.5_f32.sqrt()), self.number(1.0), self.number(0.5));
        let scaled = self.mul(x, &root);
        let erf = self.op("Erf", &[&scaled], &[]);
        let sum = self.add(&erf, &one);
        let halved = self.mul(x, &half);
        self.mul(&halved, &sum)
    }

    pub(super) fn linear(&mut self, x: &Value, name: &str) -> Made {
        let weight = self.parameter(&format!("{name}.weight"))?;
        let bias = self.parameter(&format!("{name}.bias"))?;
        let product = self.matmul(x, &weight);
        Ok(self.add(&product, &bias))
    }

    pub(super) fn gelu_linear(&mut self, x: &Value, name: &str) -> Made {
        let x = self.linear(x, name)?;
        Ok(self.gelu(&x))
    }

    pub(super) fn mlp(&mut self, x: &Value, name: &str) -> Made {
        let hidden = self.gelu_linear(x, &format!("{name}.first"))?;
        self.linear(&hidden, &format!("{name}.last"))
    }

    pub(super) fn norm(&mut self, x: &Value, name: &str) -> Made {
        let gamma = self.parameter(&format!("{name}.gamma"))?;
        let beta = self.parameter(&format!("{name}.beta"))?;
        let attributes = [("axis", Attribute::Integer(-1)), ("epsilon", Attribute::Float(1e-5))];
        Ok(self.op("LayerNormalization", &[x, &gamma, &beta], &attributes))
    }

    pub(super) fn feed_forward(&mut self, x: &Value, name: &str) -> Made {
        let normed = self.norm(x, &format!("{name}.norm"))?;
        let change = self.mlp(&normed, &format!("{name}.mlp"))?;
        Ok(self.add(x, &change))
    }

    /// A layer of `[rows, positions, width]` by heads: `[rows, heads, positions, head width]`.
    pub(super) fn by_heads(&mut self, x: &Value, name: &str, [heads, width]: [usize; 2]) -> Made {
        let made = self.linear(x, name)?;
        let split = self.reshape(&made, &[0, 0, heads as i64, width as i64]);
        Ok(self.transpose(&split, &[0, 2, 1, 3]))
    }

    /// What `x`, `[rows, positions, width]`, finds among keys and values
    /// `[rows, heads, positions attended to, head width]`.
    pub(super) fn attend(
        &mut self,
        x: &Value,
        (keys, values): (&Value, &Value),
        bias: Option<&Value>,
        name: &str,
        sizes: [usize; 2],
    ) -> Made {
        let queries = self.by_heads(x, &format!("{name}.query"), sizes)?;
        let scale = self.number((sizes[1] as f32).powf(-0.5));
        let queries = self.mul(&queries, &scale);
        let keys = self.transpose(keys, &[0, 1, 3, 2]);
        let mut scores = self.matmul(&queries, &keys);
        if let Some(bias) = bias {
            scores = self.add(&scores, bias);
        }
        let shares = self.op("Softmax", &[&scores], &[("axis", Attribute::Integer(-1))]);
        let found = self.matmul(&shares, values);
        let found = self.transpose(&found, &[0, 2, 1, 3]);
        let found = self.reshape(&found, &[0, 0, (sizes[0] * sizes[1]) as i64]);
        self.linear(&found, &format!("{name}.output"))
    }

    /// What each row of `x`, `[rows, positions, width]`, finds among keys and values of its own,
    /// `[rows, positions attended to, width]`; `bias` is `[positions, positions attended to]`.
    ///
    /// All heads of a row in one product: queries are repeated for each head, with zeros where
    /// others are, and of what is found each head keeps its own part. Engines take longer to begin
    /// a product of a row's few positions than for the products with zeros.
    pub(super) fn attend_rows(
        &mut self,
        x: &Value,
        (keys, values): (&Value, &Value),
        bias: &Value,
        name: &str,
        [heads, head_width]: [usize; 2],
    ) -> Made {
        let width = heads * head_width;
        let parts = |of: f32| -> Vec<f32> {
            let place = |i: usize| (i / width, i % width / head_width);
            let part = |(head, part): (usize, usize)| if head == part { of } else { 0.0 };
            (0..heads * width).map(|i| part(place(i))).collect()
        };
        let shape = [heads as i64, 1, width as i64];
        let scale = (head_width as f32).powf(-0.5);
        let scaled = self.numbers("parts_scaled", &shape, &parts(scale));
        let own = self.numbers("parts", &shape, &parts(1.0));
        let queries = self.linear(x, &format!("{name}.query"))?;
        let queries = self.unsqueeze(&queries, 1);
        let queries = self.mul(&queries, &scaled);
        let queries = self.reshape(&queries, &[0, -1, width as i64]);
        let bias = self.concat(&vec![bias; heads], 0);
        let keys = self.transpose(keys, &[0, 2, 1]);
        let scores = self.matmul(&queries, &keys);
        let scores = self.add(&scores, &bias);
        let shares = self.op("Softmax", &[&scores], &[("axis", Attribute::Integer(-1))]);
        let found = self.matmul(&shares, values);
        let found = self.reshape(&found, &[0, heads as i64, -1, width as i64]);
        let found = self.mul(&found, &own);
        let axis = self.places(&[1]);
        let found = self.op("ReduceSum", &[&found, &axis], &[("keepdims", Attribute::Integer(0))]);
        self.linear(&found, &format!("{name}.output"))
    }
}
