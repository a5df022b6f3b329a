//! How a kernel from anywhere is launched.
//!
//! ```text
//! // launch: grid=(ceil(num_rows/256)) block=256 shared=0
//! // launch: kernel=spmm grid=(num_rows/8, dense_cols/32) block=(32, 8)
//! ```
//!
//! or in a file of its own
//!
//! ```json
//! { "kernel": "spmm", "grid": ["num_rows/8", "dense_cols/32"], "block": [32, 8], "shared": 0 }
//! ```
//!
//! `grid` counts blocks, `block` threads, each in up to three dimensions; `shared` is bytes of
//! dynamic shared memory, 0 unless given; `kernel` is needed where there are several. Extents are
//! numbers or expressions over `num_rows`, `num_cols`, `nnz` and `dense_cols` with `+`, `*`, `/`
//! and parentheses. `/` rounds up: `ceil(a/b)` is the same.

use serde::Deserialize;

use super::expression::Expression;
use crate::run::device::Geometry;

/// How a kernel is launched, whatever the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaunchRule {
    kernel: Option<String>,
    grid: [Expression; 3],
    block: [Expression; 3],
    shared: Expression,
}

/// What extents depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) num_rows: u64,
    pub(super) num_cols: u64,
    pub(super) nnz: u64,
    pub(super) dense_cols: u64,
}

/// CUDA's limits, of every device.
const MOST_BLOCKS: [u64; 3] = [i32::MAX as u64, 65_535, 65_535];
const MOST_THREADS: [u64; 3] = [1024, 1024, 64];
const MOST_THREADS_OF_A_BLOCK: u64 = 1024;
/// More than any device has.
const MOST_SHARED: u64 = 1 << 30;

impl LaunchRule {
    /// Reads the text after `// launch:`.
    pub(super) fn from_comment(text: &str) -> Result<Self, RuleError> {
        let (mut kernel, mut grid, mut block, mut shared) = (None, None, None, None);
        for (key, value) in pairs(text)? {
            let slot = match key {
                "kernel" => &mut kernel,
                "grid" => &mut grid,
                "block" => &mut block,
                "shared" => &mut shared,
                _ => return Err(RuleError::Key { key: shortened(key) }),
            };
            if slot.replace(value).is_some() {
                return Err(RuleError::Twice { key: shortened(key) });
            }
        }
        Ok(Self {
            kernel: kernel.map(str::to_owned),
            grid: extents(elements(grid.ok_or(RuleError::Missing { key: "grid" })?))?,
            block: extents(elements(block.ok_or(RuleError::Missing { key: "block" })?))?,
            shared: Expression::parse(shared.unwrap_or("0"))?,
        })
    }

    /// Reads a launch description in JSON.
    pub(super) fn from_json(json: &str) -> Result<Self, RuleError> {
        let Description { kernel, grid, block, shared } =
            serde_json::from_str(json).map_err(|error| RuleError::json(&error))?;
        let shared = shared.unwrap_or(Extent::Number(0)).text();
        Ok(Self {
            kernel,
            grid: extents(grid.texts().iter().map(String::as_str))?,
            block: extents(block.texts().iter().map(String::as_str))?,
            shared: Expression::parse(&shared)?,
        })
    }

    /// The kernel that is launched, where it is said.
    pub(super) fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// The launch for some sizes.
    pub(super) fn geometry(&self, sizes: Sizes) -> Result<Geometry, RuleError> {
        let all = |what, extents: &[Expression; 3], most: [u64; 3]| {
            let [x, y, z] = [0, 1, 2].map(|i| extent(what, &extents[i], 1..=most[i], sizes));
            Ok([x?, y?, z?])
        };
        let block = all("block", &self.block, MOST_THREADS)?;
        let threads = block.iter().map(|&threads| u64::from(threads)).product();
        if threads > MOST_THREADS_OF_A_BLOCK {
            return Err(RuleError::Threads { threads });
        }
        Ok(Geometry {
            grid: all("grid", &self.grid, MOST_BLOCKS)?,
            block,
            dynamic_shared: extent("shared", &self.shared, 0..=MOST_SHARED, sizes)?,
        })
    }
}

fn extent(
    what: &'static str,
    expression: &Expression,
    range: std::ops::RangeInclusive<u64>,
    sizes: Sizes,
) -> Result<u32, RuleError> {
    let outside = |value| RuleError::Extent {
        what,
        expression: expression.to_string(),
        value,
        least: *range.start(),
        most: *range.end(),
    };
    let value = expression.value(sizes).ok_or_else(|| outside("no number".to_owned()))?;
    let in_range = range.contains(&value).then(|| u32::try_from(value).ok()).flatten();
    in_range.ok_or_else(|| outside(value.to_string()))
}

/// Splits `key=value key=value`, where values may hold spaces.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, RuleError> {
    let mut pieces = text.split('=');
    let mut key = pieces.next().unwrap_or_default().trim();
    let mut pairs = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let piece = piece.trim();
        if pieces.peek().is_none() {
            pairs.push((key, piece));
            return Ok(pairs);
        }
        // The next key is the last word.
        let (value, next) = piece.rsplit_once([' ', '\t', ',', ';']).unwrap_or(("", piece));
        pairs.push((key, value.trim_end_matches([' ', '\t', ',', ';'])));
        key = next;
    }
    if key.is_empty() { Ok(pairs) } else { Err(RuleError::Key { key: shortened(key) }) }
}

/// The parts of `(a, b, c)`, `a, b, c` or `a`.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    // Not in (a) + (b).
    let text = inside.filter(|inside| is_balanced(inside)).unwrap_or(text);
    let mut depth = 0usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn is_balanced(text: &str) -> bool {
    let steps = text.chars().map(|c| i64::from(c == '(') - i64::from(c == ')'));
    let mut depth = 0;
    steps.into_iter().all(|step| {
        depth += step;
        depth >= 0
    })
}

/// One to three extents; those left out are 1.
fn extents<'t>(texts: impl Iterator<Item = &'t str>) -> Result<[Expression; 3], RuleError> {
    let mut texts = texts.into_iter();
    let first = texts.next().ok_or(RuleError::Dimensions)?;
    let mut other = || Expression::parse(texts.next().unwrap_or("1"));
    let extents = [Expression::parse(first)?, other()?, other()?];
    if texts.next().is_some() { Err(RuleError::Dimensions) } else { Ok(extents) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    kernel: Option<String>,
    grid: Extents,
    block: Extents,
    shared: Option<Extent>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, an expression, or a list of up to three")]
enum Extents {
    One(Extent),
    Several(Vec<Extent>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or an expression")]
enum Extent {
    Number(u64),
    Expression(String),
}

impl Extents {
    fn texts(self) -> Vec<String> {
        match self {
            Self::One(extent) => vec![extent.text()],
            Self::Several(extents) => extents.into_iter().map(Extent::text).collect(),
        }
    }
}

impl Extent {
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Expression(text) => text,
        }
    }
}

/// How to launch a kernel is not said, not clear, or impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is not said.
    #[error(
        "the source does not say how to launch the kernel: add a line such as `// launch: grid=(num_rows/256) block=256`"
    )]
    None,
    /// It is said more than once.
    #[error("the source has several `// launch:` comments: keep one")]
    Several,
    /// The file is not such JSON.
    #[error(
        "the launch description is not JSON like {{\"grid\": [\"num_rows/256\"], \"block\": [256]}}: {reason}"
    )]
    Json {
        /// Why.
        reason: String,
    },
    /// There is no such key.
    #[error("the launch has `{key}` where one of kernel=, grid=, block= and shared= should be")]
    Key {
        /// What is there.
        key: String,
    },
    /// A key is there twice.
    #[error("the launch says {key}= twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// A key is not there.
    #[error("the launch does not say {key}=, as in grid=(num_rows/256) block=256")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A grid or block has no extents, or more than three.
    #[error("the launch has a grid or block of other than 1 to 3 dimensions")]
    Dimensions,
    /// An extent is no expression.
    #[error(
        "the launch has `{expression}`, which is not understood at {at}: expected numbers, num_rows, num_cols, nnz and \
         dense_cols with + * / and parentheses"
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
    fn json(error: &serde_json::Error) -> Self {
        // It quotes names as they are, line breaks included.
        Self::Json { reason: error.to_string().split_whitespace().collect::<Vec<_>>().join(" ") }
    }

    pub(super) fn expression(text: &str, rest: &str) -> Self {
        let at = match rest.trim() {
            "" => "its end".to_owned(),
            rest => format!("`{}`", shortened(rest)),
        };
        Self::Expression { expression: shortened(text.trim()), at }
    }
}

/// A piece of foreign text that fits a line.
pub(super) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
