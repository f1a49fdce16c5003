// Forward substitution with the chunks' unit lower triangular matrices: (I + A) X = diag(beta).
//
// A was computed before, and a thread owns a column of X: its rows follow from one another without any thread waiting for
// another. X serves the values; X diag(exp(G)), whose columns are X's times a factor, serves the keys.
#include "math.cuh"

#define MOST 64   // tokens of a chunk that is solved in shared memory
#define BLOCK 16  // rows that are solved together, in registers
#define FEW 8     // the same where addresses need registers too

// Takes the rows already solved off the right-hand sides of rows `first`...
DEVICE void subtract_solved(const float4* a, const float* x, u32 first, u32 column, float* rows) {
    for (u32 m = 0; m < first; m += 4) {
        float x0 = x[m * MOST + column], x1 = x[(m + 1) * MOST + column];
        float x2 = x[(m + 2) * MOST + column], x3 = x[(m + 3) * MOST + column];
UNROLL
        for (u32 i = 0; i < BLOCK; i++) {
            float4 four = a[((first + i) * MOST + m) / 4];
            rows[i] = fused(-four.x, x0, fused(-four.y, x1, fused(-four.z, x2, fused(-four.w, x3, rows[i]))));
        }
    }
}

// One block a chunk, one thread a column.
KERNEL(64)
chunk_solve(const float* scores, const float* beta, const float* from_start, float* solved, float* decayed, u64 entries,
            u64 chunk) {
    SHARED float4 a_rows[MOST * MOST / 4];
    SHARED float x[MOST * MOST];
    float* a = (float*)a_rows;
    u32 column = thread_index(), count = (u32)chunk;
    FOR_EACH_BLOCK_ITEM(entry, entries) {
        const float* from = scores + entry * 2 * chunk * chunk;
        for (u32 first = 0; first < MOST; first += BLOCK)
UNROLL
            for (u32 n = 0; n < BLOCK; n++) {
                u32 i = first + n;
                a[i * MOST + column] = i < count && column < i ? from[i * count + column] : 0.0f;
            }
        barrier();
        bool inside = column < count;
        float strength = inside ? beta[entry * chunk + column] : 0.0f;
        float decay = inside ? from_start[entry * chunk + column] : 0.0f;
        float *to = solved + entry * chunk * chunk + column, *decayed_to = decayed + entry * chunk * chunk + column;
        for (u32 first = 0; first < count; first += BLOCK) {
            float rows[BLOCK];
UNROLL
            for (u32 i = 0; i < BLOCK; i++) rows[i] = first + i == column ? strength : 0.0f;
            subtract_solved(a_rows, x, first, column, rows);
UNROLL
            for (u32 i = 0; i < BLOCK; i++) {
UNROLL
                for (u32 m = 0; m < BLOCK; m++)
                    if (m < i) rows[i] = fused(-a[(first + i) * MOST + first + m], rows[m], rows[i]);
                x[(first + i) * MOST + column] = rows[i];
                if (inside && first + i < count) {
                    to[(first + i) * count] = rows[i];
                    decayed_to[(first + i) * count] = decay * rows[i];
                }
            }
        }
        barrier();
    }
}

// Chunks of any length: the same out of memory, where a thread reads only what it wrote itself.
KERNEL(128)
chunk_solve_wide(const float* scores, const float* beta, const float* from_start, float* solved, float* decayed,
                 u64 entries, u64 chunk) {
    u32 count = (u32)chunk;
    FOR_EACH_THREAD_ITEM(item, entries * chunk) {
        u64 entry = item / chunk;
        u32 column = (u32)(item % chunk);
        const float* a = scores + entry * 2 * chunk * chunk;
        float *x = solved + entry * chunk * chunk + column, *y = decayed + entry * chunk * chunk + column;
        float strength = beta[item], decay = from_start[item];
        for (u32 first = 0; first < count; first += FEW, a += FEW * chunk) {
            float rows[FEW];
UNROLL
            for (u32 i = 0; i < FEW; i++) rows[i] = first + i == column ? strength : 0.0f;
            // Above its diagonal a column is 0.
            for (u32 m = column / FEW * FEW; m < first; m++) {
                float above = x[(u64)m * chunk];
UNROLL
                for (u32 i = 0; i < FEW; i++)
                    if (first + i < count) rows[i] = fused(-a[i * count + m], above, rows[i]);
            }
UNROLL
            for (u32 i = 0; i < FEW; i++) {
                if (first + i < count) {
UNROLL
                    for (u32 m = 0; m < FEW; m++)
                        if (m < i) rows[i] = fused(-a[i * count + first + m], rows[m], rows[i]);
                    x[(u64)(first + i) * chunk] = rows[i];
                    y[(u64)(first + i) * chunk] = decay * rows[i];
                }
            }
        }
    }
}

ENTRY(chunk_solve)
ENTRY(chunk_solve_wide)
