// The last copies are not waited for.
// SAYS: to which an asynchronous copy is under way, issued at spmv.cu:18
// SAYS: the warp has waited last at spmv.cu:20
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows, nnz)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows, int nnz)
{
    __shared__ float kept[512];
    const int lane = threadIdx.x, first = blockIdx.x * 32, row = first + lane;
    const int begin = row_offsets[first], end = row_offsets[min(first + 32, num_rows)];
    float sum = 0.0f;
    for (int base = begin; base < end; base += 512) {
        __syncwarp();
        for (int i = lane; i < 512 && base + i < end; i += 32) {
            const unsigned to = (unsigned)__cvta_generic_to_shared(kept + i);
            const float* from = values + base + i;
            // One of many copies of four bytes.
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(from) : "memory");
        }
        asm volatile("cp.async.commit_group; cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        if (row < num_rows)
            for (int j = max(row_offsets[row], base); j < min(row_offsets[row + 1], base + 512); ++j)
                sum += kept[j - base] * x[columns[j]];
    }
    if (row < num_rows) y[row] = sum;
}
