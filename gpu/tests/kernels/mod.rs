//! The kernels in the files beside this one, and what must become of each.

/// Right kernels.
pub(crate) const GOOD: &str = include_str!("good.cu");
/// Kernels that cheat: [`CHEATS`].
pub(crate) const CHEATING: &str = include_str!("cheats.cu");
/// Kernels that fail: [`BAD`].
pub(crate) const FAILING: &str = include_str!("bad.cu");

const COMMON: &str = include_str!("common.cuh");
/// What `KERNEL` stands for.
const SIGNATURE: &str = "extern \"C\" __global__ void k(const int* row_ptr, const int* col_idx, const float* values, \
                         const float* x, float* y, int num_rows, int num_cols, int nnz)";
/// How a kernel is launched that does not say how.
const USUAL_LAUNCH: &str = r#"{"grid": "ceil(num_rows / 128)", "block": 128}"#;

/// One kernel of a file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// The source.
    pub(crate) text: String,
}

impl Section {
    /// How it is launched, unless the source says it.
    pub(crate) fn sidecar(&self) -> Option<&'static str> {
        (!self.text.contains("// launch:")).then_some(USUAL_LAUNCH)
    }
}

/// The kernels of a file, in their order.
pub(crate) fn sections(file: &'static str) -> Vec<Section> {
    let texts = file.split("\n// ---- ").skip(1);
    texts
        .filter_map(|text| {
            let (name, text) = text.split_once('\n')?;
            let text = text.replace("KERNEL", SIGNATURE);
            Some(Section { name, text: format!("{COMMON}{text}") })
        })
        .collect()
}

/// What must become of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    pub(crate) on: On,
    /// One of these. They are the words of outcomes; of violations, when the result is wrong; and
    /// `refused` for sources that no kernel is found in. There are several where it depends on the
    /// device and on what lies where in memory.
    pub(crate) words: &'static [&'static str],
}

/// What a kernel is judged on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum On {
    /// SpMV in f32 with a small matrix.
    Float,
    /// SpMV in f64 with a small matrix.
    Double,
    /// SpMV in f32/f64/f64 with a small matrix.
    Mixed,
    /// SpMM of 33 columns in f32 with a small matrix.
    Columns33,
    /// SpMV in f32 with a long dense operand.
    Wide,
}

const fn on_float(name: &'static str, words: &'static [&'static str]) -> Expected {
    Expected { name, on: On::Float, words }
}

const fn on_double(name: &'static str, words: &'static [&'static str]) -> Expected {
    Expected { name, on: On::Double, words }
}

const fn on_columns33(name: &'static str, words: &'static [&'static str]) -> Expected {
    Expected { name, on: On::Columns33, words }
}

const fn on_wide(name: &'static str, words: &'static [&'static str]) -> Expected {
    Expected { name, on: On::Wide, words }
}

/// Kernels that try to pass for right or for fast.
pub(crate) const CHEATS: [Expected; 42] = [
    on_float("unwritten_elements", &["inexact"]),
    on_float("adds_to_what_is_there", &["inexact"]),
    on_float("remembers_the_pointer", &["inexact", "keeps-state"]),
    on_float("remembers_results_by_pointer", &["inexact", "keeps-state"]),
    on_float("constant", &["inexact"]),
    on_float("zero", &["inexact"]),
    on_float("changes_the_input", &["input-changed"]),
    on_float("zeroes_the_input", &["input-changed"]),
    on_float("changes_the_values", &["input-changed"]),
    on_float("changes_the_columns", &["input-changed"]),
    on_float("changes_the_offsets", &["input-changed"]),
    on_float("changes_the_values_when_timed", &["input-changed", "keeps-state", "inexact"]),
    on_float("wrong_after_3", &["inexact", "keeps-state"]),
    on_float("wrong_after_30", &["inexact", "keeps-state"]),
    on_float("skips_what_is_not_nan", &["inexact"]),
    on_float("skips_when_the_first_is_right", &["inexact"]),
    on_float("knows_the_input_again", &["inexact"]),
    on_float("writes_after_the_output", &["wrote-outside"]),
    on_float("writes_before_the_output", &["wrote-outside"]),
    on_float("writes_after_the_input", &["input-changed"]),
    on_float("writes_after_the_values", &["input-changed"]),
    on_float("writes_into_neighbours", &["wrote-outside", "input-changed", "faulted"]),
    on_float("reads_past_the_input", &["inexact"]),
    on_float("reads_past_the_input_in_vain", &["inexact"]),
    on_float("reads_past_the_values_in_vain", &["inexact"]),
    on_double("double_in_float", &["inexact"]),
    on_double("double_with_float_products", &["inexact"]),
    on_float("float_in_half", &["inexact"]),
    on_float("float_in_tf32", &["inexact"]),
    on_wide("idle_when_timed", &["keeps-state"]),
    on_float("hidden_preprocessing", &["keeps-state"]),
    on_float("hidden_on_the_heap", &["keeps-state"]),
    on_float("hidden_in_freed_memory", &["keeps-state"]),
    on_float("hidden_in_freed_aligned_memory", &["keeps-state"]),
    on_float("launches_another_kernel", &["compile-failed"]),
    on_float("takes_another_stream", &["compile-failed"]),
    on_float("floods_with_printf", &["measured"]),
    on_float("never_frees", &["measured", "keeps-state"]),
    on_columns33("forgets_the_last_columns", &["inexact"]),
    on_float("never_waits", &["inexact"]),
    on_float("waits_when_all_is_read", &["inexact"]),
    on_float("waits_when_all_is_written", &["inexact"]),
];

/// Kernels that fail.
pub(crate) const BAD: [Expected; 101] = [
    on_float("write_last_of_guard_after_output", &["wrote-outside"]),
    on_float("write_first_of_guard_before_output", &["wrote-outside"]),
    on_float("write_before_input", &["input-changed"]),
    on_float("write_before_values", &["input-changed"]),
    on_float("write_after_columns", &["input-changed"]),
    on_float("write_before_columns", &["input-changed"]),
    on_float("write_after_offsets", &["input-changed"]),
    on_float("write_before_offsets", &["input-changed"]),
    on_float("write_one_byte_outside", &["wrote-outside"]),
    on_float("atomic_outside", &["wrote-outside"]),
    on_float("write_into_neighbours_before", &["wrote-outside", "input-changed", "faulted"]),
    on_float("write_far_after", &["faulted"]),
    on_float("write_far_before", &["faulted"]),
    on_float("write_null", &["faulted"]),
    on_float("write_kernel_space", &["faulted"]),
    on_float("off_by_one_guard_of_rows", &["wrote-outside"]),
    on_float("no_guard_of_rows", &["wrote-outside"]),
    on_float("read_far", &["faulted"]),
    on_float("read_null", &["faulted"]),
    on_float("read_value_as_address", &["faulted"]),
    on_float("read_before_input", &["inexact"]),
    on_float("read_negated_column", &["inexact"]),
    on_float("read_next_column", &["inexact"]),
    on_float("read_one_entry_more", &["inexact", "faulted"]),
    on_float("read_next_entrys_column", &["inexact", "faulted"]),
    on_float("overflowing_index", &["inexact", "faulted"]),
    on_float("truncated_index", &["inexact"]),
    on_float("misaligned_vector_read", &["faulted"]),
    on_float("misaligned_vector_write", &["faulted"]),
    on_float("misaligned_double", &["faulted"]),
    on_float("misaligned_float", &["faulted"]),
    on_float("misaligned_atomic", &["faulted"]),
    on_float("misaligned_shared", &["faulted"]),
    on_float("shared_far_outside", &["faulted"]),
    on_float("trap_assembly", &["faulted"]),
    on_float("trap_builtin", &["faulted"]),
    on_float("trap_in_one_thread", &["faulted"]),
    on_float("trap_when_timed", &["faulted", "keeps-state"]),
    on_float("assertion", &["faulted"]),
    on_float("assertion_in_one_thread", &["faulted"]),
    on_float("recursion_without_end", &["faulted"]),
    on_float("recursion_too_deep", &["faulted"]),
    on_float("call_of_nothing", &["faulted", "timed-out"]),
    on_float("hang", &["timed-out"]),
    on_float("hang_in_one_thread", &["timed-out"]),
    on_float("hang_reading", &["timed-out"]),
    on_float("hang_writing", &["timed-out"]),
    on_float("hang_sleeping", &["timed-out"]),
    on_float("hang_at_a_lock", &["timed-out"]),
    on_float("hang_at_a_barrier", &["timed-out"]),
    on_float("hang_at_the_grids_end", &["timed-out"]),
    on_float("hang_of_too_much_work", &["timed-out"]),
    on_float("hang_when_timed", &["timed-out", "keeps-state"]),
    on_float("too_much_static_shared", &["compile-failed"]),
    on_float("too_much_dynamic_shared", &["launch-failed"]),
    on_float("too_many_threads", &["refused"]),
    on_float("too_many_threads_together", &["refused"]),
    on_float("too_many_registers", &["launch-failed"]),
    on_float("more_threads_than_its_bounds", &["launch-failed"]),
    on_float("cluster_that_does_not_divide_the_grid", &["launch-failed", "compile-failed"]),
    on_float("too_many_layers", &["refused"]),
    on_float("no_blocks", &["refused"]),
    on_float("no_threads", &["refused"]),
    on_float("too_large_variable", &["compile-failed", "launch-failed", "faulted", "keeps-state"]),
    on_float("too_large_constant", &["compile-failed"]),
    on_float("too_large_frame", &["compile-failed", "launch-failed"]),
    on_float("syntax_error", &["compile-failed"]),
    on_float("undefined_name", &["compile-failed"]),
    on_float("undefined_function", &["compile-failed"]),
    on_float("wrong_types", &["compile-failed"]),
    on_float("write_to_const", &["compile-failed"]),
    on_float("static_assertion", &["compile-failed"]),
    on_float("error_directive", &["compile-failed"]),
    on_float("include", &["compile-failed"]),
    on_float("assembly_error", &["compile-failed"]),
    on_float("templates_without_end", &["compile-failed"]),
    on_float("host_function", &["compile-failed"]),
    on_float("kernel_left_out", &["compile-failed"]),
    on_float("kernel_renamed", &["compile-failed"]),
    on_float("no_kernel", &["refused"]),
    on_float("kernel_by_another_name", &["refused"]),
    on_float("template_kernel", &["refused"]),
    on_float("unknown_parameter", &["refused"]),
    on_float("other_element_type", &["refused"]),
    on_float("first_row_forgotten", &["inexact"]),
    on_float("last_row_forgotten", &["inexact"]),
    on_float("empty_rows_forgotten", &["inexact"]),
    on_float("too_few_blocks", &["inexact"]),
    on_float("last_entry_forgotten", &["inexact"]),
    on_float("short_tail_forgotten", &["inexact"]),
    on_float("row_shifted", &["inexact"]),
    on_float("absolute_values", &["inexact"]),
    on_float("slightly_scaled", &["inexact"]),
    on_float("nan", &["inexact"]),
    on_float("infinity", &["inexact"]),
    on_float("transposed", &["inexact"]),
    on_float("atomics_without_zeroing", &["inexact"]),
    on_float("atomics_missing", &["inexact"]),
    on_float("barrier_missing", &["inexact"]),
    on_float("exits_early", &["inexact"]),
    on_float("grid_too_large_to_wait_for", &["launch-failed"]),
];
