// Sums and maxima over the threads of a block, by halving in shared memory.
#pragma once
#include "math.cuh"

// Threads of every block that reduces; a power of two.
#define REDUCE_THREADS 256

// The sum of every thread's value, in all threads. `partial` holds a value a thread.
DEVICE float block_sum(float value, float* partial) {
    u32 thread = thread_index();
    partial[thread] = value;
    barrier();
    for (u32 step = block_size() / 2; step > 0; step /= 2) {
        if (thread < step) partial[thread] += partial[thread + step];
        barrier();
    }
    float sum = partial[0];
    barrier();
    return sum;
}

// The largest of every thread's value, in all threads; NaN only if that of thread 0 is.
DEVICE float block_largest(float value, float* partial) {
    u32 thread = thread_index();
    partial[thread] = value;
    barrier();
    for (u32 step = block_size() / 2; step > 0; step /= 2) {
        if (thread < step) partial[thread] = largest(partial[thread], partial[thread + step]);
        barrier();
    }
    float most = partial[0];
    barrier();
    return most;
}
