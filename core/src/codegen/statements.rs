//! What a part does, as statements that are written for its program: in the kernel where it is the
//! only part, else in a function of its own.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::access::Live;
use super::dense::dense_type;
use super::lines::{write_list, write_words};
use super::part::PartCall;
use super::preprocess::{Macros, is_named, one};
use super::signature::RowsForm;
use crate::layout::DeviceCode;
use crate::task::{Operation, Task};

/// Where the statements of a part stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// In the kernel, where the index of the block is this.
    Kernel { block: &'a str },
    /// In a function that is given the index of the block, and the dense output.
    Function,
}

impl PartCall<'_> {
    /// Name of the function, where the part has one of its own.
    pub(super) fn function_name(&self) -> String {
        format!("part{}", self.index)
    }

    /// Writes what stands before the kernel: how threads are mapped, and what the kernel calls.
    pub(super) fn write_definitions(
        &self,
        text: &mut String,
        task: Task,
        parts: usize,
    ) -> fmt::Result {
        let mapping = format!("Mapping: {}.", self.mapping_in_words(task.operation));
        match self.statements(task, Place::Function, false) {
            None => {
                write_words(text, "// ", &format!("{mapping} Its arrays, and how they are read:"))?;
                self.write_type(text, task, parts)
            }
            Some(_) if parts == 1 => write_words(text, "// ", &mapping),
            Some(statements) => {
                write_words(text, "// ", &mapping)?;
                let opening = format!("__device__ __forceinline__ void {}(", self.function_name());
                write_list(text, &opening, &self.declarations(task), ") {")?;
                statements.iter().try_for_each(|line| writeln!(text, "{line}"))?;
                writeln!(text, "}}\n")
            }
        }
    }

    /// The statements of a part, with the constants that they name; `None` where it is a function
    /// of the library that does the work. `updates` says that y is the old y, too.
    pub(super) fn statements(
        &self,
        task: Task,
        place: Place<'_>,
        updates: bool,
    ) -> Option<Vec<String>> {
        let DeviceCode::Statements(file) = self.call.code else { return None };
        let mut macros = Macros::default();
        self.define_dense(&mut macros, task, place, updates);
        if let Place::Kernel { block } = place
            && block != "block"
        {
            macros.define("block", block);
        }
        let element_type = |array: &str| {
            self.signature.element(array).map_or_else(|| array.to_owned(), |e| e.cuda_type().into())
        };
        macros.function("TYPE", move |args| one(element_type(&args[0])));
        macros.function("ROW", |args| one(self.row(&args[0])));
        let base = "const u32 base = __ldg(column_bases";
        macros.function("BASE_OF", move |args| match self.is_relative() {
            true => one(format!("{base} + {});", args[0])),
            false => Vec::new(),
        });
        macros.function("COLUMN", |args| {
            one(self.column(&args[0], Live::of(&args[1])).unwrap_or_else(|| args[0].clone()))
        });
        macros.function("VALUE", |args| one(self.value(&args[0], Live::of(&args[1]))));
        macros.function("VALUE_PAIR", |args| one(self.value_pair(&args[0], Live::of(&args[1]))));
        macros.function("COLUMNS_AT", |args| self.columns_at(&args[0], &args[1]));
        macros.function("VALUES_AT", |args| self.values_at(&args[0], &args[1]));
        let has_all_rows = self.signature.rows == RowsForm::All;
        macros.factors.extend(&self.call.factors);
        macros.numbers.extend(&self.call.constants);
        macros.numbers.push(("ALL_ROWS", has_all_rows.into()));
        macros.numbers.push(("MATRICES", (task.operation != Operation::SpMV).into()));
        let body = macros.preprocess(file, "  ");

        let named: Vec<String> = self
            .call
            .factors
            .iter()
            .chain(&self.call.constants)
            .filter(|(name, _)| is_named(name, &body))
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let constants = format!("  constexpr u32 {};", named.join(", "));
        Some((!named.is_empty()).then_some(constants).into_iter().chain(body).collect())
    }

    /// Macros over the dense operands and sums.
    fn define_dense<'a>(
        &'a self,
        macros: &mut Macros<'a>,
        task: Task,
        place: Place<'_>,
        updates: bool,
    ) {
        let store = |row: &str, sum: &str| one(format!("output.store({row}, {sum});"));
        match task.operation {
            Operation::SpMV => {
                macros.define("Sum", "Scalar");
                macros.function("OPERAND", |args| {
                    one(format!("load_operand_if({}, x + {})", args[0], args[1]))
                });
                macros.function("MULTIPLY_ADD", |args| {
                    one(format!("{0} = fma({1}, {2}, {0});", args[0], args[1], args[2]))
                });
                macros.function("MULTIPLY_ADD_IF", |args| {
                    let [live, sum, a, x] = [0, 1, 2, 3].map(|n| &args[n]);
                    one(format!("{sum} = {live} ? fma({a}, {x}, {sum}) : {sum};"))
                });
                macros.function("REDUCE_LANES", |args| {
                    let [sum, lanes, stride] = [0, 1, 2].map(|n| &args[n]);
                    let end = match stride.as_str() {
                        "1" => lanes.clone(),
                        _ => format!("{lanes} * {stride}"),
                    };
                    let add = format!("{sum} += __shfl_xor_sync(0xffffffff, {sum}, d);");
                    let each = format!("for (u32 d = {stride}; d < {end}; d *= 2) {add}");
                    alloc::vec!["#pragma unroll".to_owned(), each]
                });
            }
            Operation::SpMM { .. } => {
                macros.define("Sum", &format!("Pack<{}>", self.call.mapping.vector));
                macros.function("OPERAND", |args| {
                    one(format!("operand_if({}, input, {})", args[0], args[1]))
                });
                macros.function("MULTIPLY_ADD", |args| {
                    one(format!("multiply_add({}, true, {}, {});", args[0], args[1], args[2]))
                });
                macros.function("MULTIPLY_ADD_IF", |args| {
                    let [live, sum, a, x] = [0, 1, 2, 3].map(|n| &args[n]);
                    one(format!("multiply_add({sum}, {live}, {a}, {x});"))
                });
                macros.function("REDUCE_LANES", |args| {
                    one(format!("reduce_lanes<{}, {}>({});", args[1], args[2], args[0]))
                });
            }
        }
        let is_at_place = place != Place::Function && updates && task.operation == Operation::SpMV;
        if !is_at_place {
            macros.function("STORE_ROW", move |args| store(&args[0], &args[1]));
            macros.function("STORE", move |args| store(&self.row(&args[0]), &args[1]));
            return;
        }
        let dense = dense_type(task);
        let rounds = task.precision.rounds_results();
        let update = move |row: &str, sum: &str| {
            let result = match rounds {
                false => format!("beta == 0 ? product : fma(beta, y[{row}], product)"),
                true => format!(
                    "{dense}::nearest(beta == 0 ? product : fma(beta, Scalar(y[{row}]), product))"
                ),
            };
            [format!("const Scalar product = alpha * {sum};"), format!("y[{row}] = {result};")]
        };
        macros.function("STORE_ROW", move |args| update(&args[0], &args[1]).into());
        let is_row = self.signature.rows == RowsForm::All;
        macros.function("STORE", move |args| match is_row {
            true => update(&args[0], &args[1]).into(),
            false => one(format!("const u32 row = {};", self.row(&args[0])))
                .into_iter()
                .chain(update("row", &args[1]))
                .collect(),
        });
    }
}
