//! What an error says to people.

use alloc::string::{String, ToString};
use core::error::Error;

/// An error and its causes in one line, each after what it caused. A cause that an error has named
/// itself is not named again.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !line.contains(&said) {
            line.push_str(": ");
            line.push_str(&said);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Fault {
        #[error("no such file")]
        Missing,
        #[error("cannot read `a`: {source}")]
        Said { source: Box<Fault> },
        #[error("loading")]
        Unsaid { source: Box<Fault> },
    }

    #[test]
    fn each_cause_is_named_once() {
        let said = Fault::Said { source: Box::new(Fault::Missing) };
        assert_eq!(with_causes(&said), "cannot read `a`: no such file");
        let unsaid = Fault::Unsaid { source: Box::new(said) };
        assert_eq!(with_causes(&unsaid), "loading: cannot read `a`: no such file");
    }
}
