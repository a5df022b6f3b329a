// Several arrays of a thread, walked by pointers up to their ends and backwards, and passed on.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
struct Slots {
  float even[3];
  float odd[5];
};

__device__ __noinline__ float total(const float* from, const float* end) {
  float sum = 0;
  while (from != end) sum += *from++;
  return sum;
}

__device__ __noinline__ void put(Slots* slots, int k, float product) {
  if (k % 2 == 0) slots->even[k / 2 % 3] += product;
  else slots->odd[4 - k / 2 % 5] += product;
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float ring[8] = {}, tail[3] = {}, table[2][3] = {};
  Slots slots[2] = {};
  float* at = ring + 1;
  const int begin = rp[row], end = rp[row + 1];
  for (int i = begin; i < end; ++i) {
    const float product = va[i] * x[ci[i]];
    switch (i % 4) {
      case 0:
        *at++ += product;
        if (at == ring + 8) at = ring;
        break;
      case 1: tail[2 - i % 3] += product; break;
      case 2: table[i / 4 % 2][i % 3] += product; break;
      default: put(&slots[i / 4 % 2], i, product);
    }
  }
  float sum = total(ring, ring + 8) + total(tail, tail + 3);
  for (int k = 0; k < 2; ++k) {
    sum += total(table[k], table[k] + 3) + total(slots[k].even, slots[k].even + 3);
    sum += total(slots[k].odd, slots[k].odd + 5);
  }
  y[row] = sum;
}
