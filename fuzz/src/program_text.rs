//! Text of programs: what is read prints as text, and goes through tokens, that read the same.

use sparserl_core::language::{Program, TextError};

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Program::parse(text) {
        Ok(program) => {
            let printed = program.to_string();
            let again = Program::parse(&printed).unwrap();
            assert_eq!(again, program);
            assert_eq!(again.to_string(), printed);
            assert_eq!(Program::from_tokens(program.task, &program.tokens()), Ok(program));
        }
        Err(error) => {
            let (TextError::Version { line, .. }
            | TextError::Task { line, .. }
            | TextError::Word { line, .. }
            | TextError::Block { line, .. }
            | TextError::Field { line, .. }
            | TextError::Panel { line, .. }
            | TextError::Program { line, .. }) = error;
            assert!((1..=text.lines().count().max(1)).contains(&line), "{error}");
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}
