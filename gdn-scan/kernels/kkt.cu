// Decays on the token-token matrices: A = beta (K K^T o D) below the diagonal, Q K^T o D on and below it, D_ij = exp(G_i - G_j).
// Only differences with i >= j are formed, which are at most 0: nothing overflows, however strong the decays are.
#include "math.cuh"

#define ROWS 16  // rows of a block

// scores [2C, C]: K K^T, which becomes A in place, above Q K^T. The latter's result goes to the first columns of `mixed`
// [C, C + Dk]. Above the diagonals both are 0.
KERNEL(256)
chunk_decay(float* scores, float* mixed, const float* factors, u64 entries, u64 chunk, u64 key_width) {
    u64 groups = (chunk + ROWS - 1) / ROWS, total = entries * chunk;
    u32 width = (u32)chunk;
    FOR_EACH_BLOCK_ITEM(item, entries * groups) {
        u64 entry = item / groups, first = item % groups * ROWS;
        const float* high = factors + entry * chunk;
        const float *low = high + total, *beta = low + total;
        float *keys = scores + entry * 2 * chunk * chunk, *queries = keys + chunk * chunk;
        float* to = mixed + entry * chunk * (chunk + key_width);
        for (u32 e = thread_index(); e < ROWS * width; e += block_size()) {
            u64 i = first + e / width, j = e % width;
            if (i >= chunk) break;
            float decay = j <= i ? exponential((high[i] - high[j]) + (low[i] - low[j])) : 0.0f;
            keys[i * chunk + j] = j < i ? beta[i] * decay * keys[i * chunk + j] : 0.0f;
            to[i * (chunk + key_width) + j] = j <= i ? decay * queries[i * chunk + j] : 0.0f;
        }
    }
}

ENTRY(chunk_decay)
