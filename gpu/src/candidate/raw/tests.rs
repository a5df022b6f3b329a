use proptest::prelude::*;
use sparserl_core::matrix::generate::uniform;

use super::*;
use crate::run::device::Geometry;

const PAPER: &str = "const int* row_ptr, const int* col_idx, const float* values, const float* dense_matrix, float* output, int num_rows, int dense_cols";

fn source(parameters: &str) -> String {
    format!(
        "// launch: grid=num_rows/256 block=256\n__global__ void k({parameters}) {{ output[0] = 1; }}\n"
    )
}

fn roles(parameters: &str) -> Result<Vec<Role>, RawError> {
    Ok(RawKernel::parse(&source(parameters), None)?.roles().collect())
}

#[test]
fn parameters_are_known_by_their_names() {
    use Role::*;
    let usual = vec![RowOffsets, ColumnIndices, Values, Dense, Output, NumRows, DenseCols];
    for (parameters, expected) in [
        (PAPER, usual.clone()),
        ("int*rowptr,int*col_ind,float*vals,float*B,float*C,int m,int N", usual.clone()),
        (
            "const unsigned int * __restrict__ csr_row_ptr, const unsigned* __restrict columns, \
             const double *__restrict__ val, double const* x, double* __restrict__ y, const int rows, unsigned k",
            usual.clone(),
        ),
        (
            "const int row_offsets[], int cols[], float data[], float in[], float out[], int M, int K",
            usual.clone(),
        ),
        // By their places.
        ("int* a1, int* a2, float* a3, float* a4, float* a5, int a6, int a7", usual.clone()),
        ("int*, int*, float*, float*, float*, int, int", usual),
        ("float* y, const float* x", vec![Output, Dense]),
        (
            "int nnz, int num_cols, int num_rows, float* d_y, float* d_x, float* d_values, int* d_col_idx, int* d_row_ptr",
            vec![Nnz, NumCols, NumRows, Output, Dense, Values, ColumnIndices, RowOffsets],
        ),
        (
            "int rows, int cols, float* x, float* y, int* cols_, int* ptr",
            vec![NumRows, NumCols, Dense, Output, ColumnIndices, RowOffsets],
        ),
        ("float* x /* , int* nothing */, float* y = nullptr", vec![Dense, Output]),
    ] {
        assert_eq!(roles(parameters), Ok(expected), "{parameters}");
    }
}

#[test]
fn parameters_that_are_not_known_are_one_clear_error() {
    for (parameters, message) in [
        ("float* x, float* y, float* z", "what the parameter `z` is: call it one of values, "),
        ("float* x, float* y, int", "the parameter number 3 is"),
        ("float* x, float* out, float* y", "`out` and `y` both look like output"),
        ("float* x, int rows", "no parameter called output"),
        ("", "no parameter called dense_matrix"),
        ("float* x, half* y", "`half* y` has a type"),
        ("float* x, float& y", "`float& y` has a type"),
        ("float* x, float** y", "`float** y` has a type"),
        ("float* x, long long* row_ptr, float* y", "`long long* row_ptr` has a type"),
        ("float* x, float* y, size_t nnz", "`size_t nnz` has a type"),
        ("float* x, float* y, float alpha", "`float alpha` has a type"),
        ("float* x, std::vector<int> y", "`std::vector<int> y` has a type"),
        (",", "has a type"),
        // A name contradicts its place.
        (
            "int* a1, int* a2, float* a3, float* y, float* x, int a6, int a7",
            "what the parameter `a1`",
        ),
        ("int* a1, int* a2, float* a3, float* a4, float* a5, int a6", "what the parameter `a1`"),
    ] {
        let error = roles(parameters).unwrap_err().to_string();
        assert!(error.contains(message) && error.lines().count() == 1, "{parameters}: {error}");
    }
}

#[test]
fn c_linkage_is_added_where_it_is_missing() {
    let after = "void k(const float* x, float* y) { y[0] = x[0]; }";
    for (before, added) in [
        ("__global__ ", "extern \"C\" __global__ "),
        ("extern \"C\" __global__ ", "extern \"C\" __global__ "),
        ("extern  \"C\"\n__global__ ", "extern  \"C\"\n__global__ "),
        ("extern \"C++\" __global__ ", "extern \"C\" extern \"C++\" __global__ "),
        (
            "struct S { int extern_C; };\n  __global__ __launch_bounds__(256, 2) ",
            "struct S { int extern_C; };\n  extern \"C\" __global__ __launch_bounds__(256, 2) ",
        ),
        (
            "// extern \"C\" é\n/* \" */ __global__ ",
            "// extern \"C\" é\n/* \" */ extern \"C\" __global__ ",
        ),
        ("#define Q \"'\"\n__global__ ", "#define Q \"'\"\nextern \"C\" __global__ "),
        (
            "__device__ char c = '\"', d = '\\''; const int big = 1'000;\n__global__ ",
            "__device__ char c = '\"', d = '\\''; const int big = 1'000;\nextern \"C\" __global__ ",
        ),
        (
            "const char* s = R\"x(__global__ void no() \")x\";\n__global__ ",
            "const char* s = R\"x(__global__ void no() \")x\";\nextern \"C\" __global__ ",
        ),
        (
            "__global__ void k(const float*, float*);\n__global__ ",
            "extern \"C\" __global__ void k(const float*, float*);\nextern \"C\" __global__ ",
        ),
    ] {
        let source = format!("{before}{after}");
        let json = r#"{"grid": 1, "block": 32}"#;
        let kernel = RawKernel::parse(&source, Some(json)).unwrap();
        assert_eq!(kernel.source(), format!("{added}{after}"));
        assert_eq!(kernel.kernel(), "k");
    }
}

#[test]
fn the_kernel_is_the_only_one_or_the_one_that_is_named() {
    let two =
        "__global__ void one(float* x, float* y) {}\n__global__ void two(float* y, float* x) {}\n";
    let parse = |source: &str, kernel: &str| {
        let json = format!(r#"{{"kernel": {kernel}, "grid": 1, "block": 1}}"#);
        RawKernel::parse(source, Some(&json))
    };
    let named = parse(two, "\"two\"").unwrap();
    assert_eq!(named.kernel(), "two");
    assert_eq!(named.roles().collect::<Vec<_>>(), [Role::Output, Role::Dense]);
    assert!(named.source().contains("{}\nextern \"C\" __global__ void two"));
    assert!(named.source().starts_with("__global__ void one"));

    let text = |result: Result<RawKernel, RawError>| result.unwrap_err().to_string();
    assert!(text(parse(two, "null")).contains("several kernels (one, two)"));
    assert!(
        text(parse(two, "\"three\""))
            .contains("names the kernel `three`, but the source has one, two")
    );
    for nothing in [
        "",
        "int x;",
        "// __global__ void k(float* x, float* y) {}",
        "/* __global__ void k(float* x, float* y) {}",
        "const char* s = \"__global__ void k(float* x, float* y) {}\";",
        "#define K __global__ void k(float* x, \\\n  float* y) {}",
        "__global__ int x;",
        "__global__ void k(float* x",
        "my__global__ void k(float* x, float* y) {}",
    ] {
        assert_eq!(parse(nothing, "null"), Err(RawError::NoKernel), "{nothing}");
    }
    let template = "template <typename T>\n__global__ void k(T* x, T* y) {}";
    assert!(text(parse(template, "null")).contains("`k` is a template"));
    let again = "__global__ void k(float* x, float* y) {} __global__ void k(float* y, float* x) {}";
    assert!(text(parse(again, "null")).contains("more than once"));
}

#[test]
fn launches_are_read_from_comments_and_json() {
    let sizes = Sizes { num_rows: 1000, num_cols: 10, nnz: 5000, dense_cols: 33 };
    let geometry = |grid, block, dynamic_shared| Geometry { grid, block, dynamic_shared };
    for (text, expected) in [
        ("grid=(ceil(num_rows/256)) block=256 shared=0", geometry([4, 1, 1], [256, 1, 1], 0)),
        ("grid=num_rows block=32", geometry([1000, 1, 1], [32, 1, 1], 0)),
        ("block = (32, 4)  grid = (num_rows + 3) / 4", geometry([251, 1, 1], [32, 4, 1], 0)),
        (
            "kernel=k, grid=(num_rows/8, dense_cols/32, 1), block=(32, 8), shared=8*32*4",
            geometry([125, 2, 1], [32, 8, 1], 1024),
        ),
        ("grid=1,2,3 block=1", geometry([1, 2, 3], [1, 1, 1], 0)),
        ("grid=(nnz)/(256) block=256", geometry([20, 1, 1], [256, 1, 1], 0)),
    ] {
        let rule = LaunchRule::from_comment(text).unwrap();
        assert_eq!(rule.geometry(sizes), Ok(expected), "{text}");
    }
    for (json, expected) in [
        (
            r#"{"grid": ["ceil(num_rows/256)"], "block": [256], "shared": 0}"#,
            geometry([4, 1, 1], [256, 1, 1], 0),
        ),
        (
            r#"{"grid": "nnz", "block": 64, "shared": "dense_cols * 4"}"#,
            geometry([5000, 1, 1], [64, 1, 1], 132),
        ),
        (
            r#"{"kernel": "k", "grid": [2, 3, 4], "block": [8, 8, 16]}"#,
            geometry([2, 3, 4], [8, 8, 16], 0),
        ),
    ] {
        let rule = LaunchRule::from_json(json).unwrap();
        assert_eq!(rule.geometry(sizes), Ok(expected), "{json}");
    }
}

#[test]
fn wrong_launches_are_one_clear_error() {
    let sizes = Sizes { num_rows: 1000, num_cols: 10, nnz: 0, dense_cols: 1 };
    for (text, message) in [
        ("", "does not say grid="),
        ("grid=1", "does not say block="),
        ("grid=1 block=32 blocks=3", "`blocks` where one of"),
        ("nonsense", "`nonsense` where one of"),
        ("grid=1 grid=2 block=1", "grid= twice"),
        ("grid=(1,2,3,4) block=1", "1 to 3 dimensions"),
        ("grid= block=1", "not understood at its end"),
        ("grid=rows block=1", "`rows`, which is not understood at `rows`"),
        ("grid=num_rows-1 block=1", "not understood at `-1`"),
        ("grid=nnz block=1", "grid = nnz = 0 for this matrix: expected 1 to 2147483647"),
        ("grid=1/nnz block=1", "= no number for this matrix"),
        ("grid=(1,65536) block=1", "expected 1 to 65535"),
        ("grid=4294967297 block=1", "grid = 4294967297"),
        ("grid=1 block=2048", "expected 1 to 1024"),
        ("grid=1 block=(1,1,65)", "expected 1 to 64"),
        ("grid=1 block=(32,33)", "blocks of 1056 threads"),
        ("grid=1 block=1 shared=99999999999", "shared = 99999999999"),
    ] {
        let error = LaunchRule::from_comment(text).and_then(|rule| rule.geometry(sizes));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message) && error.lines().count() == 1, "{text}: {error}");
    }
    for json in [
        "",
        "[]",
        "{}",
        r#"{"grid": 1}"#,
        r#"{"grid": -1, "block": 1}"#,
        r#"{"grid": [], "block": 1}"#,
        r#"{"grid": 1.5, "block": 1}"#,
        r#"{"grid": 1, "block": 1, "threads": 1}"#,
        r#"{"grid": 1, "block": 1, "thr\neads": 1}"#,
        r#"{"grid": "1\n\n+", "block": 1}"#,
    ] {
        let error = LaunchRule::from_json(json).unwrap_err().to_string();
        assert!(error.lines().count() == 1, "{json}: {error}");
    }
    let unsaid = source(PAPER).replace("// launch", "// lunch");
    assert_eq!(RawKernel::parse(&unsaid, None), Err(RuleError::None.into()));
    let twice = format!("// launch: grid=1 block=1\n{}", source(PAPER));
    assert_eq!(RawKernel::parse(&twice, None), Err(RuleError::Several.into()));
    assert!(RawKernel::parse(&twice, Some(r#"{"grid": 1, "block": 1}"#)).is_ok());
}

#[test]
fn a_name_of_several_lines_is_quoted_on_one() {
    let json = r#"{"kernel": "a\nb", "grid": 1, "block": 1}"#;
    let error = RawKernel::parse(&source(PAPER), Some(json)).unwrap_err();
    assert!(matches!(error, RawError::NoSuchKernel { .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}

#[test]
fn a_kernel_is_for_one_element_type() {
    let matrix = uniform(10, 10, 2, 1);
    let single = RawKernel::parse(&source(PAPER), None).unwrap();
    assert_eq!(single.signature.other_element_type(Dtype::F32), None);
    assert_eq!(single.signature.other_element_type(Dtype::F64), Some(("values", Dtype::F32)));
    let error = RawError::ElementType {
        parameter: "values".into(),
        found: Dtype::F32,
        task: <f64 as Scalar>::DTYPE,
    };
    assert_eq!(error.to_string(), "the parameter `values` is of f32, but the task is f64");
    assert_eq!(narrow(matrix.view().offsets()).last(), Some(&20));
    assert!(as_int("nonzeros", 1 << 31).unwrap_err().to_string().contains("2147483648 nonzeros"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", sidecar in proptest::option::of("\\PC*")) {
        let _ = RawKernel::parse(&text, sidecar.as_deref());
    }

    #[test]
    fn no_text_like_a_source_panics(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "__global__ ", "void ", "k", "(", ")", "{", "}", ";", "\"", "'", "R\"", "\\", "\n", "//", "/*", "*/", "#",
            "extern \"C\" ", "template", "<", ">", ",", "=", "float* x", "float* y", "int rows", " launch: ", "grid=1 ",
            "block=1 ", "__launch_bounds__(", "é", "num_rows/", "\r",
        ]), 0..40),
    ) {
        let text = pieces.concat();
        if let Ok(kernel) = RawKernel::parse(&text, None) {
            prop_assert!(kernel.source().contains("extern \"C\""));
            prop_assert!(kernel.source().len() >= text.len());
        }
        let _ = RawKernel::parse(&text, Some(r#"{"grid": 1, "block": 1}"#));
        let _ = LaunchRule::from_comment(&text);
    }
}
