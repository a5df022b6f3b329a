//! Sources that reach for files.
//!
//! NVRTC opens whatever `#include` names, in the file system of the process, and quotes what does
//! not compile in its log: `#include "/etc/passwd"` shows the first line of it. Its
//! `--no-source-include` does not hold for absolute paths. So sources with such a directive are
//! refused before NVRTC sees them. `__has_include` is left: it tells whether a file exists, and no
//! more.

/// Whether `source` has an `#include` directive in any spelling, or what might be one.
///
/// Comments and strings are not told apart, because mistaking code for one of them would let a
/// directive pass. What is refused needlessly is the word after `#`, `%:` or the end of a comment.
pub(crate) fn has_include(source: &str) -> bool {
    // The compiler joins lines that end in a backslash before all else.
    let joined = source.replace("\\\r\n", "").replace("\\\n", "");
    joined.match_indices("include").any(|(at, _)| {
        let before = joined.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '\x0b');
        // `%:` is another spelling of `#`, and a comment may stand behind either.
        ["#", "%:", "??=", "*/"].iter().any(|mark| before.ends_with(mark))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_seen() {
        // All but the one with trigraphs were seen to read the file.
        for directive in [
            "#include \"f\"",
            "int x;\n  #  include <f>",
            "#define F \"f\"\n#include F",
            "#include_next \"f\"",
            "%:include \"f\"",
            "??=include \"f\"",
            "#in\\\nclude \"f\"",
            "#in\\\r\nclude \"f\"",
            "#\\\n\\\ninclude \"f\"",
            "#\rinclude \"f\"",
            "#\x0binclude \"f\"",
            "#\x0cinclude \"f\"",
            "#/* a */include \"f\"",
            "#/* a\nb *\\\n/ include \"f\"",
            "const char* s = \"/*\";\n#include \"f\"",
        ] {
            assert!(has_include(directive), "{directive:?}");
        }
    }

    #[test]
    fn the_word_alone_is_no_directive() {
        for source in [
            "",
            "// Rows include the last.\n#pragma unroll",
            "int include = 1;",
            "#if __has_include(<f>)\n#endif",
        ] {
            assert!(!has_include(source), "{source:?}");
        }
    }
}
