/* Epilogues on the driver without a GPU (driver.c): what they are given, and what is looked at. The first argument is a
 * folder to write to. */
#include "driver.h"
#include "grid_product.h"

static struct grid g;
static sparserl_context *context;
static sparserl_matrix *matrix;
static stream_t stream;
static const double one = 1, zero = 0;

/* What a user block points to is looked at as vectors are. */
static void looked_at(void) {
  const size_t bytes = (size_t)g.csr.rows * sizeof(double);
  double *x = device_memory(bytes);
  const struct {
    const double *lower, *upper;
  } user = {x, x};
  double *z = device_memory(bytes);
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_EPILOGUE, "clamp");
  set_calls(options, 0);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  FAILS(sparserl_execute(plan, stream, &one, x, &one, z, z), SPARSERL_NULL_POINTER, "user is NULL");
  OK(sparserl_execute_op(plan, 0, stream, &one, x, &one, z, z, &user));
  OK(sparserl_execute_op(plan, 0, stream, &one, x, &zero, NULL, z, &user));
  const long launches = driver_launches();
  const double host = 0;
  const struct {
    const double *lower, *upper;
  } wrong[] = {{x, NULL}, {&host, x}, {x, x + 1}, {(const double *)((const char *)x + 4), x}};
  FAILS(sparserl_execute_op(plan, 0, stream, &one, x, &one, z, z, &wrong[0]), SPARSERL_NULL_POINTER,
        "user.upper is NULL");
  FAILS(sparserl_execute_op(plan, 0, stream, &one, x, &one, z, z, &wrong[1]), SPARSERL_INVALID_ARGUMENT,
        "user.lower is no pointer to device memory");
  FAILS(sparserl_execute_op(plan, 0, stream, &one, x, &one, z, z, &wrong[2]), SPARSERL_INVALID_ARGUMENT,
        "user.upper: 3200 bytes are needed, and 3192 are left");
  FAILS(sparserl_execute_op(plan, 0, stream, &one, x, &one, z, z, &wrong[3]), SPARSERL_INVALID_ARGUMENT,
        "user.lower is not aligned to 8 bytes");
  REQUIRE(driver_launches() == launches);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  device_free(x);
  device_free(z);
}

/* Each side is given the user block of its own epilogue, whose arrays are as long as its result, in the kernel that is
 * there at once, in the better one, and in those of a file. */
static void by_side(const char *folder) {
  /* Fewer rows than columns: no array of one side is long enough for the other. */
  sparserl_csr few = g.csr;
  few.rows = 300;
  few.nnz = g.row_offsets[few.rows];
  sparserl_matrix *wide = NULL;
  OK(sparserl_matrix_create(context, &few, &wide));
  const size_t lengths[] = {(size_t)few.rows, (size_t)few.cols};
  double *vectors[2], *bias[2];
  for (int side = 0; side < 2; ++side) {
    vectors[side] = device_memory(lengths[side] * sizeof(double));
    bias[side] = device_memory(lengths[side] * sizeof(double));
  }
  const double *const none[] = {NULL};
  char path[4096];
  snprintf(path, sizeof path, "%s/sides.plan", folder);
  for (int32_t with = SPARSERL_OP_NONE; with <= SPARSERL_OP_TRANSPOSE; ++with) {
    const int32_t without = !with;
    const double *const user[] = {bias[with]};
    sparserl_options *options = NULL;
    sparserl_plan *plan = NULL, *loaded = NULL;
    OK(sparserl_options_create(&options));
    set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
    set_int(options, SPARSERL_OPTION_MEASURE, 0);
    set_calls(options, 100000000);
    set_text(options, SPARSERL_OPTION_EPILOGUE, with ? "relu" : "bias");
    set_text(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE, with ? "bias" : "none");
    OK(sparserl_plan_create(context, wide, options, &plan));
    for (int kernels = 0; kernels < 3; ++kernels) {
      if (kernels == 1) OK(sparserl_plan_wait(plan));
      if (kernels == 2) {
        OK(sparserl_plan_save(plan, path));
        OK(sparserl_plan_load(context, wide, path, &loaded));
      }
      sparserl_plan *const asked = kernels == 2 ? loaded : plan;
      for (int has_old = 0; has_old < 2; ++has_old) {
        const double *beta = has_old ? &one : &zero, *x = vectors[without];
        double *z = vectors[with];
        OK(sparserl_execute_op(asked, with, stream, &one, x, beta, z, z, user));
        REQUIRE(driver_launched_with(bias[with], 1) == 1);
        FAILS(sparserl_execute_op(asked, with, stream, &one, x, beta, z, z, NULL), SPARSERL_NULL_POINTER,
              "user is NULL");
        FAILS(sparserl_execute_op(asked, with, stream, &one, x, beta, z, z, none), SPARSERL_NULL_POINTER,
              "user.bias is NULL");
        /* The other one has nothing to be given. */
        OK(sparserl_execute_op(asked, without, stream, &one, z, beta, vectors[without], vectors[without], NULL));
        OK(sparserl_execute_op(asked, without, stream, &one, z, beta, vectors[without], vectors[without], user));
        REQUIRE(driver_launched_with(bias[with], 1) == 0);
      }
    }
    /* An array of the other side's length is too short, where its result is the shorter one. */
    if (with == SPARSERL_OP_TRANSPOSE) {
      const double *const shorter[] = {bias[without]};
      FAILS(sparserl_execute_op(plan, with, stream, &one, vectors[without], &zero, NULL, vectors[with], shorter),
            SPARSERL_INVALID_ARGUMENT, "user.bias: 3200 bytes are needed, and 2400 are left");
    }
    for (int32_t op = SPARSERL_OP_NONE; op <= SPARSERL_OP_TRANSPOSE; ++op)
      REQUIRE(text_has(plan, op, SPARSERL_TEXT_WHY, "chosen by the cost model"));
    OK(sparserl_plan_destroy(loaded));
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_options_destroy(options));
  }
  for (int side = 0; side < 2; ++side) {
    device_free(vectors[side]);
    device_free(bias[side]);
  }
  OK(sparserl_matrix_destroy(wide));
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  g = make_grid(20);
  context = open_by_cost_model(1);
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  driver_set_current(0);
  stream = driver_stream(0);
  looked_at();
  by_side(arguments[1]);
  OK(sparserl_matrix_destroy(matrix));
  OK(sparserl_context_destroy(context));
  /* All memory, modules and streams are given back. */
  REQUIRE(driver_taken() == 0);
  free(stream);
  free_grid(&g);
  return EXIT_SUCCESS;
}
