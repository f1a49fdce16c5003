// C = A Bᵀ by hand (paper, section 3.1): each thread keeps a micro-tile of 6 x 6 sums in registers, and a block of 16 x 16
// threads a tile of 96 x 96, whose inputs pass through shared memory. Only here, to be compared with the vendor's product.
#include "math.cuh"

#define MICRO 6
#define SIDE 16
#define TILE (MICRO * SIDE)
#define DEPTH 8
#define LOADS (TILE * DEPTH / (SIDE * SIDE))

// TILE rows of a matrix, DEPTH columns from `at` on, with rows and columns exchanged. Rows past the last are the last again,
// whose sums nobody stores; columns past the last are 0.
DEVICE void load_tile(const float* matrix, u32 rows, u32 k, u64 stride, u32 first, u32 at, float (*tile)[TILE + 1]) {
    u32 column = thread_index() % DEPTH, own = thread_index() / DEPTH;
UNROLL
    for (u32 i = 0; i < LOADS; i++, own += TILE / LOADS) {
        u32 row = first + own < rows ? first + own : rows - 1;
        tile[column][own] = at + column < k ? matrix[row * stride + at + column] : 0.0f;
    }
}

// A `[m, k]`, B `[n, k]`, C `[m, n]`
KERNEL(256)
gemm_tiled(const float* a, const float* b, float* c, u64 m, u64 n, u64 k, u64 a_stride, u64 b_stride, u64 c_stride) {
    SHARED float a_tile[DEPTH][TILE + 1], b_tile[DEPTH][TILE + 1];
    u32 x = thread_index() % SIDE, y = thread_index() / SIDE;
    u32 across = (u32)((n + TILE - 1) / TILE), down = (u32)((m + TILE - 1) / TILE);
    for (u32 item = block_index(); item < across * down; item += grid_size()) {
        u32 row = item / across * TILE, column = item % across * TILE;
        float sums[MICRO][MICRO];
UNROLL
        for (u32 i = 0; i < MICRO; i++) {
UNROLL
            for (u32 j = 0; j < MICRO; j++) sums[i][j] = 0.0f;
        }
        for (u32 at = 0; at < k; at += DEPTH) {
            load_tile(a, m, k, a_stride, row, at, a_tile);
            load_tile(b, n, k, b_stride, column, at, b_tile);
            barrier();
            for (u32 d = 0; d < DEPTH; d++) {
                float right[MICRO];
UNROLL
                for (u32 j = 0; j < MICRO; j++) right[j] = b_tile[d][x + j * SIDE];
UNROLL
                for (u32 i = 0; i < MICRO; i++) {
                    float left = a_tile[d][y + i * SIDE];
UNROLL
                    for (u32 j = 0; j < MICRO; j++) sums[i][j] = fused(left, right[j], sums[i][j]);
                }
            }
            barrier();
        }
UNROLL
        for (u32 i = 0; i < MICRO; i++) {
            u32 r = row + y + i * SIDE;
UNROLL
            for (u32 j = 0; j < MICRO; j++) {
                u32 s = column + x + j * SIDE;
                if (r < m && s < n) c[r * c_stride + s] = sums[i][j];
            }
        }
    }
}

ENTRY(gemm_tiled)
