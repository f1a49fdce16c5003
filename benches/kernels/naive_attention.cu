// Causal attention as the paper had it before (section 5): a block for each query and head, a serial dot product for each key,
// a softmax by one thread. Only here, for the comparison of table 4.
#include "math.cuh"

#define NAIVE_THREADS 256

// q `[T, H * D]`, rows `q_stride` apart; keys and values `[S, G * D]`; out `[T, H * D]`; scores `[blocks, S]`. Query t stands at
// position `history` + t, and head h reads the keys of group h / (H / G).
KERNEL(256)
naive_attention(const float* q, const float* keys, const float* values, float* out, float* scores, u64 tokens, u64 history,
                u64 heads, u64 groups, u64 width, u64 q_stride, u64 q_head_stride, float scale) {
    SHARED float query[NAIVE_THREADS];
    SHARED float inverse[1];
    u64 capacity = history + tokens, kv_stride = groups * width;
    float* own = scores + block_index() * capacity;
    FOR_EACH_BLOCK_ITEM(item, tokens * heads) {
        u64 token = item / heads, head = item % heads, group = head / (heads / groups), visible = history + token + 1;
        if (thread_index() < width) query[thread_index()] = q[token * q_stride + head * q_head_stride + thread_index()];
        barrier();
        for (u64 s = thread_index(); s < visible; s += block_size()) {
            const float* key = keys + s * kv_stride + group * width;
            float sum = 0.0f;
            for (u64 d = 0; d < width; d++) sum = fused(query[d], key[d], sum);
            own[s] = sum * scale;
        }
        barrier();
        if (thread_index() == 0) {
            float most = -INFINITY_F, sum = 0.0f;
            for (u64 s = 0; s < visible; s++) most = largest(most, own[s]);
            for (u64 s = 0; s < visible; s++) {
                own[s] = exponential(own[s] - most);
                sum += own[s];
            }
            inverse[0] = 1.0f / sum;
        }
        barrier();
        for (u64 d = thread_index(); d < width; d += block_size()) {
            float sum = 0.0f;
            for (u64 s = 0; s < visible; s++) sum = fused(own[s], values[s * kv_stride + group * width + d], sum);
            out[(token * heads + head) * width + d] = sum * inverse[0];
        }
        barrier();
    }
}

ENTRY(naive_attention)
