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
        "the epilogue column_bias is for matrices: set SPARSERL_OPTION_COLUMNS");
  set_text(options, SPARSERL_OPTION_EPILOGUE, "softmax");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "there is no epilogue softmax: expected one of relu, bias, column_bias, clamp, axpy, dot_terms");
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
