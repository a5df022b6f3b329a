/* A Poisson problem solved by PETSc, with SparseRL's products as a matrix of PETSc's (MATSHELL).
 *   mpicc petsc.c $(pkg-config --cflags --libs PETSc sparserl) -lcudart -o petsc && ./petsc -ksp_monitor
 * The vectors of a PETSc without CUDA, as Debian has it, are on the host, and each product copies its two;
 * those of a PETSc with CUDA are used where they are (-vec_type cuda). Where there is no CUDA,
 * -DWITHOUT_CUDA in place of -lcudart makes the plan, and products are PETSc's own. */
#include <petscksp.h>
#include <sparserl.h>
#ifndef WITHOUT_CUDA
#include <cuda_runtime_api.h>
#endif
#if defined(PETSC_USE_COMPLEX) || !defined(PETSC_USE_REAL_DOUBLE)
#error "SparseRL has real numbers: PETSc has to be one of double precision without complex numbers"
#endif

#define CHECK(call) \
  PetscCheck((call) == SPARSERL_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_LIB, "SparseRL: %s", sparserl_last_error())
#define CUDA(call) \
  PetscCheck((call) == cudaSuccess, PETSC_COMM_SELF, PETSC_ERR_LIB, "CUDA: %s", cudaGetErrorString(cudaGetLastError()))

/* What the shell multiplies by. */
typedef struct {
  Mat csr;
  sparserl_plan *plan;
  double *x, *y; /* On the device, for vectors that are not. */
} Product;

#ifdef WITHOUT_CUDA
static PetscErrorCode multiply(const Product *product, int32_t op, Vec x, Vec y) {
  return op == SPARSERL_OP_NONE ? MatMult(product->csr, x, y) : MatMultTranspose(product->csr, x, y);
}
#else
static PetscErrorCode multiply(const Product *product, int32_t op, Vec x, Vec y) {
  const PetscScalar *from, one = 1, zero = 0;
  PetscScalar *to;
  PetscMemType from_type, to_type;
  PetscInt from_size, to_size;
  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &from_size));
  PetscCall(VecGetLocalSize(y, &to_size));
  PetscCall(VecGetArrayReadAndMemType(x, &from, &from_type));
  PetscCall(VecGetArrayWriteAndMemType(y, &to, &to_type));
  const int is_from_host = PetscMemTypeHost(from_type), is_to_host = PetscMemTypeHost(to_type);
  if (is_from_host) CUDA(cudaMemcpy(product->x, from, (size_t)from_size * sizeof *from, cudaMemcpyHostToDevice));
  CHECK(sparserl_execute_op(product->plan, op, NULL, &one, is_from_host ? product->x : from, &zero, NULL,
                            is_to_host ? product->y : to, NULL));
  if (is_to_host) CUDA(cudaMemcpy(to, product->y, (size_t)to_size * sizeof *to, cudaMemcpyDeviceToHost));
  PetscCall(VecRestoreArrayWriteAndMemType(y, &to));
  PetscCall(VecRestoreArrayReadAndMemType(x, &from));
  PetscFunctionReturn(0);
}
#endif

static PetscErrorCode multiply_by_matrix(Mat shell, Vec x, Vec y) {
  Product *product;
  PetscFunctionBegin;
  PetscCall(MatShellGetContext(shell, &product));
  PetscCall(multiply(product, SPARSERL_OP_NONE, x, y));
  PetscFunctionReturn(0);
}

static PetscErrorCode multiply_by_transpose(Mat shell, Vec x, Vec y) {
  Product *product;
  PetscFunctionBegin;
  PetscCall(MatShellGetContext(shell, &product));
  PetscCall(multiply(product, SPARSERL_OP_TRANSPOSE, x, y));
  PetscFunctionReturn(0);
}

/* A plan for a matrix of this process, of which it keeps a copy. */
static PetscErrorCode plan_of(Mat csr, sparserl_context *context, sparserl_plan **plan) {
  const PetscInt *offsets, *columns;
  const PetscScalar *values;
  PetscInt rows;
  PetscBool done;
  sparserl_csr given = {0};
  sparserl_matrix *matrix;
  sparserl_options *options;
  const int32_t transpose_too = 1, integer = sizeof(PetscInt) == 8 ? SPARSERL_I64 : SPARSERL_I32;
  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(csr, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, &columns, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "the matrix is not in CSR (MATSEQAIJ)");
  PetscCall(MatSeqAIJGetArrayRead(csr, &values));
  given.rows = given.cols = rows;
  given.nnz = offsets[rows];
  given.row_offsets = offsets;
  given.column_indices = columns;
  given.values = values;
  given.offset_type = given.index_type = integer;
  given.value_type = SPARSERL_F64;
  CHECK(sparserl_matrix_create(context, &given, &matrix));
  PetscCall(MatSeqAIJRestoreArrayRead(csr, &values));
  PetscCall(MatRestoreRowIJ(csr, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, &columns, &done));
  CHECK(sparserl_options_create(&options));
  CHECK(sparserl_options_set(options, SPARSERL_OPTION_TRANSPOSE_TOO, &transpose_too, sizeof transpose_too));
  CHECK(sparserl_plan_create(context, matrix, options, plan));
  CHECK(sparserl_options_destroy(options));
  CHECK(sparserl_matrix_destroy(matrix));
  PetscFunctionReturn(0);
}

/* The five-point Laplacian on a square. */
static PetscErrorCode laplacian(PetscInt side, Mat *csr) {
  const PetscInt rows = side * side;
  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, rows, rows, 5, NULL, csr));
  for (PetscInt row = 0; row < rows; ++row) {
    const PetscInt i = row / side, j = row % side;
    const PetscInt columns[] = {i > 0 ? row - side : -1, j > 0 ? row - 1 : -1, row, j + 1 < side ? row + 1 : -1,
                                i + 1 < side ? row + side : -1};
    const PetscScalar values[] = {-1, -1, 4, -1, -1};
    /* Negative columns are left out. */
    PetscCall(MatSetValues(*csr, 1, &row, 5, columns, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*csr, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*csr, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

int main(int count, char **arguments) {
  PetscInt side = 100, rows, iterations;
  PetscReal error;
  Mat shell;
  Vec solution, right, found;
  KSP solver;
  PC preconditioner;
  Product product = {0};
  sparserl_context *context;
  char why[512];
  size_t length;
  PetscCall(PetscInitialize(&count, &arguments, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));
  rows = side * side;
  PetscCall(laplacian(side, &product.csr));
  CHECK(sparserl_context_create(NULL, &context));
  PetscCall(plan_of(product.csr, context, &product.plan));
#ifndef WITHOUT_CUDA
  CUDA(cudaMalloc((void **)&product.x, (size_t)rows * sizeof *product.x));
  CUDA(cudaMalloc((void **)&product.y, (size_t)rows * sizeof *product.y));
#endif

  PetscCall(MatCreateShell(PETSC_COMM_SELF, rows, rows, rows, rows, &product, &shell));
  PetscCall(MatShellSetOperation(shell, MATOP_MULT, (void (*)(void))multiply_by_matrix));
  PetscCall(MatShellSetOperation(shell, MATOP_MULT_TRANSPOSE, (void (*)(void))multiply_by_transpose));
  PetscCall(VecCreate(PETSC_COMM_SELF, &solution));
  PetscCall(VecSetSizes(solution, rows, rows));
  PetscCall(VecSetFromOptions(solution));
  PetscCall(VecDuplicate(solution, &right));
  PetscCall(VecDuplicate(solution, &found));
  PetscCall(VecSet(solution, 1));
  PetscCall(MatMultTranspose(shell, solution, right)); /* The matrix is symmetric. */

  /* Products are the shell's; the preconditioner is made of the matrix. */
  PetscCall(KSPCreate(PETSC_COMM_SELF, &solver));
  PetscCall(KSPSetOperators(solver, shell, product.csr));
  PetscCall(KSPSetType(solver, KSPCG));
  PetscCall(KSPGetPC(solver, &preconditioner));
  PetscCall(PCSetType(preconditioner, PCJACOBI));
  PetscCall(KSPSetTolerances(solver, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 10000));
  PetscCall(KSPSetFromOptions(solver));
  PetscCall(KSPSolve(solver, right, found));
  PetscCall(KSPGetIterationNumber(solver, &iterations));
  PetscCall(VecAXPY(found, -1, solution));
  PetscCall(VecNorm(found, NORM_INFINITY, &error));
  CHECK(sparserl_plan_text(product.plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, why, sizeof why, &length));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "kernel: %s\n", why));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%" PetscInt_FMT " iterations, off by %g at most\n", iterations, (double)error));
  PetscCheck(error < 1e-6, PETSC_COMM_SELF, PETSC_ERR_NOT_CONVERGED, "the solution is wrong");

  PetscCall(KSPDestroy(&solver));
  PetscCall(VecDestroy(&found));
  PetscCall(VecDestroy(&right));
  PetscCall(VecDestroy(&solution));
  PetscCall(MatDestroy(&shell));
#ifndef WITHOUT_CUDA
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(product.x));
  CUDA(cudaFree(product.y));
#endif
  CHECK(sparserl_plan_destroy(product.plan));
  CHECK(sparserl_context_destroy(context));
  PetscCall(MatDestroy(&product.csr));
  PetscCall(PetscFinalize());
  return 0;
}
