// launch: k<<<dim3(ceil(num_rows / 4), dense_cols / 32), dim3(32, 4), nnz * 4 + num_cols>>>(
//     y, x, row_offsets, num_rows + 1)
#define Q "'"
const char* text = R"x(__global__ void no() ")x"; const int big = 1'000;
template <int N> __global__ void t(double* y) { y[0] = N; }
extern "C" __global__ void __launch_bounds__(256) k(double* y, double const* x, const unsigned* rows, int m) { y[0] = x[0]; }
__global__ void k(double* y, double const* x, const unsigned* rows, int m);
