// Where the matrices of a batch lie, for cuBLAS: entry i of an input lies i / repeat strides from its first.
#include "cuda.cuh"

KERNEL(256)
batch_pointers(u64* pointers, u64 batch, u64 a, u64 a_stride, u64 a_repeat, u64 b, u64 b_stride, u64 b_repeat, u64 c,
               u64 c_stride) {
    FOR_EACH_THREAD_ITEM(i, batch) {
        pointers[i] = a + i / a_repeat * a_stride;
        pointers[batch + i] = b + i / b_repeat * b_stride;
        pointers[2 * batch + i] = c + i * c_stride;
    }
}
