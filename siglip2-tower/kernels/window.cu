// The window-attention merger's own kernels (paper, section 4.3): windows of 4 vectors that lie one after another.
#include "math.cuh"

#define PATCHES 4
#define PAIRS (PATCHES * PATCHES)  // a query and a key each
#define LANES 8                    // threads that share a pair's product
#define TILE 64                    // columns of a head in shared memory at once: heads of any width pass through

// Loads a tile of the 4 rows of one part of qkv.
DEVICE void load_tile(const float* rows, u64 stride, u64 columns, float* tile) {
    for (u32 i = thread_index(); i < PATCHES * TILE; i += block_size()) {
        u32 patch = i / TILE, column = i % TILE;
        tile[i] = column < columns ? rows[patch * stride + column] : 0.0f;
    }
}

// context = softmax(q k^T scaling) v within a window; a block a window and head. qkv holds queries, keys and values side by
// side, each `heads` times `dim` columns.
KERNEL(128)
window_attention(const float* qkv, float* context, u64 windows, u64 heads, u64 dim, u64 qkv_stride, u64 context_stride,
                 float scaling) {
    SHARED float queries[PATCHES * TILE];
    SHARED float keys[PATCHES * TILE];
    SHARED float partial[PAIRS * LANES];
    SHARED float weights[PAIRS];
    u32 thread = thread_index();
    u32 pair = thread / LANES, lane = thread % LANES;
    u32 query = pair / PATCHES, key = pair % PATCHES;
    u64 width = heads * dim;
    FOR_EACH_BLOCK_ITEM(item, windows * heads) {
        u64 window = item / heads, head = item % heads;
        const float* q = qkv + window * PATCHES * qkv_stride + head * dim;
        const float* k = q + width;
        const float* v = k + width;
        float* out = context + window * PATCHES * context_stride + head * dim;
        float sum = 0.0f;
        for (u64 start = 0; start < dim; start += TILE) {
            load_tile(q + start, qkv_stride, dim - start, queries);
            load_tile(k + start, qkv_stride, dim - start, keys);
            barrier();
            for (u32 c = lane; c < TILE; c += LANES) sum = fused(queries[query * TILE + c], keys[key * TILE + c], sum);
            barrier();
        }
        partial[thread] = sum;
        barrier();
        if (thread < PAIRS) {
            float score = 0.0f;
            for (u32 i = 0; i < LANES; i++) score += partial[thread * LANES + i];
            weights[thread] = score * scaling;
        }
        barrier();
        if (thread < PATCHES) {
            float* row = weights + thread * PATCHES;
            float most = row[0], total = 0.0f;
            for (u32 i = 1; i < PATCHES; i++) most = largest(most, row[i]);
            for (u32 i = 0; i < PATCHES; i++) {
                row[i] = exponential(row[i] - most);
                total += row[i];
            }
            for (u32 i = 0; i < PATCHES; i++) row[i] /= total;
        }
        barrier();
        // Every value is read once, for all four queries.
        for (u64 c = thread; c < dim; c += block_size()) {
            float v0 = v[c], v1 = v[qkv_stride + c], v2 = v[2 * qkv_stride + c], v3 = v[3 * qkv_stride + c];
UNROLL
            for (u32 i = 0; i < PATCHES; i++) {
                const float* w = weights + i * PATCHES;
                out[i * context_stride + c] = fused(w[0], v0, fused(w[1], v1, fused(w[2], v2, w[3] * v3)));
            }
        }
        barrier();
    }
}

// x += the mean of each window's 4 vectors
KERNEL(256)
add_window_mean(const float* vectors, float* x, u64 windows, u64 columns, u64 vector_stride, u64 x_stride) {
    FOR_EACH_THREAD_ITEM(item, windows * columns) {
        u64 window = item / columns, column = item % columns;
        const float* v = vectors + window * PATCHES * vector_stride + column;
        float sum = v[0] + v[vector_stride] + v[2 * vector_stride] + v[3 * vector_stride];
        x[window * x_stride + column] += sum / PATCHES;
    }
}

ENTRY(window_attention)
ENTRY(add_window_mean)
