/* Epilogues are compiled and emulated when a plan is made; those that do harm are refused. The first
 * argument is a folder to write to. */
#include "check.h"

static sparserl_context *context;
static sparserl_matrix *matrix;

/* Plans with an epilogue by its text. */
static sparserl_status plan_for(uint64_t columns, const char *user, const char *text, sparserl_plan **plan) {
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  if (columns) OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  set_calls(options, 0);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_text(options, SPARSERL_OPTION_EPILOGUE_SOURCE, text);
  if (user) set_text(options, SPARSERL_OPTION_EPILOGUE_USER, user);
  const sparserl_status status = sparserl_plan_create(context, matrix, options, plan);
  OK(sparserl_options_destroy(options));
  return status;
}

static sparserl_status plan_with(const char *user, const char *text, sparserl_plan **plan) {
  return plan_for(0, user, text, plan);
}

#define FUNCTION(body) \
  "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {\n" body "\n}"

#define OF_MATRICES(body) \
  "__device__ Scalar epilogue(unsigned row, unsigned column, Scalar product, Scalar old, const User& user) {\n" \
  body "\n}"

/* Of matrices, which are given the column, too. */
static void matrices(const char *folder) {
  sparserl_plan *plan = NULL, *loaded = NULL;
  OK(plan_for(6, "const Dense bias[N]; Scalar step; Dense moved[rows][N]",
              OF_MATRICES("const Scalar v = product + old + user.bias[column];\n"
                          "user.moved[row * N + column] = v - user.step;\n"
                          "return v;"),
              &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_PROGRAM, "spmm 6 f64"));
  REQUIRE(text_has(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_SOURCE, "epilogue(row, column + v,"));
  char path[4096];
  snprintf(path, sizeof path, "%s/columns.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, matrix, path, &loaded));
  REQUIRE(text_has(loaded, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "user.moved[row * N + column]"));
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  plan = NULL;
  FAILS(plan_for(6, NULL, FUNCTION("return product;"), &plan), SPARSERL_EPILOGUE, "epilogue");
  FAILS(plan_for(6, "const Scalar a[N]", OF_MATRICES("return product + user.a[column + 1];"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_for(6, "Scalar a[rows]", OF_MATRICES("return user.a[row] = product;"), &plan), SPARSERL_EPILOGUE,
        "race");
  REQUIRE(plan == NULL);
}

/* What goes wrong in some rows of many only, or for some products only. */
static void far_away(void) {
  struct grid g = make_scattered(50000, 40000, 2);
  sparserl_matrix *const other = matrix;
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  sparserl_plan *plan = NULL;
  FAILS(plan_with("Scalar out[rows]",
                  FUNCTION("if (row > 30000) user.out[row + 1000000000] = 0;\nreturn product + old;"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_with("Scalar out[rows]",
                  FUNCTION("if (row == 31237) user.out[row + 1000000000] = 0;\nreturn product + old;"), &plan),
        SPARSERL_EPILOGUE, "in row 31237, of the product ");
  FAILS(plan_with("Scalar out[rows]",
                  FUNCTION("if (product > 1e6) user.out[row + 1000000000] = 0;\nreturn product + old;"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_with("const Scalar in[rows]", FUNCTION("return product + user.in[row < 39999 ? row : row + 1];"), &plan),
        SPARSERL_EPILOGUE, "of the product ");
  FAILS(plan_for(512, "const Dense in[rows][N]",
                 OF_MATRICES("return product + user.in[size_t(row) * N + column + (row == 49999)];"), &plan),
        SPARSERL_EPILOGUE, "in row 49999, column 511, of the product ");
  /* Elements of other rows may be read. */
  OK(plan_for(512, "const Scalar in[rows]; const Scalar step[1]; Scalar out[rows][N]",
              OF_MATRICES("user.out[size_t(row) * N + column] = user.in[0] + user.in[row];\n"
                          "return product > 1e6 ? old : product + *user.step;"),
              &plan));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(matrix));
  matrix = other;
  free_grid(&g);
}

/* Numbers in device memory. */
static void numbers(void) {
  sparserl_plan *plan = NULL;
  OK(plan_with("const Scalar step[1]; const Dense limit[1]",
               FUNCTION("const Scalar v = product + *user.step * old;\n"
                        "return v < user.limit[0] ? v : Scalar(user.limit[0]);"),
               &plan));
  char *user = text_of(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_EPILOGUE_USER);
  REQUIRE(strcmp(user, "const Scalar step[1];const Dense limit[1];") == 0);
  free(user);
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "const Scalar* step;"));
  OK(sparserl_plan_destroy(plan));
  plan = NULL;
  FAILS(plan_with("const Scalar step[1]", FUNCTION("return product + user.step[1];"), &plan), SPARSERL_EPILOGUE,
        "epilogue:2");
  /* Every row would write it. */
  FAILS(plan_with("Scalar sum[1]", FUNCTION("return product;"), &plan), SPARSERL_INVALID_ARGUMENT,
        "`Scalar sum[1]` declares no value");
  REQUIRE(plan == NULL);
}

static int is_text(sparserl_plan *plan, int32_t op, int32_t text, const char *expected) {
  char *found = text_of(plan, op, text);
  const int is_it = strcmp(found, expected) == 0;
  if (!is_it) fprintf(stderr, "not \"%s\": %s\n", expected, found);
  free(found);
  return is_it;
}

static int has_no_epilogue(sparserl_plan *plan, int32_t op) {
  char *source = text_of(plan, op, SPARSERL_TEXT_SOURCE);
  const int has_none = strstr(source, "epilogue") == NULL;
  free(source);
  return has_none && is_text(plan, op, SPARSERL_TEXT_EPILOGUE, "") &&
         is_text(plan, op, SPARSERL_TEXT_EPILOGUE_USER, "");
}

/* Settings of the options of epilogues, up to one that is 0. */
struct setting {
  int32_t option;
  const char *text;
};

static sparserl_status plan_of_sides(uint64_t calls, const struct setting *settings, sparserl_plan **plan) {
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_calls(options, calls);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  for (; settings->option; ++settings) set_text(options, settings->option, settings->text);
  const sparserl_status status = sparserl_plan_create(context, matrix, options, plan);
  OK(sparserl_options_destroy(options));
  return status;
}

#define SIDES(...) ((const struct setting[]){__VA_ARGS__, {0, NULL}})
#define OF_BOTH(text) {SPARSERL_OPTION_EPILOGUE, text}
#define OF_BOTH_SOURCE(text) {SPARSERL_OPTION_EPILOGUE_SOURCE, text}
#define OF_BOTH_USER(text) {SPARSERL_OPTION_EPILOGUE_USER, text}
#define TRANSPOSED(text) {SPARSERL_OPTION_TRANSPOSED_EPILOGUE, text}
#define TRANSPOSED_SOURCE(text) {SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE, text}
#define TRANSPOSED_USER(text) {SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER, text}

/* What an epilogue of A and another one of the transpose become, in a plan and in its file. */
static void of_sides(const char *folder) {
  static const char *const dual = FUNCTION("return old + *user.step * (user.need[row] - product);");
  static const char *const primal = FUNCTION("user.moved[row] = 2 * product;\n"
                                             "return product < 0 ? Scalar(0) : product;");
  static const char *const of_dual = "const Scalar step[1];const Scalar need[rows];";
  static const char *const of_primal = "Scalar moved[rows];";
  sparserl_plan *plans[2] = {NULL, NULL};
  OK(plan_of_sides(0, SIDES(OF_BOTH_SOURCE(dual), OF_BOTH_USER(of_dual),
                            TRANSPOSED_SOURCE(primal), TRANSPOSED_USER(of_primal)),
                   &plans[0]));
  char path[4096];
  snprintf(path, sizeof path, "%s/sides.plan", folder);
  OK(sparserl_plan_save(plans[0], path));
  OK(sparserl_plan_load(context, matrix, path, &plans[1]));
  for (int i = 0; i < 2; ++i) {
    const int32_t a = SPARSERL_OP_NONE, transpose = SPARSERL_OP_TRANSPOSE;
    REQUIRE(is_text(plans[i], a, SPARSERL_TEXT_EPILOGUE, dual));
    REQUIRE(is_text(plans[i], a, SPARSERL_TEXT_EPILOGUE_USER, of_dual));
    REQUIRE(text_has(plans[i], a, SPARSERL_TEXT_SOURCE, "user.need[row] - product"));
    REQUIRE(is_text(plans[i], transpose, SPARSERL_TEXT_EPILOGUE, primal));
    REQUIRE(is_text(plans[i], transpose, SPARSERL_TEXT_EPILOGUE_USER, of_primal));
    REQUIRE(text_has(plans[i], transpose, SPARSERL_TEXT_SOURCE, "user.moved[row] = 2 * product"));
    OK(sparserl_plan_destroy(plans[i]));
  }
}

/* The transpose has the epilogue of A, one of its own, or none. */
static void ready_of_sides(const char *folder) {
  const int32_t a = SPARSERL_OP_NONE, transpose = SPARSERL_OP_TRANSPOSE;
  const struct {
    const struct setting *settings;
    const char *of_a, *of_transpose;
  } cases[] = {
      {SIDES(OF_BOTH("relu")), "relu", "relu"},
      {SIDES(OF_BOTH("relu"), TRANSPOSED("")), "relu", "relu"},
      {SIDES(OF_BOTH("relu"), TRANSPOSED("clamp")), "relu", "clamp"},
      {SIDES(OF_BOTH("relu"), TRANSPOSED("none")), "relu", ""},
      {SIDES(TRANSPOSED("relu")), "", "relu"},
      {SIDES(OF_BOTH("none"), TRANSPOSED("relu")), "", "relu"},
      {SIDES(OF_BOTH("none")), "", ""},
  };
  char path[4096];
  snprintf(path, sizeof path, "%s/ready.plan", folder);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    sparserl_plan *plans[2] = {NULL, NULL};
    OK(plan_of_sides(0, cases[i].settings, &plans[0]));
    OK(sparserl_plan_save(plans[0], path));
    OK(sparserl_plan_load(context, matrix, path, &plans[1]));
    for (int of_file = 0; of_file < 2; ++of_file) {
      for (int32_t op = a; op <= transpose; ++op) {
        const char *expected = op == a ? cases[i].of_a : cases[i].of_transpose;
        REQUIRE(is_text(plans[of_file], op, SPARSERL_TEXT_EPILOGUE, expected));
        if (*expected) REQUIRE(text_has(plans[of_file], op, SPARSERL_TEXT_SOURCE, "epilogue(row, rounded(alpha, sum)"));
        else REQUIRE(has_no_epilogue(plans[of_file], op));
      }
      OK(sparserl_plan_destroy(plans[of_file]));
    }
  }
  /* A search chooses programs for both, too. */
  sparserl_plan *plan = NULL;
  OK(plan_of_sides(1000000, SIDES(TRANSPOSED("relu")), &plan));
  for (int32_t op = a; op <= transpose; ++op) REQUIRE(text_has(plan, op, SPARSERL_TEXT_WHY, "found right"));
  REQUIRE(has_no_epilogue(plan, a));
  REQUIRE(text_has(plan, transpose, SPARSERL_TEXT_SOURCE, "epilogue(row, rounded(alpha, sum)"));
  OK(sparserl_plan_destroy(plan));
}

/* Each epilogue is tried on its side, and on no other. */
static void tried_by_side(void) {
  /* Right but in a row that the transpose alone has. */
  static const char *const wrong = FUNCTION("if (row == 580) user.out[row + 1000000000] = 0;\nreturn product + old;");
  static const char *const right = FUNCTION("return product + old;");
  static const char *const out = "Scalar out[rows]";
  const struct setting of_both = OF_BOTH_SOURCE(wrong), with = OF_BOTH_USER(out);
  sparserl_plan *plan = NULL;
  FAILS(plan_of_sides(0, SIDES(of_both, with), &plan), SPARSERL_EPILOGUE,
        "of products with the transpose, the epilogue is refused: ");
  FAILS(plan_of_sides(0, SIDES(OF_BOTH_SOURCE(right), TRANSPOSED_SOURCE(wrong), TRANSPOSED_USER(out)), &plan),
        SPARSERL_EPILOGUE, "of products with the transpose, the epilogue is refused: ");
  REQUIRE(plan == NULL);
  OK(plan_of_sides(0, SIDES(of_both, with, TRANSPOSED_SOURCE(right)), &plan));
  OK(sparserl_plan_destroy(plan));
  OK(plan_of_sides(0, SIDES(of_both, with, TRANSPOSED("none")), &plan));
  OK(sparserl_plan_destroy(plan));
  plan = NULL;
  static const char *const nonsense = FUNCTION("return product + nonsense;");
  FAILS(plan_of_sides(0, SIDES(OF_BOTH_SOURCE(nonsense), TRANSPOSED_SOURCE(right)), &plan), SPARSERL_EPILOGUE,
        "the epilogue is refused: ");
  REQUIRE(!strstr(sparserl_last_error(), "transpose"));
  FAILS(plan_of_sides(0, SIDES(OF_BOTH_SOURCE(right), TRANSPOSED_SOURCE(nonsense)), &plan), SPARSERL_EPILOGUE,
        "of products with the transpose, the epilogue is refused: ");
  REQUIRE(plan == NULL);
}

/* What is said of one side goes together, whatever is said of the other. */
static void misused(void) {
  sparserl_plan *plan = NULL;
  FAILS(plan_of_sides(0, SIDES(TRANSPOSED("softmax")), &plan), SPARSERL_INVALID_ARGUMENT,
        "EPILOGUE is softmax: expected one of relu, bias, column_bias, clamp, axpy, dot_terms, none");
  FAILS(plan_of_sides(0, SIDES(TRANSPOSED("relu"), TRANSPOSED_SOURCE("x")), &plan), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_TRANSPOSED_EPILOGUE and SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE exclude each other");
  FAILS(plan_of_sides(0, SIDES(OF_BOTH_SOURCE("x"), TRANSPOSED_USER("Scalar a")), &plan), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER is of no use without SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE");
  FAILS(plan_of_sides(0, SIDES(TRANSPOSED("none"), TRANSPOSED_USER("Scalar a")), &plan), SPARSERL_INVALID_ARGUMENT,
        "TRANSPOSED_EPILOGUE none takes are known: leave out SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER");
  FAILS(plan_of_sides(0, SIDES(TRANSPOSED("column_bias")), &plan), SPARSERL_INVALID_ARGUMENT, "is for matrices");
  /* Without kernels for the transpose it would never be applied. */
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE, "none");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_TRANSPOSED_EPILOGUE is for products with the transpose: "
        "set SPARSERL_OPTION_TRANSPOSE_TOO = 1");
  OK(sparserl_options_destroy(options));
  REQUIRE(plan == NULL);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  struct grid g = make_grid(24);
  g.csr.cols += 5; /* Rows and columns differ. */
  context = open_without_device();
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  sparserl_plan *plan = NULL;

  OK(plan_with("const Scalar lower[rows]; Scalar step; Scalar moved[rows]",
               FUNCTION("const Scalar v = product + old;\n"
                        "user.moved[row] = v - user.step;\n"
                        "return v < user.lower[row] ? user.lower[row] : v;"),
               &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_SOURCE, "const Scalar* lower;"));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "user.moved[row] = v"));
  char path[4096];
  snprintf(path, sizeof path, "%s/fused.plan", arguments[1]);
  OK(sparserl_plan_save(plan, path));
  sparserl_plan *loaded = NULL;
  OK(sparserl_plan_load(context, matrix, path, &loaded));
  REQUIRE(text_has(loaded, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "user.moved[row] = v"));
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  plan = NULL;

  FAILS(plan_with(NULL, FUNCTION("return product + nonsense;"), &plan), SPARSERL_EPILOGUE,
        "epilogue(2): error: identifier \"nonsense\" is undefined");
  FAILS(plan_with(NULL, "__device__ int other() { return 1; }", &plan), SPARSERL_EPILOGUE, "epilogue");
  FAILS(plan_with(NULL, "#include <cmath>\n" FUNCTION("return product;"), &plan), SPARSERL_EPILOGUE,
        "#include");
  FAILS(plan_with("Scalar out[rows]", FUNCTION("user.out[row + 1] = 0; return product;"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_with("const Scalar in[rows]", FUNCTION("return product + user.in[row * 2];"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_with("const Scalar in[rows]", FUNCTION("((Scalar*)user.in)[row] = 1; return product;"), &plan),
        SPARSERL_EPILOGUE, "epilogue:2");
  FAILS(plan_with("Scalar out[rows]", FUNCTION("user.out[0] = product; return product;"), &plan),
        SPARSERL_EPILOGUE, "race");
  FAILS(plan_with(NULL, FUNCTION("for (;;) if (product == 1234.5) return old;"), &plan),
        SPARSERL_EPILOGUE, "");
  FAILS(plan_with("double x[rows]", FUNCTION("return product;"), &plan), SPARSERL_INVALID_ARGUMENT,
        "`double x[rows]` declares no value");
  REQUIRE(plan == NULL);

  matrices(arguments[1]);
  numbers();
  far_away();
  of_sides(arguments[1]);
  ready_of_sides(arguments[1]);
  tried_by_side();
  misused();

  static const char *const ready[] = {"relu", "bias", "clamp", "axpy", "dot_terms", "column_bias"};
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  const size_t of_both = sizeof ready / sizeof *ready - 1;
  for (size_t i = 0; i < of_both; ++i) {
    set_text(options, SPARSERL_OPTION_EPILOGUE, ready[i]);
    OK(sparserl_plan_create(context, matrix, options, &plan));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "epilogue(row, rounded(alpha, sum)"));
    OK(sparserl_plan_destroy(plan));
  }
  set_text(options, SPARSERL_OPTION_EPILOGUE, ready[of_both]);
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_EPILOGUE column_bias is for matrices: set SPARSERL_OPTION_COLUMNS");
  set_text(options, SPARSERL_OPTION_EPILOGUE, "softmax");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "EPILOGUE is softmax: expected one of relu, bias, column_bias, clamp, axpy, dot_terms, none");
  const uint64_t columns = 5;
  OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  for (size_t i = 0; i <= of_both; ++i) {
    set_text(options, SPARSERL_OPTION_EPILOGUE, ready[i]);
    OK(sparserl_plan_create(context, matrix, options, &plan));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "epilogue(row, column + v,"));
    OK(sparserl_plan_destroy(plan));
  }
  set_text(options, SPARSERL_OPTION_EPILOGUE_SOURCE, "x");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT, "exclude");
  OK(sparserl_options_destroy(options));

  /* A search chooses a program for the epilogue, too. */
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_EPILOGUE, "relu");
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "found right"));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_SOURCE, "epilogue(row, rounded(alpha, sum)"));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(matrix));
  OK(sparserl_context_destroy(context));
  free_grid(&g);
  return EXIT_SUCCESS;
}
