// From chunk to chunk: delta = U - W S, then S = exp(G_last) S + (exp(G_last - G) K)^T delta, for the sizes of the model.
//
// A block takes some value columns of one head through all chunks and keeps their part of the state in shared memory. Both
// products are A^T B with A = W^T or K in tiles of shared memory: a thread makes four by four values, over a share of a tile's
// rows. The tiles do not depend on the state: while one is used, the next is on its way from memory into registers.
#include "math.cuh"

#define THREADS 256
#define TOKENS 64    // of a chunk
#define KEYS 128
#define COLUMNS 16   // value columns of a block
#define TILE 4096    // values of a tile: 64 keys of W^T, or 32 tokens of K
#define SHARE 4      // four values each of a tile that a thread fetches
#define STEPS 16     // rows of a tile that a thread multiplies
#define FOURTH 72    // distance of four rows of the state: threads with neighbouring rows meet other banks
#define STATE (KEYS / 4 * FOURTH)

// The same number, in a way that keeps the compiler from holding all addresses made of it in registers, which are short.
DEVICE u32 anew(u32 number) {
#ifndef EMULATED
    asm volatile("" : "+r"(number));
#endif
    return number;
}

DEVICE u32 this_thread() { return anew(thread_index()); }

struct Chunks {
    const float *w, *keys, *to_end, *whole;
    float *mixed, *state;  // mixed: U, which becomes delta, above the state at the chunk's start [C + Dk, Dv]
    u32 heads, chunks, value_width;
};

// Where the thread's part of W^T, and of K, starts.
DEVICE const float* w_of(const Chunks& c, u32 entry) { return c.w + ((u64)anew(entry) * KEYS * TOKENS + this_thread() * 4); }

DEVICE const float* keys_of(const Chunks& c, u32 entry) {
    return c.keys + ((u64)anew(entry) * 2 * TOKENS * KEYS + this_thread() * 4);
}

DEVICE float* corrections_of(const Chunks& c, u32 entry) {
    return c.mixed + (u64)anew(entry) * (TOKENS + KEYS) * c.value_width;
}

DEVICE float* start_of(const Chunks& c, u32 entry) { return corrections_of(c, entry) + TOKENS * c.value_width; }

DEVICE float* state_of(const Chunks& c, u32 head) { return c.state + (u64)anew(head) * KEYS * c.value_width; }

// What a block keeps in shared memory.
struct Shared {
    float *even, *odd;  // tiles by turns; between the products, the threads' parts of their results
    float* delta;       // exp(G_last - G) delta
    float* state;
};

// Where a thread stands in a product with rows of A of this width. Neighbours share rows, and those two apart share columns:
// then a read of four values by all threads of a warp costs the shared memory two cycles.
template <u32 WIDTH>
struct Stand {
    u32 rows, columns, group;  // its four rows of the result, its four columns, its share of a tile
};

template <u32 WIDTH>
DEVICE Stand<WIDTH> stand() {
    u32 thread = this_thread(), lane = thread % 32, warp = thread / 32, warps = WIDTH / 32;
    Stand<WIDTH> here = {warp % warps * 8 + lane / 2 % 8, lane % 2 + lane / 16 * 2, warp / warps};
    return here;
}

// Four values that stand beside each other, among those of four rows: spread over the banks.
DEVICE u32 spread(u32 rows, u32 four) { return (four ^ rows % 4 * 2) * 4; }

// Four values in registers: the compiler keeps arrays of numbers there, and arrays of structs only sometimes.
DEVICE void read_four(const float* from, float to[4]) {
    float4 four = *(const float4*)from;
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

DEVICE void write_four(float* to, const float from[4]) {
    float4 four = {from[0], from[1], from[2], from[3]};
    *(float4*)to = four;
}

// Of a tile, from the thread's first value on.
DEVICE void fetch(const float* from, float ahead[SHARE][4]) {
UNROLL
    for (u32 n = 0; n < SHARE; n++) read_four(from + n * THREADS * 4, ahead[n]);
}

DEVICE void keep(float* tile, const float ahead[SHARE][4]) {
    tile += this_thread() * 4;
UNROLL
    for (u32 n = 0; n < SHARE; n++) write_four(tile + n * THREADS * 4, ahead[n]);
}

// sums += A^T B over the thread's share of a tile; four rows of B are `fourth` values apart.
template <u32 WIDTH>
DEVICE void multiply(const float* tile, const float* right, u32 fourth, float sums[4][4]) {
    Stand<WIDTH> here = stand<WIDTH>();
    tile += here.group * STEPS * WIDTH + here.rows * 4;
    right += here.group * (STEPS / 4) * fourth + here.columns * 4;
UNROLL
    for (u32 k = 0; k < STEPS; k++) {
        float a[4], b[4];
        read_four(tile + k * WIDTH, a);
        read_four(right + k / 4 * fourth + k % 4 * COLUMNS, b);
UNROLL
        for (u32 i = 0; i < 4; i++)
UNROLL
            for (u32 j = 0; j < 4; j++) sums[i][j] = fused(a[i], b[j], sums[i][j]);
    }
}

// Hands the groups' parts of W S over.
DEVICE void give_parts(float* parts, const float sums[4][4]) {
    Stand<TOKENS> here = stand<TOKENS>();
    parts += here.group * TOKENS * COLUMNS + here.rows * 4 * COLUMNS;
UNROLL
    for (u32 i = 0; i < 4; i++) write_four(parts + (i / 2 * 2 * COLUMNS + spread(here.rows, i % 2 * 4 + here.columns)), sums[i]);
}

// Turns a thread's four values of U into delta, in memory and, decayed to the chunk's end, in shared memory.
DEVICE void correct(float four[4], float decay, const float* parts, float* delta, float* to, bool inside) {
    u32 thread = this_thread(), rows = thread / 16;
    parts += rows * 4 * COLUMNS + spread(rows, thread % 16);
UNROLL
    for (u32 group = 0; group < 4; group++) {
        float part[4];
        read_four(parts + group * TOKENS * COLUMNS, part);
UNROLL
        for (u32 j = 0; j < 4; j++) four[j] -= part[j];
    }
    if (inside) write_four(to, four);
UNROLL
    for (u32 j = 0; j < 4; j++) four[j] *= decay;
    write_four(delta + thread * 4, four);
}

// Of two values, not of two places.
DEVICE float chosen(bool first, float a, float b) { return first ? a : b; }

// The two groups of K^T delta exchange two rows each of their four, and move the state on in two rows each.
DEVICE void give_rows(float* parts, const float sums[4][4]) {
    Stand<KEYS> here = stand<KEYS>();
    parts += here.group * (KEYS / 2 * COLUMNS) + here.rows * 2 * COLUMNS;
UNROLL
    for (u32 i = 0; i < 2; i++) {
        float other[4];
UNROLL
        for (u32 j = 0; j < 4; j++) other[j] = chosen(here.group == 0, sums[i + 2][j], sums[i][j]);
        write_four(parts + spread(here.rows, i * 4 + here.columns), other);
    }
}

DEVICE void move_on(const float* parts, const float sums[4][4], float whole, float* state, float* to, u32 width, u32 columns) {
    Stand<KEYS> here = stand<KEYS>();
    parts += (1 - here.group) * (KEYS / 2 * COLUMNS) + here.rows * 2 * COLUMNS;
    state += here.rows * FOURTH + here.group * 2 * COLUMNS + here.columns * 4;
    to += (here.rows * 4 + here.group * 2) * width + here.columns * 4;
UNROLL
    for (u32 i = 0; i < 2; i++) {
        float part[4], moved[4];
        read_four(parts + spread(here.rows, i * 4 + here.columns), part);
        read_four(state + i * COLUMNS, moved);
UNROLL
        for (u32 j = 0; j < 4; j++)
            moved[j] = fused(whole, moved[j], chosen(here.group == 0, sums[i][j], sums[i + 2][j]) + part[j]);
        write_four(state + i * COLUMNS, moved);
        if (here.columns * 4 < columns) write_four(to + i * width, moved);
    }
}

// The state at the first chunk's start, also for the outputs.
DEVICE void begin(const Chunks& c, const float* from, float* state, float* to, u32 columns) {
    for (u32 e = thread_index(); e < KEYS * COLUMNS / 4; e += THREADS) {
        u32 key = e / 4, column = e % 4 * 4, outside = key * c.value_width + column;
        float four[4] = {};
        if (column < columns) {
            read_four(from + outside, four);
            write_four(to + outside, four);
        }
        write_four(state + key / 4 * FOURTH + key % 4 * COLUMNS + column, four);
    }
}

// One slice of columns through all chunks. Nothing is written where it may still be read: a tile's place is free once all have
// met after its product, and everything else has a place of its own.
DEVICE void all_chunks(const Chunks& c, const Shared& shared, u32 head, u32 column) {
    u32 columns = c.value_width - column, entry = head * c.chunks, last = entry + c.chunks - 1;
    float ahead[SHARE][4];
    fetch(w_of(c, entry), ahead);
    begin(c, state_of(c, head) + column, shared.state, start_of(c, entry) + column, columns);
    for (; entry <= last; entry++) {
        keep(shared.even, ahead);
        fetch(w_of(c, entry) + TILE, ahead);
        barrier();
        float predicted[4][4] = {};
        multiply<TOKENS>(shared.even, shared.state, FOURTH, predicted);
        keep(shared.odd, ahead);
        fetch(keys_of(c, entry), ahead);
        barrier();
        multiply<TOKENS>(shared.odd, shared.state + STATE / 2, FOURTH, predicted);
        give_parts(shared.even, predicted);
        // Only now there are registers for U.
        u32 thread = this_thread();
        bool inside = thread % 4 * 4 < columns;
        float *mine = corrections_of(c, entry) + (thread / 4 * c.value_width + column + thread % 4 * 4);
        float u[4] = {}, decay = c.to_end[entry * TOKENS + thread / 4];
        if (inside) read_four(mine, u);
        barrier();
        keep(shared.odd, ahead);
        fetch(keys_of(c, entry) + TILE, ahead);
        correct(u, decay, shared.even, shared.delta, mine, inside);
        barrier();
        float moved[4][4] = {};
        multiply<KEYS>(shared.odd, shared.delta, 4 * COLUMNS, moved);
        keep(shared.even, ahead);
        // After the last chunk its own W is fetched again, and not used.
        fetch(w_of(c, entry < last ? entry + 1 : entry), ahead);
        barrier();
        multiply<KEYS>(shared.even, shared.delta + TOKENS / 2 * COLUMNS, 4 * COLUMNS, moved);
        give_rows(shared.odd, moved);
        float whole = c.whole[entry * TOKENS + TOKENS - 1];
        barrier();
        float* next = entry < last ? start_of(c, entry + 1) : state_of(c, head);
        move_on(shared.odd, moved, whole, shared.state, next + column, c.value_width, columns);
    }
    barrier();
}

// Chunks of TOKENS tokens and keys of KEYS values; value columns by fours, everything aligned to 16 bytes.
KERNEL(256)
chunk_state(const float* w, const float* keys, const float* to_end, const float* whole, float* mixed, float* state,
            u64 heads, u64 chunks, u64 value_width) {
    SHARED float4 tiles[2 * TILE / 4];
    SHARED float4 delta[TOKENS * COLUMNS / 4];
    SHARED float4 kept[STATE / 4];
    Chunks c = {w, keys, to_end, whole, mixed, state, (u32)heads, (u32)chunks, (u32)value_width};
    Shared shared = {(float*)tiles, (float*)tiles + TILE, (float*)delta, (float*)kept};
    u32 slices = (c.value_width + COLUMNS - 1) / COLUMNS;
    for (u32 item = block_index(); item < c.heads * slices; item += grid_size())
        all_chunks(c, shared, item / slices, item % slices * COLUMNS);
}

ENTRY(chunk_state)
