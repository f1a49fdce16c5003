// Softmax over rows, one block a row, with tree reductions (paper, section 5.1).
//
// Row r of causal attention belongs to query r / heads, which sees the keys 0 ..= positions[r / heads] (paper, section 5.3); what it
// does not see becomes 0. Without positions every value counts. Between reading and writing, a row of up to 1,024 values waits in
// registers, one of up to 12,000 in shared memory; a longer one is read twice.
#include "reduce.cuh"

#define THREADS REDUCE_THREADS

// Values that a thread keeps in registers.
#define HELD 4

// Values that a thread asks for before the first has come.
#define AHEAD 8

DEVICE u64 visible_columns(const u32* positions, u64 row, u64 heads, u64 columns) {
    u64 visible = positions ? (u64)positions[row / heads] + 1 : columns;
    return visible < columns ? visible : columns;
}

KERNEL(THREADS)
softmax_held(float* rows_of_x, const u32* positions, u64 rows, u64 columns, u64 stride, u64 heads, float scale) {
    SHARED float partial[THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        float* x = rows_of_x + row * stride;
        u32 visible = (u32)visible_columns(positions, row, heads, columns);
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
}

KERNEL(THREADS)
softmax_kept(float* rows_of_x, const u32* positions, u64 rows, u64 columns, u64 stride, u64 heads, float scale) {
    SHARED float partial[THREADS];
    LAUNCH_SHARED(float, kept);  // [columns]; each thread reads what it has written itself
    FOR_EACH_BLOCK_ITEM(row, rows) {
        float* x = rows_of_x + row * stride;
        u32 visible = (u32)visible_columns(positions, row, heads, columns);
        float most = LOWEST_F, sum = 0.0f;
        for (u32 start = thread_index(); start < visible; start += AHEAD * THREADS) {
            float value[AHEAD];
            UNROLL
            for (u32 i = 0; i < AHEAD; i++) {
                u32 c = start + i * THREADS;
                if (c < visible) value[i] = x[c];
            }
            UNROLL
            for (u32 i = 0; i < AHEAD; i++) {
                u32 c = start + i * THREADS;
                if (c < visible) most = largest(most, (kept[c] = value[i]) * scale);
            }
        }
        most = block_largest(most, partial);
        UNROLL_4
        for (u32 c = thread_index(); c < visible; c += THREADS) {
            sum += kept[c] = negative_exponential(fused(kept[c], scale, -most));
        }
        float inverse = 1.0f / block_sum(sum, partial);
        u32 c = thread_index();
        UNROLL_4
        for (; c < visible; c += THREADS) x[c] = kept[c] * inverse;
        for (; c < columns; c += THREADS) x[c] = 0.0f;
    }
}

KERNEL(THREADS)
softmax_long(float* rows_of_x, const u32* positions, u64 rows, u64 columns, u64 stride, u64 heads, float scale) {
    SHARED float partial[THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        float* x = rows_of_x + row * stride;
        u64 visible = visible_columns(positions, row, heads, columns);
        float most = LOWEST_F, sum = 0.0f;
        // Whenever a thread meets a larger value, what it has summed shrinks to the new scale.
        for (u64 c = thread_index(); c < visible; c += THREADS) {
            float value = x[c], next = largest(most, value * scale);
            float shrink = negative_exponential(most - next);
            sum = fused(sum, shrink, negative_exponential(fused(value, scale, -next)));
            most = next;
        }
        float all = block_largest(most, partial);
        float inverse = 1.0f / block_sum(sum * negative_exponential(most - all), partial);
        u64 c = thread_index();
        for (; c < visible; c += THREADS) x[c] = negative_exponential(fused(x[c], scale, -all)) * inverse;
        for (; c < columns; c += THREADS) x[c] = 0.0f;
    }
}

ENTRY(softmax_held)
ENTRY(softmax_kept)
ENTRY(softmax_long)
