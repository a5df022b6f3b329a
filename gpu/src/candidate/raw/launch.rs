//! How a kernel is launched, in CUDA's own notation.
//!
//! ```text
//! // launch: spmv<<<ceil(num_rows / 256), 256>>>(row_offsets, columns, values, x, y, num_rows)
//! // launch: <<<dim3(ceil(num_rows / 8), ceil(dense_cols / 32)), dim3(32, 8), 4096>>>
//!
//! launch     = [ kernel [ "<" template-arguments ">" ] ] "<<<" dimensions "," dimensions [ "," expression ] ">>>"
//!              [ "(" [ argument { "," argument } ] ")" ] [ ";" ]
//! dimensions = expression | "dim3" "(" expression { "," expression } ")"
//! ```
//!
//! What stands between the angle brackets is what CUDA wants there: blocks, threads of a block,
//! bytes of dynamic shared memory, which are 0 unless given. The kernel's name is needed where the
//! source has several; one in a namespace may be qualified, as in `sparse::spmv<<<…>>>`. The
//! arguments say what each parameter is given, in order; without them the parameters' own names do
//! (as `role.rs` lists them). Expressions are of numbers, `num_rows`, `num_cols`, `nnz`,
//! `dense_cols` and, for kernels of a program, `blocks`, with the operators of C++ on integers,
//! `sizeof`, `min` and `max`. As in C++, `/` rounds down, as in `(num_rows + 255) / 256`;
//! `ceil(a / b)` rounds up. Macros, integer constants, `dim3` variables and functions of one
//! `return` that the source defines mean what they mean there, and between the angle brackets a
//! parameter of the kernel is the number that it is given, as in
//! `spmv<<<DIV_UP(n, BLOCK), BLOCK>>>(…, num_rows)`.
//!
//! The comment may go on over several lines, until its parentheses and angle brackets are
//! closed. Generated kernels
//! have the same comment, with a capital letter. For sources that are not to be touched, a JSON
//! file holds the same:
//!
//! ```json
//! { "kernel": "spmm", "grid": ["ceil(num_rows / 8)", 4], "block": [32, 8], "shared": 4096,
//!   "arguments": ["row_offsets", "columns", "values", "B", "C", "num_rows", "dense_cols"] }
//! ```

use serde::Deserialize;

use super::expression::{Expression, Size, Sizes};
use super::rule_error::{RuleError, on_a_line, shortened};
use super::words::is_name;
use crate::run::device::Geometry;

/// How a kernel is launched, whatever the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRule {
    kernel: Option<String>,
    /// Arguments of the template that the kernel is.
    template: Option<String>,
    grid: [Expression; 3],
    block: [Expression; 3],
    shared: Expression,
    arguments: Option<Vec<String>>,
    /// What stands between the angle brackets, where it is a comment's.
    configuration: Option<String>,
}

/// CUDA's limits, of every device.
const MOST_BLOCKS: [u64; 3] = [i32::MAX as u64, 65_535, 65_535];
const MOST_THREADS: [u64; 3] = [1024, 1024, 64];
const MOST_THREADS_OF_A_BLOCK: u64 = 1024;
/// More than any device has.
const MOST_SHARED: u64 = 1 << 30;

impl LaunchRule {
    /// Reads the text after `// launch:`.
    ///
    /// # Errors
    /// When it is no launch in CUDA's notation.
    pub fn from_comment(text: &str) -> Result<Self, RuleError> {
        let form = || RuleError::Form { found: shortened(text) };
        let (kernel, rest) = text.split_once("<<<").ok_or_else(form)?;
        let (configuration, rest) = rest.split_once(">>>").ok_or_else(form)?;
        let (kernel, template) = named_kernel(kernel).ok_or_else(form)?;
        let rest = rest.trim();
        let rest = rest.strip_suffix(';').unwrap_or(rest).trim_end();
        let arguments = match rest {
            "" => None,
            list => Some(parenthesised(list).ok_or_else(form)?),
        };
        let configured = elements(configuration);
        let (grid, block, shared) = match configured.as_slice() {
            [grid, block] => (grid, block, "0"),
            [grid, block, shared] => (grid, block, *shared),
            _ => return Err(form()),
        };
        let list = |text: &str| elements(text).iter().map(|one| one.trim().to_owned()).collect();
        Ok(Self {
            kernel: kernel.map(str::to_owned),
            template: template.map(str::to_owned),
            grid: extents(dimensions(grid).into_iter())?,
            block: extents(dimensions(block).into_iter())?,
            shared: Expression::parse(shared)?,
            arguments: arguments.map(list),
            configuration: Some(on_a_line(configuration)),
        })
    }

    /// Reads a launch description in JSON.
    pub(super) fn from_json(json: &str) -> Result<Self, RuleError> {
        let Description { kernel, grid, block, shared, arguments } =
            serde_json::from_str(json).map_err(|error| RuleError::json(&error))?;
        let shared = shared.unwrap_or(Extent::Number(0)).text();
        let kernel = kernel.as_deref();
        // What is no name is that of no kernel, which is told later.
        let (kernel, template) = kernel.and_then(named_kernel).unwrap_or((kernel, None));
        Ok(Self {
            kernel: kernel.map(str::to_owned),
            template: template.map(str::to_owned),
            grid: extents(grid.texts().iter().map(String::as_str))?,
            block: extents(block.texts().iter().map(String::as_str))?,
            shared: Expression::parse(&shared)?,
            arguments,
            configuration: None,
        })
    }

    /// What each parameter is given, where it is said.
    pub(super) fn arguments(&self) -> Option<&[String]> {
        self.arguments.as_deref()
    }

    /// Whether the grid, the block or the shared memory depends on a size.
    pub(super) fn depends_on(&self, size: Size) -> bool {
        let extents = self.grid.iter().chain(&self.block).chain([&self.shared]);
        extents.into_iter().any(|extent| extent.depends_on(size))
    }

    /// Whether the grid has as many blocks in a direction as a size says.
    pub(super) fn has_blocks_of(&self, size: Size) -> bool {
        self.grid.contains(&Expression::Size(size))
    }

    /// What to write for the parameters of `kernel` to be given `arguments`.
    pub(super) fn advice(rule: Option<&Self>, kernel: &str, arguments: &[&str]) -> String {
        let template = rule.and_then(Self::template);
        let instance = template.map_or_else(String::new, |template| format!("<{template}>"));
        let arguments_of = arguments.join(", ");
        let comment = |configuration: &str| {
            format!("`// launch: {kernel}{instance}<<<{configuration}>>>({arguments_of})`")
        };
        match rule {
            None => comment("ceil(num_rows / 256), 256"),
            Some(Self { configuration: Some(configuration), .. }) => comment(configuration),
            Some(Self { configuration: None, .. }) => {
                format!("`\"arguments\": [\"{}\"]` in the .json file", arguments.join("\", \""))
            }
        }
    }

    /// The kernel that is launched, where it is said.
    pub(super) fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// The arguments of the template that it is, where they are said.
    pub(super) fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// The launch for some sizes.
    ///
    /// # Errors
    /// When an extent is none that a device takes.
    pub fn geometry(&self, sizes: Sizes) -> Result<Geometry, RuleError> {
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

/// The name of a kernel, if there is any, and the arguments of the template that it is.
pub(super) fn named_kernel(text: &str) -> Option<(Option<&str>, Option<&str>)> {
    let text = text.trim();
    let (name, template) = match text.split_once('<') {
        Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix('>')?)),
        None => (text, None),
    };
    let name = Some(name).filter(|name| !name.is_empty());
    let is_whole = name.is_none_or(|name| {
        let parts = name.strip_prefix("::").unwrap_or(name).split("::");
        parts.into_iter().all(|part| !part.is_empty() && part.chars().all(is_name))
    });
    (is_whole && (name.is_some() || template.is_none())).then_some((name, template))
}

/// What stands between the parentheses that a text begins and ends with.
pub(super) fn parenthesised(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')')
}

/// The extents of `dim3(a, b, c)` or `a`.
fn dimensions(text: &str) -> Vec<&str> {
    let inside = text.trim().strip_prefix("dim3").and_then(|rest| parenthesised(rest.trim_start()));
    inside.map_or_else(|| vec![text], elements)
}

/// The parts of `a, b, c`; none of an empty text. What stands in parentheses is not split.
pub(super) fn elements(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut depth = 0usize;
    let is_separator = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_separator).collect()
}

/// One to three extents; those left out are 1.
fn extents<'t>(texts: impl Iterator<Item = &'t str>) -> Result<[Expression; 3], RuleError> {
    let mut texts = texts;
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
    arguments: Option<Vec<String>>,
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
