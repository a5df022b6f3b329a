mod generated;

use proptest::prelude::*;
use sparserl_core::matrix::Csr;
use sparserl_core::matrix::generate::{self, uniform};
use sparserl_core::task::Operation;

use super::*;
use crate::run::device::Geometry;

const NAMED: &str = "const int* row_ptr, const int* col_idx, const float* values, const float* dense_matrix, float* output, int num_rows, int dense_cols";

const SPMV: Task = Task::new(Operation::SpMV, Dtype::F64);

fn source(parameters: &str) -> String {
    declared("", parameters)
}

fn declared(arguments: &str, parameters: &str) -> String {
    format!(
        "// launch: k<<<ceil(num_rows / 256), 256>>>{arguments}\n__global__ void k({parameters}) {{ output[0] = 1; }}\n"
    )
}

/// What the parameters are given, by their standard names.
fn given(source: &str) -> Result<Vec<String>, RawError> {
    match RawKernel::parse(source, None)?.arguments {
        Arguments::Csr(roles) => Ok(roles.iter().map(Role::name).collect()),
        Arguments::Packed(_) => panic!("a program where there is none"),
    }
}

#[test]
fn standard_names_need_no_declaration() {
    let usual = ["row_offsets", "columns", "values", "x", "y", "num_rows", "dense_cols"];
    for (parameters, expected) in [
        (NAMED, &usual[..]),
        (
            "const unsigned int * __restrict__ row_offsets, const unsigned* __restrict columns, \
             const double *__restrict__ values, double const* B, double* __restrict__ C, const int num_rows, unsigned dense_cols",
            &usual,
        ),
        ("float y[], const float x[]", &["y", "x"]),
        (
            "size_t nnz, int num_cols, long long num_rows, float beta, float* y, float* x, float alpha",
            &["nnz", "num_cols", "num_rows", "beta", "y", "x", "alpha"],
        ),
        ("float* x /* , int* nothing */, float* y = nullptr", &["x", "y"]),
    ] {
        let given = given(&source(parameters)).unwrap();
        assert_eq!(given, expected, "{parameters}");
    }
}

#[test]
fn all_else_is_declared() {
    for (arguments, parameters, expected) in [
        (
            "(row_offsets, columns, values, x, y, num_rows, dense_cols)",
            "int* indptr, int* indices, float* data, float* in, float* out, int m, int n",
            &["row_offsets", "columns", "values", "x", "y", "num_rows", "dense_cols"][..],
        ),
        // The launch goes before names.
        ("(y, x);", "float* x, float* y", &["y", "x"]),
        ("(B, C, row_ptr)", "float*, float*, unsigned*", &["x", "y", "row_offsets"]),
        // A type of 16 bits behind another type is a name.
        ("(x, y, num_rows)", "__half* a, half* b, int half", &["x", "y", "num_rows"]),
        (
            "( x, y,\n//   num_rows + 1,\n  //  ceil(nnz / 32), 7 ) ;",
            "float* a, float* b, int c, size_t d, int e",
            &["x", "y", "(num_rows + 1)", "ceil(nnz / 32)", "7"],
        ),
    ] {
        assert_eq!(given(&declared(arguments, parameters)).unwrap(), expected, "{arguments}");
    }
}

#[test]
fn what_is_not_declared_is_one_clear_error_that_says_what_to_add() {
    for (parameters, message) in [
        (
            "float* x, const int* indptr, int* columns, float* y, int m",
            "what the parameter `indptr` is given: declare it, as in `// launch: k<<<ceil(num_rows / 256), 256>>>(x, ?, \
             columns, y, ?)`, with row_offsets, columns or another expression",
        ),
        ("float* x, float* y, float* z", "with values, x, y or"),
        ("float* x, float* y, double scale", "with alpha, beta or"),
        ("float* x, float* y, int", "the parameter number 3 is given"),
        ("float* x, float* y, int N", "with num_rows, num_cols, nnz, dense_cols or"),
        ("float* x, float* output, float* y", "`output` and `y` are both given y"),
        ("float* x, int num_rows", "no parameter is given y"),
        ("", "no parameter is given x"),
        (
            "float* x, float* y, int columns",
            "`columns` is of type int32_t, which cannot be given columns",
        ),
        ("float* x, float* y, short* row_ptr", "`row_ptr` is of type int16_t*, which"),
        ("float* x, float4* y", "`float4* y` has a type"),
        ("float* x, float& y", "`float& y` has a type"),
        ("float* x, float** y", "`float** y` has a type"),
        ("float* x, bool* y", "`bool* y` has a type"),
        ("float* x, long double* y", "`long double* y` has a type"),
        ("float* x, std::vector<int> y", "`std::vector<int> y` has a type"),
        (",", "has a type"),
    ] {
        let error = given(&source(parameters)).unwrap_err().to_string();
        assert!(error.contains(message) && error.lines().count() == 1, "{parameters}: {error}");
    }
    for (arguments, message) in [
        ("(x)", "passes 1 arguments to 3 parameters"),
        ("()", "passes 0 arguments to 3 parameters"),
        ("(x, y, workspace)", "passes `workspace`, which is not known: expected row_offsets,"),
        ("(x, y, n-1)", "passes `n-1`, which is not known"),
        ("(x, y, nnz-)", "passes `nnz-`, which is not known"),
        ("(x, x, nnz)", "`a` and `b` are both given x"),
        ("(x, nnz, nnz)", "`b` is of type float*, which cannot be given nnz"),
        ("(x, values, nnz)", "no parameter is given y"),
        ("(x, y, nnz", "something like `spmv<<<"),
    ] {
        let error = given(&declared(arguments, "float* a, float* b, int c")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(message) && error.lines().count() == 1, "{arguments}: {error}");
    }
    // Followed, the advice is understood.
    let parameters = "float* x, const int* indptr, float* y";
    let error = given(&source(parameters)).unwrap_err().to_string();
    let line = error.split('`').find(|text| text.starts_with("// launch: ")).unwrap();
    let source = format!("{}\n__global__ void k({parameters}) {{}}", line.replace('?', "row_ptr"));
    assert_eq!(given(&source).unwrap(), ["x", "row_offsets", "y"]);
}

#[test]
fn what_a_description_in_json_lacks_is_said_in_json() {
    let source = "__global__ void k(float* x, float* y, int* ia) {}";
    let parse = |json: &str| RawKernel::parse(source, Some(json));
    let error = parse(r#"{"grid": 1, "block": 32}"#).unwrap_err().to_string();
    assert!(error.contains(r#"`"arguments": ["x", "y", "?"]` in the .json file"#), "{error}");
    let kernel = parse(r#"{"grid": 1, "block": 32, "arguments": ["y", "x", "columns"]}"#).unwrap();
    let roles = vec![Role::Output, Role::Input, Role::Columns];
    assert_eq!(kernel.arguments, Arguments::Csr(roles));
}

#[test]
fn c_linkage_is_added_where_it_is_missing() {
    let after = "void k(const float* x, float* y) { y[0] = x[0]; }";
    for (before, added) in [
        ("__global__ ", "extern \"C\" __global__ "),
        ("extern \"C\" __global__ ", "extern \"C\" __global__ "),
        ("extern  \"C\"\n__global__ ", "extern  \"C\"\n__global__ "),
        ("static __global__ ", "extern \"C\"  __global__ "),
        ("__global__ static ", "extern \"C\" __global__  "),
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
    assert_eq!(named.parameters().collect::<Vec<_>>(), ["y", "x"]);
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
    let launched = |kernel: &str| {
        let kernel = format!("// launch: {kernel}<<<1, 1>>>(x, y)\n{template}");
        text(RawKernel::parse(&kernel, None))
    };
    assert!(launched("k").contains("k<float, 128><<<…>>>"));
    assert!(launched("k<float, 8>").contains("`k` is a template"));
    let none = "// launch: k<8><<<1, 1>>>(x, y)\n__global__ void k(float* x, float* y) {}";
    assert!(text(RawKernel::parse(none, None)).contains("`k`, which is none"));
    let again = "__global__ void k(float* x, float* y) {} __global__ void k(float* y, float* x) {}";
    assert!(text(parse(again, "null")).contains("more than once"));
}

#[test]
fn launches_are_read_from_comments_and_json() {
    let sizes = Sizes { num_rows: 1000, num_cols: 10, nnz: 5000, dense_cols: 33, blocks: Some(12) };
    let geometry = |grid, block, dynamic_shared| Geometry { grid, block, dynamic_shared };
    for (text, expected) in [
        ("<<<(ceil(num_rows/256)), 256, 0>>>", geometry([4, 1, 1], [256, 1, 1], 0)),
        ("k<<<num_rows, 32>>>", geometry([1000, 1, 1], [32, 1, 1], 0)),
        (" k <<< (num_rows + 3) / 4 , dim3 (32, 4) >>> ", geometry([250, 1, 1], [32, 4, 1], 0)),
        (
            "k<<<dim3(num_rows/8, ceil(dense_cols/32), 1), dim3(32, 8), 8*32*4>>>(x, y);",
            geometry([125, 2, 1], [32, 8, 1], 1024),
        ),
        ("<<<dim3(1,2,3),1>>>", geometry([1, 2, 3], [1, 1, 1], 0)),
        ("<<<blocks, 256>>>;", geometry([12, 1, 1], [256, 1, 1], 0)),
    ] {
        let rule = LaunchRule::from_comment(text).unwrap();
        assert_eq!(rule.geometry(sizes), Ok(expected), "{text}");
    }
    for (json, expected) in [
        (
            r#"{"grid": ["ceil(num_rows/256)"], "block": [256], "shared": 0, "arguments": ["x"]}"#,
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
    let sizes = Sizes { num_rows: 1000, num_cols: 10, nnz: 0, dense_cols: 1, blocks: None };
    for (text, message) in [
        ("", "the launch is `` where something like `spmv<<<"),
        ("grid=1 block=32", "the launch is `grid=1 block=32` where"),
        ("k<<<1>>>", "where something like"),
        ("k<<<1, 2, 3, 4>>>", "where something like"),
        ("k<<<>>>", "where something like"),
        ("k<<<1, 32", "where something like"),
        ("k:l<<<1, 32>>>", "where something like"),
        ("k<<<1, 32>>>(x", "where something like"),
        ("k<<<1, 32>>> x", "where something like"),
        ("<<<dim3(1,2,3,4), 1>>>", "1 to 3 dimensions"),
        ("<<<dim3(), 1>>>", "1 to 3 dimensions"),
        ("<<<, 1>>>", "not understood at its end"),
        ("<<<(1, 2), 1>>>", "`(1, 2)`, which is not understood at `, 2)`"),
        ("<<<rows, 1>>>", "`rows`, which is not understood at `rows`"),
        ("<<<num_rows^1, 1>>>", "not understood at `^1`"),
        ("<<<num_rows-1001, 1>>>", "= no number for this matrix"),
        ("<<<nnz, 1>>>", "grid = nnz = 0 for this matrix: expected 1 to 2147483647"),
        ("<<<1/nnz, 1>>>", "= no number for this matrix"),
        ("<<<dim3(1,65536), 1>>>", "expected 1 to 65535"),
        ("<<<4294967297, 1>>>", "grid = 4294967297"),
        ("<<<1, 2048>>>", "expected 1 to 1024"),
        ("<<<1, dim3(1,1,65)>>>", "expected 1 to 64"),
        ("<<<1, dim3(32,33)>>>", "blocks of 1056 threads"),
        ("<<<1, 1, 99999999999>>>", "shared = 99999999999"),
        ("a b<64><<<1, 1>>>", "the launch is `a b<64><<<1, 1>>>`"),
        ("<64><<<1, 1>>>", "the launch is `<64><<<1, 1>>>`"),
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
    let unsaid = RawKernel::parse(&source(NAMED).replace("// launch", "// lunch"), None);
    let unsaid = unsaid.unwrap_err().to_string();
    assert!(unsaid.contains("add a line such as `// launch: k<<<ceil(num_rows / 256), 256>>>(row_offsets, columns, values, x, y, num_rows, dense_cols)`"), "{unsaid}");
    let twice = format!("// Launch: <<<1, 1>>>\n{}", source(NAMED));
    assert_eq!(RawKernel::parse(&twice, None), Err(RuleError::Several.into()));
    assert!(RawKernel::parse(&twice, Some(r#"{"grid": 1, "block": 1}"#)).is_ok());
    let blocks = source(NAMED).replace("num_rows /", "blocks /");
    assert_eq!(RawKernel::parse(&blocks, None), Err(RuleError::Blocks.into()));
}

#[test]
fn however_many_kernels_there_are_they_are_told_apart_in_seconds_and_in_a_line() {
    let kernel = |i| format!("namespace n{{ __global__ void g{i}(float* y) {{ y[0] = {i}; }} }}\n");
    let source: String = (0..100_000).map(kernel).collect();
    let launch = "// launch: <<<1, 32>>>(y)\n";
    let start = std::time::Instant::now();
    let error = RawKernel::parse(&format!("{launch}{source}"), None).unwrap_err().to_string();
    // Comparing each with each takes minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    assert!(error.contains("n::g0, n::g1, ") && error.contains("and 99984 more"), "{error}");
    assert!(error.len() < 500 && error.lines().count() == 1, "{error}");
}

#[test]
fn a_name_of_several_lines_is_quoted_on_one() {
    let json = r#"{"kernel": "a\nb", "grid": 1, "block": 1}"#;
    let error = RawKernel::parse(&source(NAMED), Some(json)).unwrap_err();
    assert!(matches!(error, RawError::NoSuchKernel { .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}

#[test]
fn a_kernel_is_for_one_element_type() {
    let matrix = uniform(10, 10, 2, 1);
    let single = RawKernel::parse(&source(NAMED), None).unwrap();
    let check = |task: Precision| {
        let Arguments::Csr(roles) = &single.arguments else { panic!("not over plain CSR") };
        single.check_element_types(roles, task)
    };
    assert_eq!(check(Dtype::F32.into()), Ok(()));
    let mixed = check(Precision::F32_IN_F64).unwrap_err().to_string();
    assert_eq!(mixed, "the parameter `dense_matrix` is of f32, but the task is f32/f64/f64");
    let error = RawError::ElementType {
        parameter: "`values`".into(),
        found: Dtype::F32,
        task: Dtype::F64.into(),
    };
    assert_eq!(check(Dtype::F64.into()), Err(error.clone()));
    assert_eq!(error.to_string(), "the parameter `values` is of f32, but the task is f64");
    assert_eq!(narrow(matrix.view().offsets()).last(), Some(&20));
    assert!(as_int("nonzeros", 1 << 31).unwrap_err().to_string().contains("2147483648 nonzeros"));
}

/// CUDA's header of half precision is not there, so elements may be without a type.
#[test]
fn elements_of_16_bits_may_be_integers() {
    let parameters = "unsigned short* x, uint16_t* y, const short* values, int num_rows";
    let kernel = RawKernel::parse(&source(parameters), None).unwrap();
    let Arguments::Csr(roles) = &kernel.arguments else { panic!("not over plain CSR") };
    for half in [Dtype::F16, Dtype::BF16] {
        assert_eq!(kernel.check_element_types(roles, half.into()), Ok(()));
    }
    let error = kernel.check_element_types(roles, Dtype::F32.into()).unwrap_err().to_string();
    assert_eq!(error, "the parameter `x` is of type int16_t*, which cannot be given x");
}

#[test]
fn a_source_is_called_by_the_name_of_its_file() {
    let text = source(NAMED);
    let kernel = RawKernel::parse(&text, None).unwrap();
    let unnamed = kernel.source().to_owned();
    let named = kernel.named("a \"b\"\n.cu");
    assert_eq!(named.source(), format!("#line 1 \"a \\\"b\\\".cu\"\n{unnamed}"));
}

#[test]
fn offsets_and_columns_have_the_width_that_they_are_declared_with() {
    let matrix = generate::stencil5(3, 2);
    for (offset, column) in [("int", "int"), ("long long", "int"), ("size_t", "int64_t")] {
        let parameters = format!(
            "const {offset}* row_ptr, const {column}* col_idx, const double* values, const double* x, double* output"
        );
        let kernel = RawKernel::parse(&source(&parameters), None).unwrap();
        let prepared = kernel.prepare(matrix.view(), SPMV).unwrap();
        let width = |kind: &str| if kind == "int" { 4 } else { 8 };
        let bytes: Vec<_> = prepared.arrays.iter().map(|array| array.bytes().len()).collect();
        let (rows, entries) = (matrix.rows(), matrix.nnz());
        assert_eq!(bytes, [width(offset) * (rows + 1), width(column) * entries, 8 * entries]);
    }
}

#[test]
fn a_template_is_called_by_a_kernel_of_its_name() {
    let source = "typedef unsigned int index;
using real = float;
#define COUNT index
// launch: k<64, real, 2><<<n / 64, 64>>>(row_offsets, x, y, num_rows)
template <int B, typename T, int W = 1, class I = COUNT>
static __global__ void __launch_bounds__(B,
    W) k(const index* a, const T* __restrict__ x, T*, I n = 0) {}
template __global__ void k<32, float>(const index*, const float*,
    float*, index);
";
    let kernel = RawKernel::parse(source, None).unwrap();
    let expected = source
        .replace("__global__ void k<", "__global__ void gone<")
        .replace("__global__ void __launch_bounds__(B,\n    W)", "__device__ __forceinline__ void \n")
        .replace("template __global__ void gone<32, float>(const index*, const float*,\n    float*, index)", "\n");
    let called = "\nextern \"C\" __global__ __launch_bounds__(64,\n    2) void \
                  k(const index* a, const real* __restrict__ x, real* argument_2, COUNT n) \
                  { k<64, real, 2, COUNT>(a, x, argument_2, n); }\n";
    assert_eq!(kernel.source(), format!("{expected}{called}"));
    assert_eq!(kernel.parameters().collect::<Vec<_>>(), ["a", "x", "", "n"]);
    assert_eq!(kernel.kernel(), "k");
}

#[test]
fn a_default_may_name_the_parameters_before_it() {
    let source = "// launch: k<float, 64><<<n / 64, 64>>>(x, y, num_rows)
template <typename T, int B, typename Sum = T, int W = B / 32>
__launch_bounds__(B) __global__ void k(const __grid_constant__ T* x, Sum* y, int n) {}
";
    let kernel = RawKernel::parse(source, None).unwrap();
    assert!(kernel.source().contains(
        "__global__ __launch_bounds__(64) void k(const __grid_constant__ float* x, float* y, int n) \
         { k<float, 64, float, 64 / 32>(x, y, n); }"
    ));
    assert!(
        kernel.source().contains(" __device__ __forceinline__ void k(const  T* x, Sum* y, int n)")
    );
}

#[test]
fn kernels_in_namespaces_have_qualified_names() {
    let kernel = "__global__ void k(const float* x, float* y) {}";
    let source = |launched: &str| {
        format!(
            "// launch: {launched}<<<1, 64>>>(x, y)\n\
             namespace a {{ inline namespace v1 {{ namespace {{ {kernel} }} }} }}\n\
             namespace b::c {{ __global__ void k(const float*, float*); {kernel} }}\n\
             extern \"C\" {{ __global__ void other(float* y) {{}} }}\n"
        )
    };
    let parse = |launched: &str| RawKernel::parse(&source(launched), None);
    for launched in ["a::v1::k", "::a::v1::k", "v1::k"] {
        let kernel = parse(launched).unwrap();
        assert_eq!(kernel.kernel(), "k", "{launched}");
        let source = kernel.source();
        let left = "namespace { } extern \"C\" __global__ void k(const float* x, float* y) {} namespace { }";
        assert!(source.contains(left), "{source}");
        assert_eq!(source.matches("extern \"C\" __global__ void k(").count(), 1, "{source}");
    }
    assert!(parse("b::c::k").unwrap().source().contains("{ extern \"C\" __global__ void k("));
    let text = |launched: &str| parse(launched).unwrap_err().to_string();
    assert!(text("k").contains("several kernels (a::v1::k, b::c::k, other)"), "{}", text("k"));
    for launched in ["c", "a::k", "b::c::", "x::k"] {
        assert!(parse(launched).is_err(), "{launched}");
    }

    let template = "// launch: a::k<float, 8><<<1, N>>>(x, y)\nnamespace a {\n\
                    constexpr int N = 64;\ntypedef float real;\n\
                    template <typename T, int B>\n__global__ void k(const T* x, real* y) {}\n}";
    let kernel = RawKernel::parse(template, None).unwrap();
    let written = "namespace a { extern \"C\" __global__  void k(const float* x, real* y) \
                   { k<float, 8>(x, y); } }\n";
    assert!(kernel.source().ends_with(written), "{}", kernel.source());
}

#[test]
fn launches_may_name_enumerators() {
    let launched = |enumeration: &str, threads: &str| {
        let launch = format!("// launch: k<<<2, {threads}>>>(x, y)\n");
        let kernel = "__global__ void k(const float* x, float* y) { enum { LOCAL = 1 }; }";
        let kernel = RawKernel::parse(&format!("{launch}{enumeration}\n{kernel}"), None)?;
        let sizes = Sizes { num_rows: 1000, num_cols: 10, nnz: 0, dense_cols: 1, blocks: None };
        Ok::<_, RawError>(kernel.launch.geometry(sizes)?.block)
    };
    for (enumeration, threads, count) in [
        ("enum { ROWS = 64, WARP = 32 };", "ROWS", 64),
        ("enum { ROWS = 64, WARP = 32, };", "ROWS + WARP", 96),
        ("enum Sizes : int { ZERO, ONE, FOUR = 4, FIVE };", "32 * FIVE + ONE + ZERO", 161),
        ("namespace a { enum { ROWS = 1 << 6 }; }", "ROWS", 64),
    ] {
        assert_eq!(launched(enumeration, threads).unwrap(), [count, 1, 1], "{enumeration}");
    }
    for (enumeration, threads) in [
        ("enum class Sizes { ROWS = 64 };", "ROWS"),
        ("struct a { enum { ROWS = 64 }; };", "ROWS"),
        ("", "LOCAL"),
    ] {
        assert!(launched(enumeration, threads).is_err(), "{enumeration}");
    }
}

#[test]
fn templates_without_instances_are_refused() {
    let launch = "// launch: k<float><<<1, 64>>>(x, y)\n";
    let kernel = "template <typename T>\n__global__ void k(T* x, T* y) {}";
    assert!(RawKernel::parse(&format!("{launch}namespace {{ {kernel} }}"), None).is_ok());
    for (source, why) in [
        (format!("{launch}struct a {{ {kernel} }};"), "template within braces"),
        (
            format!(
                "{launch}{kernel}\ntemplate <>\n__global__ void k<float>(float* x, float* y) {{}}"
            ),
            "template with a specialization",
        ),
        (
            "// launch: k<256><<<1, 64>>>(x, y)\n\
             template <int B = 1 << 8>\n__global__ void k(float* x, float* y) {}"
                .to_owned(),
            "template with a shift",
        ),
    ] {
        let said = RawKernel::parse(&source, None).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    let unclear = "// launch: k<float><<<1, 64>>>\n\
                   template <typename T>\n__global__ void k(T* a, T* b) {}";
    let said = RawKernel::parse(unclear, None).unwrap_err().to_string();
    assert!(said.contains("// launch: k<float><<<1, 64>>>("), "{said}");
}

#[test]
fn what_is_compiled_reads_as_the_same_kernel() {
    for body in [
        "",
        "int r = 1000;",
        "uint32_t r = 0; int8_t s = 1'000;",
        "std::int64_t r = 0; std::size_t s = 0;",
        "using uint32_t = std::uint32_t;",
        "\n#include <cmath> // 1000\n",
    ] {
        let source = format!(
            "// launch: k<<<1, 64>>>(x, y)\n__global__ void k(const float* x, float* y) {{ {body} }}"
        );
        let kernel = RawKernel::parse(&source, None).unwrap();
        let again = RawKernel::parse(kernel.source(), None).unwrap();
        assert_eq!(again.source(), kernel.source(), "{body}");
        // What was declared before it stands in it now, and its launch below that.
        let (declared, written) = (kernel.declared.clone(), kernel.written.clone());
        let launch_line = kernel.launch_line;
        assert_eq!(RawKernel { declared, written, launch_line, ..again }, kernel, "{body}");
    }
}

#[test]
fn who_has_a_size_as_a_number_is_not_told_it() {
    let matrix = generate::uniform(1000, 1024, 3, 1);
    let told = |template: &str, body: &str| {
        let launch = format!("// launch: k{template}<<<4, 256>>>(x, y, num_rows, num_cols)");
        let list = if template.is_empty() { "" } else { "template <int R>" };
        let source = format!(
            "{launch}\n{list} __global__ void k(const float* x, float* y, int rows, int columns) {{ {body} }}"
        );
        RawKernel::parse(&source, None).unwrap().is_told(matrix.view())
    };
    assert_eq!(told("", ""), [true; 2]);
    assert_eq!(told("", "int r = 1000;"), [false; 2]);
    assert_eq!(told("<1000>", ""), [false; 2]);
    // The threads of many a block.
    assert_eq!(told("", "int r = 1024;"), [true; 2]);
    // No number of the program.
    assert_eq!(told("", "\n#include <cstdint> // 1000\n"), [true; 2]);
}
