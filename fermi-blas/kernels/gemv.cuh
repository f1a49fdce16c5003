// y = W x for one activation row or a few, whatever the weights' type: what decode's products share.
#pragma once
#include "codes.cuh"

#define GEMV_THREADS 256

// Shared memory for the sums of a block, see below.
#define GEMV_PARTIAL(rows) ((rows) * GEMV_THREADS * 3 / 2)

// Adds up the sums of each `lanes` neighbours, a power of two from 8 on, and stores those of row r of group g as
// y[r * groups + g]. Four to one in each round, every round in a place of its own, so that one barrier a round is enough:
// also the next call's first round writes what nobody reads any more.
template <u32 ROWS>
DEVICE void store_sums(const float* sum, float* partial, u32 lanes, float* y, u64 rows) {
    u32 thread = thread_index(), count = ROWS * GEMV_THREADS;
UNROLL
    for (u32 r = 0; r < ROWS; r++) partial[r * GEMV_THREADS + thread] = sum[r];
    for (u32 left = lanes; left > 1;) {
        barrier();
        u32 step = left >= 4 ? 4 : 2;
        left /= step;
        u32 next = count / step;
        for (u32 i = thread; i < next; i += GEMV_THREADS) {
            float total;
            if (step == 4) {
                float4 four = ((const float4*)partial)[i];
                total = (four.x + four.y) + (four.z + four.w);
            } else {
                total = partial[2 * i] + partial[2 * i + 1];
            }
            if (left > 1) partial[count + i] = total;
            else if (i < rows) y[i] = total;
        }
        partial += count;
        count = next;
    }
}

// A block takes ROWS rows for each of its groups of `lanes` threads, and one activation row; blocks of the same weights
// follow one another. `Weights` says how many neighbouring columns a thread takes at a time (STEP), and reads and multiplies
// them: the pieces of all rows are asked for before the first is used, and the activations are read once for them.
template <u32 ROWS, class Weights>
DEVICE void gemv_rows(Weights w, bool wide, const float* x, float* y, u64 rows, u64 columns, u64 tokens, u64 x_stride,
                      u64 y_stride, u32 lanes, float* partial) {
    u32 groups = GEMV_THREADS / lanes, group = thread_index() / lanes, lane = thread_index() % lanes;
    u32 block_rows = ROWS * groups, items = (u32)((rows + block_rows - 1) / block_rows * tokens);
    for (u32 item = block_index(); item < items; item += grid_size()) {
        u32 first = item / (u32)tokens * block_rows, token = item % (u32)tokens;
        const float* in = x + token * x_stride;
        u32 row[ROWS];
        float sum[ROWS];
UNROLL
        for (u32 r = 0; r < ROWS; r++) {
            u32 own = first + r * groups + group;
            row[r] = own < rows ? own : (u32)rows - 1;
            sum[r] = 0.0f;
        }
        if (wide) {
            for (u32 column = lane * Weights::STEP; column < columns; column += lanes * Weights::STEP) {
                typename Weights::Piece piece[ROWS];
                float4 values[Weights::STEP / 4];
UNROLL
                for (u32 r = 0; r < ROWS; r++) piece[r] = Weights::load(w, row[r], column);
UNROLL
                for (u32 i = 0; i < Weights::STEP / 4; i++) values[i] = *(const float4*)(in + column + 4 * i);
UNROLL
                for (u32 r = 0; r < ROWS; r++) sum[r] = Weights::add(piece[r], values, sum[r]);
            }
        } else {
            for (u32 column = lane; column < columns; column += lanes) {
UNROLL
                for (u32 r = 0; r < ROWS; r++) sum[r] = fused(Weights::at(w, row[r], column), in[column], sum[r]);
            }
        }
        store_sums<ROWS>(sum, partial, lanes, y + token * y_stride + first, rows - first);
    }
}
