//! Launches that cannot be made.

/// How to launch a kernel is not said, not clear, or impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is not said.
    #[error("the source does not say how to launch the kernel: add a line such as {line}")]
    None {
        /// The line.
        line: String,
    },
    /// It is said more than once.
    #[error("the source has several `// launch:` comments: keep one")]
    Several,
    /// The file is not such JSON.
    #[error(
        "the .json file beside it, which says how to launch it, is not JSON like {{\"grid\": [\"ceil(num_rows / 256)\"], \"block\": [256]}}: {reason}"
    )]
    Json {
        /// Why.
        reason: String,
    },
    /// It is not written as CUDA writes it.
    #[error(
        "the launch is `{found}` where something like `spmv<<<ceil(num_rows / 256), 256>>>(row_offsets, columns, values, \
         x, y, num_rows)` should be"
    )]
    Form {
        /// What is there.
        found: String,
    },
    /// The blocks of a kernel without a program.
    #[error(
        "the launch depends on `blocks`, which only a program says: the source's comment has none"
    )]
    Blocks,
    /// A grid or block has no extents, or more than three.
    #[error("the launch has a grid or block of other than 1 to 3 dimensions, as in dim3(8, 4)")]
    Dimensions,
    /// An extent is no expression.
    #[error(
        "the launch has `{expression}`, which is not understood at {at}: expected numbers, num_rows, num_cols, nnz and \
         dense_cols, and constants, enumerators and macros of the source, with C++'s operators on integers, min(), max(), \
         ceil() and sizeof()"
    )]
    Expression {
        /// The expression.
        expression: String,
        /// Where reading it stopped.
        at: String,
    },
    /// An extent is none for this matrix.
    #[error(
        "the launch has {what} = {expression} = {value} for this matrix: expected {least} to {most}"
    )]
    Extent {
        /// `grid`, `block` or `shared`.
        what: &'static str,
        /// The expression.
        expression: String,
        /// Its value.
        value: String,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// A block has too many threads.
    #[error("the launch has blocks of {threads} threads: no device takes more than 1024")]
    Threads {
        /// Threads of a block.
        threads: u64,
    },
}

impl RuleError {
    pub(super) fn json(error: &serde_json::Error) -> Self {
        // It quotes names as they are, line breaks included.
        Self::Json { reason: on_a_line(&error.to_string()) }
    }

    pub(super) fn expression(text: &str, rest: &str) -> Self {
        let at = match rest.trim() {
            "" => "its end".to_owned(),
            rest => format!("`{}`", shortened(rest)),
        };
        Self::Expression { expression: shortened(text.trim()), at }
    }
}

pub(super) fn on_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names that fit a line, of however many.
pub(super) fn listed(names: &[String]) -> String {
    const MOST: usize = 16;
    let first: Vec<_> = names.iter().take(MOST).map(|name| shortened(name)).collect();
    match names.len().checked_sub(MOST) {
        None | Some(0) => first.join(", "),
        Some(more) => format!("{} and {more} more", first.join(", ")),
    }
}

/// A piece of foreign text that fits a line.
pub(super) fn shortened(text: &str) -> String {
    let line = on_a_line(text);
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
