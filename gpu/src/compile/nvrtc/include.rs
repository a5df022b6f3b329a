//! Sources that reach for files.
//!
//! NVRTC opens whatever `#include` names, in the file system of the process, and quotes what does
//! not compile in its log: `#include "/etc/passwd"` shows the first line of it. Its
//! `--no-source-include` does not hold for absolute paths. So sources with such a directive are
//! refused before NVRTC sees them. `__has_include` is left: it tells whether a file exists, and no
//! more.

/// Whether `source` has an `#include` directive in any spelling, or what might be one.
///
/// Comments are left out only where they are told for certain, because mistaking code for one of
/// them would let a directive pass: wherever compilers may read otherwise than this does, the word
/// after `#`, `%:` or the end of a comment is enough.
pub(crate) fn has_include(source: &str) -> bool {
    // The compiler joins lines that end in a backslash before all else.
    let joined = source.replace("\\\r\n", "").replace("\\\n", "");
    has_word(&joined) && without_comments(source, &joined).is_none_or(|code| has_directive(&code))
}

/// Whether the word stands behind what might make it a directive, comments and strings included.
fn has_word(joined: &str) -> bool {
    joined.match_indices(INCLUDE).any(|(at, _)| {
        let before = joined.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(is_blank);
        // `%:` is another spelling of `#`, and a comment may stand behind either.
        MARKS.iter().chain(&["*/"]).any(|mark| before.ends_with(mark))
    })
}

/// Whether a line of code begins with the directive.
fn has_directive(code: &str) -> bool {
    code.lines().any(|line| {
        let line = line.trim_start_matches(is_blank);
        let mut behind = MARKS.iter().filter_map(|mark| line.strip_prefix(mark));
        behind.any(|rest| rest.trim_start_matches(is_blank).starts_with(INCLUDE))
    })
}

const INCLUDE: &str = "include";
/// Spellings of what begins a directive.
const MARKS: [&str; 3] = ["#", "%:", "??="];

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\x0b'
}

/// The joined lines of a source with a blank for each comment; nothing in doubt.
fn without_comments(source: &str, joined: &str) -> Option<String> {
    // What some compilers take for the end of a line and some do not, what ends a C string, and
    // trigraphs, of which one is a backslash.
    let is_unclear = |c| matches!(c, '\0' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let returns = source.matches('\r').count();
    let is_unclear = source.contains(is_unclear)
        || source.contains("??")
        // What stands in angle brackets behind these is a name, whatever is in it.
        || ["__has_", "embed", "import"].iter().any(|word| joined.contains(word))
        || returns != source.matches("\r\n").count()
        // Some join lines whose backslash has blanks behind it.
        || joined.lines().any(|line| line.trim_end_matches(is_blank).ends_with('\\'));
    if is_unclear {
        return None;
    }
    let mut code = String::with_capacity(joined.len());
    let mut rest = joined;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            code.push(' ');
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            code.push(' ');
            // One that is not closed is an error of which nobody knows where it ends.
            2 + rest.get(2..)?.find("*/")? + 2
        } else {
            let length = match first {
                // In a raw string lines are not joined.
                '"' if code.ends_with('R') => return None,
                // It may separate digits, or be that of a word in a text that is left out.
                '\'' if code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => return None,
                '"' | '\'' => quoted(rest, first)?,
                _ => first.len_utf8(),
            };
            code.push_str(rest.get(..length)?);
            length
        };
        rest = rest.get(length..)?;
    }
    Some(code)
}

/// Length of the string or character that a text begins with; nothing where its line does not end
/// it.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use sparserl_core::random::SplitMix64;

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
            "/* a */ # /* b */ include \"f\"",
            "const char* s = \"/*\";\n#include \"f\"",
            "const char* s = \"\\\"/*\";\n#include \"f\" // */",
            "char c = '\"'; /* \" */\n#include \"f\"",
            "char c = '\\''; // '\n#include \"f\"",
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
            "// #include <f>\nint x;",
            "/* as by\n#include <f>\n*/ int x;",
            "// one \\\n#include <f>\nint x;",
            "const char* s = \"\\\n#include <f>\"; // #include",
            "char c = '\"'; /* '\n#include <f>\n' */",
        ] {
            assert!(!has_include(source), "{source:?}");
        }
    }

    #[test]
    fn in_doubt_a_comment_is_none() {
        for source in [
            "// a ??/\n#include <f>",
            "// a\r#include <f>",
            "// a \\ \n#include <f>",
            "// a\0\n// #include <f>",
            "const char* s = R\"(/*)\";\n// #include <f>",
            "const char* s = u8R\\\n\"(/*)\";\n// #include <f>",
            "int x = 1'000'000; // #include <f>",
            "#error don't\n// #include <f>",
            "#error \" /*\n#include <f>\n// */",
            "/* #include <f>",
            "#if __has_include(</*>)\n#include <f>\n#endif // */",
            "#if __has_embed(</*>)\n#include <f>\n#endif // */",
        ] {
            assert!(has_include(source), "{source:?}");
        }
    }

    /// Pieces that begin and end outside of comments and strings, at the beginning of a line.
    const CLOSED: [&str; 12] = [
        "int x;\n",
        "// it's #include <f>\n",
        "/* \" ' // */\n",
        "/*\n#include <f>\n*/\n",
        "/**/ /*/ #include <f> */\n",
        "char a = '\\'', b = '\"';\n",
        "const char* s = \"/* // #include <f>\";\n",
        "const char* s = \"\\\\\"; // \\\n#include <f>\n",
        "#pragma unroll // \"\n",
        "x = a / b * c; /\\\n/ #include <f>\n",
        "y = u8\"'\";\n",
        "/\\\n* #include <f> *\\\n/\n",
    ];

    #[test]
    fn directives_are_seen_among_any_comments_and_strings_and_only_they() {
        let mut random = SplitMix64::new(3);
        for _ in 0..2000 {
            let mut pieces: Vec<&str> =
                (0..random.below(8)).map(|_| CLOSED[random.below(CLOSED.len())]).collect();
            let source = pieces.concat();
            assert!(!has_include(&source), "{source:?}");
            let directives =
                ["#include <f>\n", "/* a */ # /*\n*/ include <f>\n", "%:include <f>\n"];
            let directive = directives[random.below(directives.len())];
            pieces.insert(random.below(pieces.len() + 1), directive);
            let source = pieces.concat();
            assert!(has_include(&source), "{source:?}");
        }
    }

    #[test]
    fn no_text_panics_and_without_the_word_none_is_refused() {
        const PIECES: [&str; 18] = [
            "/", "*", "\"", "'", "\\", "\n", "\r", "#", "include", " ", "R", "(", ")", "??/", "%:",
            "é", "x", "1",
        ];
        let mut random = SplitMix64::new(5);
        for _ in 0..20_000 {
            let pieces = (0..random.below(12)).map(|_| PIECES[random.below(PIECES.len())]);
            let source: String = pieces.collect();
            let joined = source.replace("\\\r\n", "").replace("\\\n", "");
            assert!(!has_include(&source) || has_word(&joined), "{source:?}");
        }
    }
}
