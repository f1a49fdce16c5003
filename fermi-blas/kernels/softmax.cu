// Softmax over rows, one block a row, with tree reductions (paper, section 5.1).
#include "reduce.cuh"

// Threads of a block.
#define THREADS REDUCE_THREADS

// Values of a row that a thread keeps in registers.
#define HELD 4

// The row is read once and written once.
DEVICE void held_softmax_row(float* x, u32 visible, u32 columns, float scale, float* partial) {
    float value[HELD], most = LOWEST_F, sum = 0.0f;
    UNROLL
    for (u32 i = 0; i < HELD; i++) {
        u32 c = i * THREADS + thread_index();
        value[i] = c < visible ? x[c] : 0.0f;
        if (c < visible) most = largest(most, value[i] * scale);
    }
    most = block_largest(most, partial);
    UNROLL
    for (u32 i = 0; i < HELD; i++) {
        u32 c = i * THREADS + thread_index();
        if (c < visible) sum += value[i] = negative_exponential(fused(value[i], scale, -most));
    }
    float inverse = 1.0f / block_sum(sum, partial);
    UNROLL
    for (u32 i = 0; i < HELD; i++) {
        u32 c = i * THREADS + thread_index();
        if (c < columns) x[c] = c < visible ? value[i] * inverse : 0.0f;
    }
}

// The row is read twice and written once: whenever a thread meets a larger value, what it has summed shrinks to the new scale.
DEVICE void long_softmax_row(float* x, float* visible_end, float* end, float scale, float* partial) {
    float most = LOWEST_F, sum = 0.0f;
    float* at = x + thread_index();
    for (; at + 3 * THREADS < visible_end; at += 4 * THREADS) {
        float a = at[0], b = at[THREADS], c = at[2 * THREADS], d = at[3 * THREADS];
        float next = largest(largest(most, a * scale), b * scale);
        next = largest(largest(next, c * scale), d * scale);
        sum *= negative_exponential(most - next);
        sum += negative_exponential(fused(a, scale, -next)) + negative_exponential(fused(b, scale, -next));
        sum += negative_exponential(fused(c, scale, -next)) + negative_exponential(fused(d, scale, -next));
        most = next;
    }
    for (; at < visible_end; at += THREADS) {
        float next = largest(most, *at * scale);
        sum = fused(sum, negative_exponential(most - next), negative_exponential(fused(*at, scale, -next)));
        most = next;
    }
    float row = block_largest(most, partial);
    float inverse = 1.0f / block_sum(sum * negative_exponential(most - row), partial);
    at = x + thread_index();
    UNROLL_4
    for (; at < visible_end; at += THREADS) *at = negative_exponential(fused(*at, scale, -row)) * inverse;
    for (; at < end; at += THREADS) *at = 0.0f;
}

// The first `visible` values of a row become softmax(x * scale), the others 0.
DEVICE void softmax_row(float* x, u64 visible, u64 columns, float scale, float* partial) {
    if (columns <= HELD * THREADS) {
        held_softmax_row(x, (u32)visible, (u32)columns, scale, partial);
    } else {
        long_softmax_row(x, x + visible, x + columns, scale, partial);
    }
}

KERNEL(THREADS)
softmax(float* x, u64 rows, u64 columns, u64 stride, float scale) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) softmax_row(x + row * stride, columns, columns, scale, partial);
}

// Row r belongs to query r / heads, which sees the keys 0 ..= positions[r / heads] (paper, section 5.3).
KERNEL(THREADS)
causal_softmax(float* x, const u32* positions, u64 rows, u64 columns, u64 stride, u64 heads, float scale) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        u64 visible = (u64)positions[row / heads] + 1;
        softmax_row(x + row * stride, visible < columns ? visible : columns, columns, scale, partial);
    }
}
