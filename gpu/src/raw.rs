//! CUDA kernels from anywhere, over plain CSR.
