// Rotary positions on pairs (i, i + half): (a, b) becomes (a cos - b sin, b cos + a sin).
#include "math.cuh"

KERNEL(256)
rotary(float* x, const u32* positions, const float* cosines, const float* sines, u64 batch, u64 rows, u64 half,
       u64 batch_stride, u64 row_stride) {
    FOR_EACH_THREAD_ITEM(item, batch * rows * half) {
        u64 i = item % half, entry = item / half % batch, row = item / half / batch;
        u64 angle = positions[row] * half + i;
        float* pair = x + entry * batch_stride + row * row_stride + i;
        float a = pair[0], b = pair[half], cosine = cosines[angle], sine = sines[angle];
        pair[0] = fused(a, cosine, -(b * sine));
        pair[half] = fused(b, cosine, a * sine);
    }
}

ENTRY(rotary)
