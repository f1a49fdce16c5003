// Brings the chunks' outputs to their tokens.
#include "math.cuh"

#define LANES 32
#define ROWS 8  // tokens of a block

KERNEL(256)
chunk_scatter(const float* outputs, float* out, u64 tokens, u64 heads, u64 padded, u64 value_width, u64 out_stride) {
    u32 lane = thread_index() % LANES, slot = thread_index() / LANES;
    u64 groups = (tokens + ROWS - 1) / ROWS;
    FOR_EACH_BLOCK_ITEM(item, heads * groups) {
        u64 head = item / groups, token = item % groups * ROWS + slot;
        if (token >= tokens) continue;
        const float* from = outputs + (head * padded + token) * value_width;
        float* to = out + token * out_stride + head * value_width;
        for (u64 d = lane; d < value_width; d += LANES) to[d] = from[d];
    }
}

ENTRY(chunk_scatter)
