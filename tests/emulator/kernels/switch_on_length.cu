// Short rows are unrolled by a switch.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=4
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void switch_on_length(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = row_ptr[row], length = row_ptr[row + 1] - begin;
  const int* c = columns + begin;
  const float* v = values + begin;
  float sum = 0;
  switch (length) {
    case 0: break;
    case 6: sum += v[5] * x[c[5]]; [[fallthrough]];
    case 5: sum += v[4] * x[c[4]]; [[fallthrough]];
    case 4: sum += v[3] * x[c[3]]; [[fallthrough]];
    case 3: sum += v[2] * x[c[2]]; [[fallthrough]];
    case 2: sum += v[1] * x[c[1]]; [[fallthrough]];
    case 1: sum += v[0] * x[c[0]]; break;
    case 7: sum = v[0] * x[c[0]] + v[1] * x[c[1]] + v[2] * x[c[2]] + v[3] * x[c[3]] + v[4] * x[c[4]] + v[5] * x[c[5]] + v[6] * x[c[6]]; break;
    default:
      for (int i = 0; i < length; ++i) sum += v[i] * x[c[i]];
  }
  y[row] = sum;
}
