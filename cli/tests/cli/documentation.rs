//! What shells and readers of manuals are given.

use crate::support::Place;

#[test]
fn shells_and_manuals_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.succeed(&format!("completions {shell}"));
        for word in ["gen", "verify", "setup", "no-compile"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    assert_eq!(place.succeed("man pages/man1"), "");
    let names = place.names("pages/man1");
    for name in ["sparserl-cli.1", "sparserl-cli-gen.1", "sparserl-cli-verify.1"] {
        assert!(names.iter().any(|other| other == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("serve") || name.contains("help")), "{names:?}");
    let page = place.text("pages/man1/sparserl-cli-gen.1");
    assert!(page.contains("\\-\\-no\\-compile"), "{page}");
}
