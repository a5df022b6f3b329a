//! Of the corpus as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sparserl_core::matrix::{Csr, generate, market};

use super::*;

const SMALL: Corpus = Corpus {
    seed: 7,
    share_of_real: 0.5,
    largest_nnz: 20_000,
    share_of_large: 0.1,
    smallest_nnz: 1_000,
};

/// Of the matrices of the first recipes of [`SMALL`] without real ones, as they were first made.
const HASHES: [u64; 24] = [
    0xa091_8f6f_fddb_7087,
    0x1443_48db_8832_7a87,
    0x9a84_9f99_7fab_f77d,
    0x0400_2661_3690_f393,
    0x3760_23ad_63e7_7357,
    0xdb99_d45b_98aa_9efb,
    0xe2e9_1eff_e7ed_971e,
    0x79e0_1ef5_f711_0f9b,
    0x81d3_8401_33c6_3c5b,
    0x7c0c_8fef_3d6f_99e9,
    0x7b45_e6da_3d73_c3c5,
    0xd465_ed1e_40b8_0fd0,
    0xf513_9591_61f1_dc25,
    0xd18a_d541_6a92_7a30,
    0xafea_1ecd_d781_c9e6,
    0x9d33_8473_78bc_a4d4,
    0x8fd5_886f_45a4_bd62,
    0x9ace_60fc_6ee3_42e4,
    0x0041_d096_ec57_2a41,
    0xb759_e4b4_673b_a0e2,
    0x57c3_9253_3c5c_c3ed,
    0xce9f_476b_47ba_94d1,
    0xfe91_ddd7_514e_cbd6,
    0x9f0b_fb9e_2897_8ac2,
];

fn store(folder: &Path, name: &str, matrix: &Csr<f64>) {
    let mut text = String::new();
    market::write(matrix.view(), &mut text).unwrap();
    let file = File::create(folder.join(format!("{name}.mtx.gz"))).unwrap();
    let mut encoder = GzEncoder::new(file, Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
}

/// A folder of a few matrices, with a manifest.
fn folder() -> (tempfile::TempDir, RealMatrices) {
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = "name\tdomain\trows\tcols\tother\tnnz_expanded\n".to_owned();
    for (name, domain, matrix) in [
        ("grid", "heat", generate::stencil5(30, 20)),
        ("rod", "heat", generate::banded(200, 1, 1)),
        ("friends", "circuit", generate::rmat(8, 8, 3)),
        ("dlmc_tf_mag_0.9_ffn_conv1", "pruned", generate::uniform(64, 32, 4, 4)),
        ("dlmc_tf_l0_0.8_q", "pruned", generate::uniform(32, 32, 6, 5)),
        ("large", "heat", generate::banded(9_000, 2, 6)),
    ] {
        store(folder.path(), name, &matrix);
        let (rows, cols, nnz) = (matrix.rows(), matrix.cols(), matrix.nnz());
        manifest += &format!("{name}\t{domain}\t{rows}\t{cols}\t-\t{nnz}\n");
    }
    manifest += "elsewhere\theat\t9\t9\t-\t9\n";
    fs::write(folder.path().join("MANIFEST.tsv"), manifest).unwrap();
    let real = RealMatrices::open(folder.path()).unwrap();
    (folder, real)
}

#[test]
fn recipes_make_matrices_within_their_limits() {
    let (_folder, real) = folder();
    for real in [&RealMatrices::none(), &real] {
        let mut families = BTreeSet::new();
        for index in 0..500 {
            let recipe = SMALL.recipe(index, real);
            let size = recipe.size().unwrap();
            let matrix = recipe.build(real).unwrap_or_else(|error| panic!("{recipe}: {error}"));
            assert!(matrix.rows() > 0 && matrix.cols() > 0 && matrix.nnz() > 0, "{recipe}");
            let nnz = matrix.nnz() as u64;
            assert!(nnz <= size.nnz && size.nnz <= 20_000, "{nnz}: {recipe}");
            let lines = (matrix.rows() as u64, matrix.cols() as u64);
            assert!(lines.0 <= size.rows && lines.1 <= size.cols, "{lines:?}: {recipe}");
            families.extend(recipe.origins().into_iter().map(|(family, _)| family.to_owned()));
        }
        // All generated ones, and those of the folder whose matrices are not too large.
        assert_eq!(families.len(), 24 + if real.all().is_empty() { 0 } else { 4 });
    }
}

#[test]
fn recipes_are_what_their_text_says() {
    let (_folder, real) = folder();
    for index in 0..500 {
        let recipe = SMALL.recipe(index, &real);
        let text = recipe.to_string();
        assert!(!text.contains('\n'));
        assert_eq!(text.parse::<Recipe>().unwrap(), recipe, "{text}");
    }
    let error = "{}".parse::<Recipe>().unwrap_err().to_string();
    assert!(error.starts_with("not a recipe: missing field"), "{error}");
}

#[test]
fn the_same_recipes_make_the_same_matrices_for_ever() {
    let none = RealMatrices::none();
    let hash = |matrix: &Csr<f64>| {
        let view = matrix.view();
        let offsets = (0..=view.rows()).map(|row| view.offsets().at(row) as u64);
        let columns = view.columns().iter().map(|&col| u64::from(col));
        let values = view.values().iter().map(|value| value.to_bits());
        offsets.chain(columns).chain(values).fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| {
            (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let hashes: Vec<u64> =
        (0..24).map(|index| hash(&SMALL.recipe(index, &none).build(&none).unwrap())).collect();
    assert_eq!(hashes, HASHES, "{hashes:#x?}");
}

#[test]
fn seeds_and_numbers_decide() {
    let (_folder, real) = folder();
    let texts = |corpus: &Corpus, indices: &mut dyn Iterator<Item = u64>| -> Vec<String> {
        indices.map(|index| corpus.recipe(index, &real).to_string()).collect()
    };
    let forward = texts(&SMALL, &mut (0..200));
    let mut backward = texts(&SMALL, &mut (0..200).rev());
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(forward.iter().collect::<BTreeSet<_>>().len(), 200);
    let other = texts(&Corpus { seed: 8, ..SMALL }, &mut (0..200));
    assert!(forward.iter().zip(&other).all(|(one, other)| one != other));
}

#[test]
fn real_matrices_come_first_and_then_what_is_made_of_them() {
    let (_folder, real) = folder();
    let count = real.all().len() as u64;
    let recipes = Recipes::of_real_first(&real, Corpus { share_of_real: 0.0, ..SMALL }, count + 40);
    assert_eq!(recipes.count(), count + 40);
    let first: Vec<Recipe> = (0..count).filter_map(|number| recipes.recipe(number)).collect();
    for (recipe, matrix) in first.iter().zip(real.all()) {
        assert_eq!(recipe.pattern, Pattern::of(matrix.base()));
    }
    let made: Vec<Recipe> = (count..).map_while(|number| recipes.recipe(number)).collect();
    assert_eq!(made.len(), 40);
    assert!(made.iter().all(uses_real));
    let mut all = first.iter().chain(&made);
    assert!(all.all(|recipe| matches!(recipe.values, Values::Random { .. })));
    assert!(made.iter().any(|recipe| !recipe.pattern.steps.is_empty()));
    let steps = [Step::PermuteRows { seed: 3 }];
    let permuted = recipes.changed_by(&steps);
    for (number, recipe) in (0..).zip(&first) {
        let changed = permuted.recipe(number).unwrap();
        assert_eq!(
            (&changed.pattern.base, &changed.values),
            (&recipe.pattern.base, &recipe.values)
        );
        assert_eq!(changed.pattern.steps, steps);
    }
    assert_eq!(permuted.recipe(count).as_ref(), made.first());
    // All of them, however few are asked for.
    assert_eq!(Recipes::of_real_first(&real, SMALL, 1).count(), count);
}

fn uses_real(recipe: &Recipe) -> bool {
    recipe.origins().into_iter().any(|(_, real)| real)
}

#[test]
fn sizes_and_shares_are_as_stated() {
    let (_folder, real) = folder();
    let corpus = Corpus { share_of_real: 0.3, ..Corpus::default() };
    let recipes: Vec<Recipe> = (0..3000).map(|index| corpus.recipe(index, &real)).collect();
    let share = |is: &dyn Fn(&Recipe) -> bool| {
        recipes.iter().filter(|recipe| is(recipe)).count() as f64 / 3000.0
    };
    let nnz = |recipe: &Recipe| recipe.size().unwrap().nnz;
    let of_real = share(&uses_real);
    assert!((of_real - 0.3).abs() < 0.03, "{of_real}");
    let quick = share(&|recipe| nnz(recipe) <= 1_000_000);
    assert!((0.88..0.94).contains(&quick), "{quick}");
    assert!(recipes.iter().any(|recipe| nnz(recipe) > 8_000_000));
    assert!(recipes.iter().any(|recipe| nnz(recipe) < 3_000));
    let random = share(&|recipe| matches!(recipe.values, Values::Random { .. }));
    assert!((random - 0.75).abs() < 0.03, "{random}");
    let aspect = |recipe: &Recipe| {
        let size = recipe.size().unwrap();
        size.cols as f64 / size.rows as f64
    };
    for (low, high) in [(0.0, 0.05), (0.9, 1.1), (20.0, f64::INFINITY)] {
        let share = share(&|recipe| (low..high).contains(&aspect(recipe)));
        assert!(share > 0.01, "{share} have from {low} to {high} columns a row");
    }
}

#[test]
fn no_family_has_two_roles() {
    let (_folder, real) = folder();
    let recipes: Vec<Recipe> = (0..2000).map(|index| SMALL.recipe(index, &real)).collect();
    let splits = [
        Split::NoReal,
        Split::LeaveOut(vec!["heat".to_owned()]),
        Split::LeaveOut(vec!["heat".to_owned(), "generated/rmat".to_owned()]),
        Split::Everything,
    ];
    for split in &splits {
        let mut roles: BTreeMap<&str, Role> = BTreeMap::new();
        let mut used = BTreeMap::new();
        for recipe in &recipes {
            let role = split.role(recipe);
            *used.entry(format!("{role:?}")).or_insert(0) += 1;
            for (family, is_real) in recipe.origins() {
                if role != Role::Unused {
                    assert_eq!(*roles.entry(family).or_insert(role), role, "{family}");
                }
                assert!(!(*split == Split::NoReal && is_real && role == Role::Train));
            }
        }
        match split {
            Split::Everything => assert_eq!(used.keys().collect::<Vec<_>>(), ["Train"]),
            Split::NoReal => {
                assert_eq!(roles["heat"], Role::Test);
                assert!(
                    roles["generated/mesh"] == Role::Validation
                        && roles["generated/rmat"] == Role::Train
                );
            }
            Split::LeaveOut(families) => {
                assert!(families.iter().all(|family| roles[family.as_str()] == Role::Test));
                assert_eq!(roles["circuit"], Role::Train);
                assert!(used["Unused"] > 0, "{used:?}");
            }
        }
    }
    let families: BTreeSet<String> = recipes
        .iter()
        .flat_map(|recipe| recipe.origins().into_iter().map(|(family, _)| family.to_owned()))
        .collect();
    assert!(VALIDATION.iter().all(|&family| families.contains(family)));
}

#[test]
fn real_matrices_are_of_their_domain_or_layer() {
    let (folder, real) = folder();
    let families: Vec<(&str, &str)> =
        real.all().iter().map(|matrix| (&*matrix.name, &*matrix.family)).collect();
    let expected = [
        ("dlmc_tf_l0_0.8_q", "pruned: q"),
        ("dlmc_tf_mag_0.9_ffn_conv1", "pruned: ffn_conv1"),
        ("friends", "circuit"),
        ("grid", "heat"),
        ("large", "heat"),
        ("rod", "heat"),
    ];
    assert_eq!(families, expected);
    let recipe = real.all()[3].recipe();
    assert_eq!(recipe.build(&real).unwrap(), generate::stencil5(30, 20));
    assert_eq!(recipe.family(), "heat");

    fs::remove_file(folder.path().join("MANIFEST.tsv")).unwrap();
    let unlisted = RealMatrices::open(folder.path()).unwrap();
    let sizes = |real: &RealMatrices| -> Vec<Size> {
        real.all().iter().map(|matrix| matrix.size).collect()
    };
    assert_eq!(sizes(&unlisted), sizes(&real));
    assert_eq!(unlisted.all()[3].family, "grid");
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let (folder, real) = folder();
    let recipe = real.all()[3].recipe();
    let error = recipe.build(&RealMatrices::none()).unwrap_err().to_string();
    assert!(error.starts_with("no matrix grid in the corpus, which has generated"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = recipe.build(&RealMatrices::open(empty.path()).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("no matrix grid in {}", empty.path().display())));
    store(folder.path(), "grid", &generate::stencil5(3, 3));
    let error = recipe.build(&real).unwrap_err().to_string();
    assert!(error.starts_with("grid: 9 × 9 with 33 entries, but the recipe"), "{error}");

    let open = |text: &str| {
        fs::write(folder.path().join("MANIFEST.tsv"), text).unwrap();
        RealMatrices::open(folder.path()).unwrap_err().to_string()
    };
    assert!(open("").contains("MANIFEST.tsv:1: there is no header; expected"));
    assert!(open("name\tdomain\n").contains("MANIFEST.tsv:1: there is no column rows;"));
    let header = "name\tdomain\trows\tcols\tnnz_expanded\n";
    assert!(open(&format!("{header}grid\theat\t3\n")).contains(":2: cols is missing;"));
    assert!(open(&format!("{header}grid\theat\t3\tx\t4\n")).contains(":2: cols is no number: x"));
    let missing = folder.path().join("missing");
    let error = RealMatrices::open(&missing).unwrap_err().to_string();
    assert!(error.contains("name a folder of .mtx.gz files"), "{error}");

    let huge = Generator::Uniform { rows: u32::MAX, cols: u32::MAX, per_row: 9, seed: 1 };
    let pattern = Pattern::of(Base::Generated(huge));
    let recipe = Recipe { pattern, values: Values::Equal, largest_nnz: 1000 };
    let error = recipe.build(&real).unwrap_err().to_string();
    assert!(error.starts_with("up to 4294967295 × 4294967295 with 38654705655 entries"), "{error}");
    let none = Generator::Uniform { rows: 3, cols: 3, per_row: 0, seed: 1 };
    let recipe = Recipe { pattern: Pattern::of(Base::Generated(none)), ..recipe };
    assert!(
        recipe
            .build(&real)
            .unwrap_err()
            .to_string()
            .starts_with("generated/uniform: no entry comes out")
    );
}

#[test]
fn as_many_recipes_as_asked_for_are_aimed_at_a_million_entries_or_more() {
    let real = RealMatrices::none();
    let large = |share_of_large: f64| {
        let corpus = Corpus { share_of_real: 0.0, largest_nnz: 4_000_000, share_of_large, ..SMALL };
        (0..400)
            .filter(|&number| corpus.recipe(number, &real).size().unwrap().nnz > 700_000)
            .count()
    };
    let [few, most] = [0.1, 0.6].map(large);
    assert!((10..90).contains(&few) && (140..300).contains(&most), "{few}, {most}");
}

#[test]
fn nothing_smaller_is_aimed_at() {
    let real = RealMatrices::none();
    let large = |smallest_nnz: u64, share_of_large: f64| {
        let corpus = Corpus {
            share_of_real: 0.0,
            smallest_nnz,
            largest_nnz: 4_000_000,
            share_of_large,
            ..SMALL
        };
        let sizes = (0..200).map(|number| corpus.recipe(number, &real).size().unwrap());
        // What could be too large is drawn again, of half the size.
        sizes.filter(|size| size.nnz > 1_700_000).count()
    };
    let [few, most, all] =
        [(1_000, 1.0), (3_500_000, 1.0), (3_500_000, 0.1)].map(|(s, l)| large(s, l));
    assert!(few < 140 && most > 170 && all > 170, "{few}, {most}, {all}");
}
