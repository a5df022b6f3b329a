//! Stores that are cut, changed or lie: a search does without them, and a line says why.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;

use super::tests::a_scope;
use super::*;

/// What becomes of a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Byte(Index, u8),
    /// As a page of the file that is lost.
    Zeros(Index, usize),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match *self {
            _ if bytes.is_empty() => {}
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Byte(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            Self::Zeros(at, count) => {
                let at = at.index(bytes.len());
                bytes.iter_mut().skip(at).take(count).for_each(|byte| *byte = 0);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (any::<Index>(), 1_usize..5000).prop_map(|(at, count)| Damage::Zeros(at, count)),
    ]
}

fn winner(program: &str) -> Winner {
    Winner {
        matrix: "a.mtx".to_owned(),
        features: vec![1.0, 2.0],
        programs: vec![WinningProgram { program: program.to_owned(), seconds: 1e-6 }],
        reference_seconds: Some(2e-6),
    }
}

const PROGRAM: &str = "sparserl 7\nspmv f32\nblock 256\nkeep csr index=u32 values=plain \
                       cache=cached vector=1 lanes=4 unroll=1\n";

/// What using a store may come to: it works, or a line says why not and what to do.
fn check_use(store: &WinnerStore) -> Result<(), TestCaseError> {
    let looked = store.nearest(a_scope(), &[1.0, 2.0], 8).map(|_| ());
    let kept = store.keep(a_scope(), "a", &winner(PROGRAM));
    for error in [looked.err(), kept.err()].into_iter().flatten() {
        let line = error.to_string();
        prop_assert_eq!(line.lines().count(), 1, "{}", line);
        prop_assert!(line.contains("--store") || matches!(error, WinnersError::Io(_)), "{}", line);
    }
    Ok(())
}

/// A store of forty matrices.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let store = WinnerStore { path: folder.path().join("whole.redb") };
    for number in 0..40 {
        store.keep(a_scope(), &number.to_string(), &winner(PROGRAM)).unwrap();
    }
    fs::read(store.path()).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_damaged_store_is_done_without(damages in prop::collection::vec(damage(), 1..6)) {
        panics::hide_caught();
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = WHOLE.clone();
        for damage in damages {
            damage.apply(&mut bytes);
        }
        let path = folder.path().join("damaged.redb");
        fs::write(&path, bytes).unwrap();
        check_use(&WinnerStore { path })?;
    }

    /// A store that is whole, but holds what nobody wrote.
    #[test]
    fn a_store_that_lies_is_done_without(value in lie()) {
        let folder = tempfile::tempdir().unwrap();
        let store = WinnerStore { path: folder.path().join("lies.redb") };
        store.keep(a_scope(), "a", &winner(PROGRAM)).unwrap();
        let database = Database::create(store.path()).unwrap();
        let write = database.begin_write().unwrap();
        let key = format!("{}a", a_scope().prefix());
        write.open_table(WINNERS).unwrap().insert(key.as_str(), value.as_slice()).unwrap();
        write.commit().unwrap();
        drop(database);
        check_use(&store)?;
    }
}

/// The value of a winner, more or less.
fn lie() -> impl Strategy<Value = Vec<u8>> {
    let whole = serde_json::to_vec(&winner(PROGRAM)).unwrap();
    let changed = prop::collection::vec(damage(), 1..4).prop_map(move |damages| {
        let mut bytes = whole.clone();
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        bytes
    });
    let wrong =
        (any::<[f32; 2]>(), any::<f64>(), ".{0,40}").prop_map(|(features, seconds, text)| {
            let programs = vec![WinningProgram { program: text, seconds }];
            let features = features.to_vec();
            serde_json::to_vec(&Winner { features, programs, ..winner(PROGRAM) }).unwrap()
        });
    prop_oneof![changed, wrong, prop::collection::vec(any::<u8>(), 0..64)]
}
