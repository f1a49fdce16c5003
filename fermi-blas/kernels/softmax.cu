// Softmax over rows, one block a row, with tree reductions (paper, section 5.1).
#include "reduce.cuh"

// The first `visible` values of a row become softmax(x * scale), the others 0.
DEVICE void softmax_row(float* x, u64 visible, u64 columns, float scale, float* partial) {
    float most = -INFINITY_F;
    for (u64 c = thread_index(); c < visible; c += block_size()) most = largest(most, x[c] * scale);
    most = block_largest(most, partial);
    float sum = 0.0f;
    for (u64 c = thread_index(); c < visible; c += block_size()) {
        float e = exponential(fused(x[c], scale, -most));
        x[c] = e;
        sum += e;
    }
    float inverse = 1.0f / block_sum(sum, partial);
    for (u64 c = thread_index(); c < columns; c += block_size()) x[c] = c < visible ? x[c] * inverse : 0.0f;
    barrier();
}

KERNEL(256)
softmax(float* x, u64 rows, u64 columns, u64 stride, float scale) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) softmax_row(x + row * stride, columns, columns, scale, partial);
}

// Row r belongs to query r / heads, which sees the keys 0 ..= positions[r / heads] (paper, section 5.3).
KERNEL(256)
causal_softmax(float* x, const u32* positions, u64 rows, u64 columns, u64 stride, u64 heads, float scale) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        u64 visible = (u64)positions[row / heads] + 1;
        softmax_row(x + row * stride, visible < columns ? visible : columns, columns, scale, partial);
    }
}
