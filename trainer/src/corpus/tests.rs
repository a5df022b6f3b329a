//! Of the corpus as a whole.

use super::*;

const SMALL: Corpus = Corpus { seed: 7, share_of_real: 0.5, largest_nnz: 20_000 };

#[test]
fn recipes_make_matrices_within_their_limits() {
    let none = RealMatrices::none();
    for index in 0..400 {
        let recipe = SMALL.recipe(index, &none);
        assert!(!recipe.uses_real() && recipe.largest_nnz == 20_000);
        let size = recipe.size().unwrap();
        let matrix = recipe.build(&none).unwrap_or_else(|error| panic!("{recipe}: {error}"));
        assert!(matrix.rows() > 0 && matrix.cols() > 0 && matrix.nnz() > 0, "{recipe}");
        assert!(matrix.nnz() as u64 <= size.nnz && size.nnz <= 20_000, "{recipe}");
        assert!(matrix.rows() as u64 <= size.rows && matrix.cols() as u64 <= size.cols);
    }
}

#[test]
fn recipes_are_what_their_text_says() {
    for index in 0..400 {
        let recipe = SMALL.recipe(index, &RealMatrices::none());
        let text = recipe.to_string();
        assert!(!text.contains('\n'));
        assert_eq!(text.parse::<Recipe>().unwrap(), recipe, "{text}");
    }
    let error = "{}".parse::<Recipe>().unwrap_err().to_string();
    assert!(error.starts_with("not a recipe: missing field"), "{error}");
}
