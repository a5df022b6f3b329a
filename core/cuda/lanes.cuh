#pragma once
#if ALL_ROWS
#define position row
#endif
#if STRIDE == 1
#define THREADS LANES
#elif LANES == 1
#define THREADS STRIDE
#else
constexpr u32 THREADS = LANES * STRIDE;
#endif
#if LANES * STRIDE == 1
const u32 position = block * BLOCK + threadIdx.x;
#else
const u32 position = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
#endif
#if LANES > 1
const u32 lane = threadIdx.x / STRIDE % LANES;
#endif
