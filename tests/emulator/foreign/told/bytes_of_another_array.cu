// The mbarrier waits for the bytes of as many elements as the matrix has rows.
// SAYS: and bytes were expected last at spmv.cu:22
// launch: spmv<<<ceil(num_rows / 128), 128, 16 + 4 * num_cols>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows, int num_cols)
{
    extern __shared__ __align__(16) char memory[];
    float* copy = (float*)(memory + 16);
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(memory);
    const unsigned target = (unsigned)__cvta_generic_to_shared(copy);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned bytes = num_cols * 4;
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(target), "l"(x), "r"(bytes), "r"(barrier)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "r"(num_rows * 4) : "memory");
    }
    unsigned ended = 0;
    while (!ended)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(ended) : "r"(barrier) : "memory");
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j)
        sum += values[j] * copy[columns[j]];
    y[row] = sum;
}
