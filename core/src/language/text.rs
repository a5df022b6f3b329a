use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use super::{
    LANGUAGE_VERSION, Layout, Node, OLDEST_VERSION, Order, Program, ProgramError, SplitRule, Token,
    Word,
};
use crate::layout::{PANEL, VECTOR};
use crate::quoted::quoted;

/// A program file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// The file does not begin like a program.
    #[error("line {line}: expected `sparserl {LANGUAGE_VERSION}`, found `{found}`")]
    Version {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// The task is not one of ours.
    #[error(
        "line {line}: expected `spmv TYPES` or `spmm COLUMNS TYPES`, TYPES being f32, f64, f32/f64/f64, f16 or bf16; found `{found}`"
    )]
    Task {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// The program does not begin with the threads of a block.
    #[error("line {line}: expected `block THREADS`, found `{found}`")]
    Block {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// A word outside the vocabulary.
    #[error("line {line}: `{found}` is not a word or number of the language")]
    Word {
        /// Line, from 1.
        line: usize,
        /// The word.
        found: String,
    },
    /// A field is missing, unknown or out of order.
    #[error("line {line}: expected `{expected}=…`, found `{found}`")]
    Field {
        /// Line, from 1.
        line: usize,
        /// Name of the field that comes next.
        expected: &'static str,
        /// What stands there; nothing at the end of the text.
        found: String,
    },
    /// A width that no panel has.
    #[error("line {line}: expected `panel=64` or `panel=32`, found `{found}`")]
    Panel {
        /// Line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// The words do not form a program.
    #[error("line {line}: {error}")]
    Program {
        /// Line of the word, from 1.
        line: usize,
        /// What is wrong.
        error: ProgramError,
    },
}

/// Opens a program's body.
const BLOCK: &str = "block";

/// Names of the fields that follow a word, in the order of its tokens.
fn fields_of(token: Token) -> &'static [&'static str] {
    match token {
        Token::Word(Word::SplitLength) => &["threshold"],
        Token::Word(Word::SplitNonzeros) => &["eighths"],
        Token::Word(Word::Sort) => &["window"],
        Token::Word(word) => Layout::fields_of(word),
        Token::Number(_) => &[],
    }
}

impl Program {
    /// Reads a program from its text, the `.skl` format. Words may stand on any lines, fields in
    /// the order in which they are printed; `#` starts a comment.
    ///
    /// # Errors
    /// The first word that does not fit, with its line.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut words = text
            .lines()
            .zip(1..)
            .flat_map(|(text, line)| {
                let words = text.split('#').next().unwrap_or("").split_whitespace();
                words.map(move |word| (line, word))
            })
            .peekable();
        let last = text.lines().count().max(1);

        // Version and task each stand on a line, or on one with what comes next.
        let mut opening = |is_of_it: &dyn Fn(usize, &str) -> bool| {
            let line = words.peek().map_or(last, |&(line, _)| line);
            let mut found = Vec::new();
            while let Some((_, word)) =
                words.next_if(|&(at, word)| at == line && is_of_it(found.len(), word))
            {
                found.push(word);
            }
            (line, found.join(" "))
        };
        let (line, found) = opening(&|index, _| index < 2);
        let versions = OLDEST_VERSION..=LANGUAGE_VERSION;
        let Some(version) = versions.into_iter().find(|v| found == format!("sparserl {v}")) else {
            return Err(TextError::Version { line, found: quoted(found.as_bytes()) });
        };
        let (line, found) = opening(&|_, word| word != BLOCK);
        let task =
            found.parse().map_err(|_| TextError::Task { line, found: quoted(found.as_bytes()) })?;

        let mut tokens = Vec::new();
        let mut token_lines = Vec::new();
        // Names of the fields that come next; `block` is a word of its own for the reader's sake.
        let mut fields: &[&str] = &[];
        for (i, (line, word)) in words.enumerate() {
            let found = || quoted(word.as_bytes());
            if i == 0 {
                if word != BLOCK {
                    return Err(TextError::Block { line, found: found() });
                }
                continue;
            }
            // In version 2, `dia` had a thread for each row and no field to say so.
            if let (2, Some((&"rows", rest))) = (version, fields.split_first()) {
                fields = rest;
                tokens.push(Token::Number(1));
                token_lines.push(line);
            }
            let text = match fields.split_first() {
                None => word,
                Some((&expected, rest)) => {
                    let (name, value) = word.split_once('=').unwrap_or_default();
                    let filled = |token| Layout::field_of(expected, token);
                    let field = value.parse().map_or(expected, filled);
                    if name != field {
                        let found = found();
                        return Err(match (expected, name) {
                            (VECTOR, PANEL) => TextError::Panel { line, found },
                            _ => TextError::Field { line, expected, found },
                        });
                    }
                    if field == expected {
                        fields = rest;
                    }
                    value
                }
            };
            let token = text
                .parse()
                .map_err(|_| TextError::Word { line, found: quoted(text.as_bytes()) })?;
            if text.len() == word.len() {
                fields = fields_of(token);
            }
            tokens.push(token);
            token_lines.push(line);
        }
        if let Some(&expected) = fields.first() {
            return Err(TextError::Field { line: last, expected, found: String::new() });
        }
        Self::from_tokens(task, &tokens).map_err(|error| {
            let position = match error {
                ProgramError::Unexpected { position, .. }
                | ProgramError::Incomplete { position, .. }
                | ProgramError::Trailing { position, .. } => position,
            };
            TextError::Program { line: token_lines.get(position).copied().unwrap_or(last), error }
        })
    }
}

impl fmt::Display for Program {
    /// The program's text: [`Program::parse`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sparserl {LANGUAGE_VERSION}")?;
        writeln!(f, "{}", self.task)?;
        writeln!(f, "{BLOCK} {}", self.block.threads())?;
        write_node(&self.body, 0, f)
    }
}

fn write_node(node: &Node, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{:indent$}", "", indent = 2 * depth)?;
    match node {
        Node::Split { rule, low, high } => {
            match rule {
                SplitRule::Length { threshold } => {
                    writeln!(f, "split-length threshold={threshold}")?;
                }
                SplitRule::Nonzeros { eighths } => {
                    writeln!(f, "split-nonzeros eighths={eighths}")?;
                }
            }
            write_node(low, depth + 1, f)?;
            write_node(high, depth + 1, f)
        }
        Node::Part(part) => {
            match part.order {
                Order::Keep => write!(f, "keep")?,
                Order::Sort { window } => write!(f, "sort window={window}")?,
            }
            write!(f, " {}", part.layout.word().text())?;
            for (field, token) in part.layout.fields() {
                write!(f, " {field}={token}")?;
            }
            writeln!(f)
        }
    }
}
