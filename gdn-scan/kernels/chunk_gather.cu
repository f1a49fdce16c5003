// Copies what the chunks need out of the strided inputs: keys and queries normalised and scaled, queries decayed from the
// chunk's start, values, and each token's factors.
#include "math.cuh"

#define LANES 32   // threads of a token: a warp, so that it reads and writes whole lines
#define TOKENS 8   // tokens of a block
#define BATCH 4    // loads that are under way together

DEVICE float sum_of_lanes(const float* values) {
    float sum = 0.0f;
UNROLL
    for (u32 lane = 0; lane < LANES; lane += 4) {
        float4 four = *(const float4*)(values + lane);
        sum += (four.x + four.y) + (four.z + four.w);
    }
    return sum;
}

// A token's share of a row, or zeros; the compiler cannot know that a store does not change what is loaded next.
DEVICE void copy(const float* from, float* to, u32 width, u32 lane, bool there) {
    for (u32 first = lane; first < width; first += BATCH * LANES) {
        float values[BATCH];
UNROLL
        for (u32 n = 0; n < BATCH; n++) values[n] = there && first + n * LANES < width ? from[first + n * LANES] : 0.0f;
UNROLL
        for (u32 n = 0; n < BATCH; n++)
            if (first + n * LANES < width) to[first + n * LANES] = values[n];
    }
}

// keys_queries: a chunk's keys, then its queries [2C, Dk]. mixed: columns C.. of [C, C + Dk] get exp(G) q. factors: five runs
// of [Hv, padded tokens]: high and low sums, which are read, then beta, exp(G) and exp(G_last - G). Tokens that fill up the
// last chunk get zeros everywhere, and so change nothing.
KERNEL(256)
chunk_gather(const float* q, const float* k, const float* v, const float* beta, float* factors, float* keys_queries,
             float* mixed, float* values, u64 tokens, u64 heads, u64 group, u64 chunks, u64 chunk, u64 key_width,
             u64 value_width, u64 q_stride, u64 k_stride, u64 v_stride, u64 beta_stride, float scale, u32 normalize,
             float eps) {
    SHARED float4 squares[2 * TOKENS * LANES / 4];
    float *k_squares = (float*)squares, *q_squares = k_squares + TOKENS * LANES;
    u32 lane = thread_index() % LANES, slot = thread_index() / LANES, keys = (u32)key_width;
    u64 padded = chunks * chunk, groups = (padded + TOKENS - 1) / TOKENS, total = heads * padded;
    FOR_EACH_BLOCK_ITEM(item, heads * groups) {
        u64 head = item / groups, token = item % groups * TOKENS + slot;
        // Past the end the first token is read, and not used: loads without a condition can be under way together.
        bool there = token < tokens;
        u64 row = there ? token : 0;
        const float* k_row = k + row * k_stride + head / group * key_width;
        const float* q_row = q + row * q_stride + head / group * key_width;
        float k_sum = 0.0f, q_sum = 0.0f;
        if (normalize) {
UNROLL_4
            for (u32 d = lane; d < keys; d += LANES) {
                k_sum = fused(k_row[d], k_row[d], k_sum);
                q_sum = fused(q_row[d], q_row[d], q_sum);
            }
        }
        barrier();
        k_squares[slot * LANES + lane] = k_sum;
        q_squares[slot * LANES + lane] = q_sum;
        barrier();
        if (token >= padded) continue;
        float k_factor = 1.0f, q_factor = scale;
        if (normalize) {
            k_factor = 1.0f / root(sum_of_lanes(k_squares + slot * LANES) + eps);
            q_factor = scale / root(sum_of_lanes(q_squares + slot * LANES) + eps);
        }
        u64 place = head * padded + token, entry = place / chunk, i = place % chunk, end = entry * chunk + chunk - 1;
        float high = factors[place], low = factors[total + place];
        float from_start = exponential(high) * (1.0f + low);
        float* k_to = keys_queries + (entry * 2 * chunk + i) * key_width;
        float* q_to = k_to + chunk * key_width;
        float* mixed_to = mixed + (entry * chunk + i) * (chunk + key_width) + chunk;
UNROLL_4
        for (u32 d = lane; d < keys; d += LANES) {
            float key = k_row[d] * k_factor, query = q_row[d] * q_factor;
            if (!there) key = query = 0.0f;
            k_to[d] = key;
            q_to[d] = query;
            mixed_to[d] = from_start * query;
        }
        const float* v_row = v + row * v_stride + head * value_width;
        copy(v_row, values + place * value_width, (u32)value_width, lane, there);
        if (lane == 0) {
            factors[2 * total + place] = there ? beta[token * beta_stride + head] : 0.0f;
            factors[3 * total + place] = from_start;
            factors[4 * total + place] = exponential((factors[end] - high) + (factors[total + end] - low));
        }
    }
}

ENTRY(chunk_gather)
