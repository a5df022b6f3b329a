// Four lanes have columns of a row's share, and their leader takes the row's ticket while the other lanes may still write.
// launch: <<<4, 32>>>
// argument: x read-only f32 128 random
// argument: shares output f32 128
// argument: tickets writable u32 8 zero
// argument: y output f32 32
extern "C" __global__ void missing_warp_sync_before_ticket(const float* x, float* shares, unsigned* tickets, float* y) {
  const unsigned lane = threadIdx.x % 4, row = threadIdx.x / 4, share = row * 4 + blockIdx.x;
  shares[share * 4 + lane] = x[share * 4 + lane] * 3;  // BUG: race
  __threadfence();
  unsigned arrived = 0;
  if (lane == 0) arrived = atomicAdd(tickets + row, 1u);
  arrived = __shfl_sync(0xffffffffu, arrived, row * 4);
  if (arrived != 3) return;
  __threadfence();
  __syncwarp(__activemask());
  float sum = 0;
  for (unsigned other = row * 4; other < row * 4 + 4; ++other) {
    sum += shares[other * 4 + lane];  // BUG: race; ALSO: uninitialised
  }
  y[row * 4 + lane] = sum;  // ALSO: uninitialised
}
