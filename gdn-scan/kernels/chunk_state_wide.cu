// From chunk to chunk: delta = U - W S, then S = exp(G_last) S + (exp(G_last - G) K)^T delta, for keys of any width and chunks
// of any length.
//
// A block takes some value columns of one head through all chunks; the state stays in memory. Both products go through tiles of
// W^T and K. These do not depend on the state: while one tile is used, the next two are on their way from memory into registers,
// across products and chunks.
#include "math.cuh"

#define THREADS 512
#define COLUMNS 16        // value columns of a block
#define TOKENS 64         // tokens of a tile of W^T, and of those whose corrections are kept in shared memory
#define KEYS 32           // keys of a tile of W^T
#define STEP 16           // tokens of a tile of K
#define SPAN 128          // keys of a tile of K
#define SPAN_PITCH 132
#define TILE (STEP * SPAN_PITCH)
#define ROWS 2            // tokens whose parts of W S a thread makes, for four columns each
#define SHARE (TOKENS * COLUMNS / THREADS)
#define GROUPS 4          // groups of threads that share the keys of W S

struct float2 {
    float x, y;
} __attribute__((aligned(8)));

struct Chunks {
    const float *w, *keys, *to_end, *whole;
    float *mixed, *state;  // mixed: U, which becomes delta, above the state at the chunk's start [C + Dk, Dv]
    u32 heads, chunks, chunk, key_width, value_width;
    bool w_aligned, k_aligned;  // whether rows of W^T and K can be read four values at a time
};

// One chunk as a block sees it: few words, since registers are short. Addresses are made where they are used; within a chunk's
// matrix 32 bits are enough for them.
struct Place {
    u32 entry, column, columns;
};

DEVICE const float* to_end_of(const Chunks& c, const Place& p) { return c.to_end + (u64)p.entry * c.chunk; }

DEVICE float* corrections_of(const Chunks& c, const Place& p) {
    return c.mixed + (u64)p.entry * (c.chunk + c.key_width) * c.value_width + p.column;
}

DEVICE float* start_of(const Chunks& c, const Place& p) { return corrections_of(c, p) + (u64)c.chunk * c.value_width; }

// What a block keeps in shared memory.
struct Shared {
    float* tiles;  // two of W^T or of K; between the products, the groups' parts of W S
    float* delta;  // exp(G_last - G) delta of TOKENS tokens
    float* state;  // two tiles [KEYS, COLUMNS]
};

// Four neighbours of a row, of which `left` are inside.
DEVICE float4 four_of(const float* from, u32 left, bool aligned) {
    float4 zeros = {0.0f, 0.0f, 0.0f, 0.0f};
    if (left == 0) return zeros;
    if (aligned) return *(const float4*)from;
    float4 four = {from[0], left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f, left > 3 ? from[3] : 0.0f};
    return four;
}

// Four of a row of W^T or K.
DEVICE float4 fetch(const float* matrix, u32 row, u32 column, u32 rows, u32 width, bool aligned) {
    u32 left = row < rows && column < width ? width - column : 0;
    return four_of(matrix + (row * width + column), left, aligned);
}

// Which tile is fetched next: of W^T, token by token, then of K, key by key; then those of the next chunk.
struct Cursor {
    u32 entry, token, key;
    bool of_keys;
};

// The tiles on their way: four values of each are a thread's.
struct Queue {
    float4 next, after;
    Cursor cursor;
    u32 last;  // the head's last chunk
};

// Fetches a thread's part of the cursor's tile and moves the cursor on: sixteen threads fetch a row of W^T, a warp one of K.
DEVICE float4 advance(const Chunks& c, Queue& queue) {
    Cursor& cursor = queue.cursor;
    u32 thread = thread_index();
    float4 nothing = {};
    if (cursor.entry > queue.last) return nothing;
    if (!cursor.of_keys) {
        const float* w = c.w + (u64)cursor.entry * c.chunk * c.key_width;
        float4 ahead = fetch(w, cursor.key + thread / 16, cursor.token + thread % 16 * 4, c.key_width, c.chunk, c.w_aligned);
        cursor.key += KEYS;
        if (cursor.key >= c.key_width) {
            cursor.key = 0;
            cursor.token += TOKENS;
        }
        if (cursor.token >= c.chunk) {
            cursor.token = 0;
            cursor.of_keys = true;
        }
        return ahead;
    }
    const float* keys = c.keys + (u64)cursor.entry * 2 * c.chunk * c.key_width;
    float4 ahead = fetch(keys, cursor.token + thread / 32, cursor.key + thread % 32 * 4, c.chunk, c.key_width, c.k_aligned);
    cursor.token += STEP;
    if (cursor.token >= c.chunk) {
        cursor.token = 0;
        cursor.key += SPAN;
    }
    if (cursor.key >= c.key_width) {
        cursor.key = 0;
        cursor.of_keys = false;
        cursor.entry++;
    }
    return ahead;
}

// The next tile.
DEVICE float4 take(const Chunks& c, Queue& queue) {
    float4 now = queue.next;
    queue.next = queue.after;
    queue.after = advance(c, queue);
    return now;
}

DEVICE void keep_w(float* tile, float4 four) {
    *(float4*)(tile + thread_index() * 4) = four;
}

DEVICE void keep_k(float* tile, float4 four) {
    *(float4*)(tile + thread_index() / 32 * SPAN_PITCH + thread_index() % 32 * 4) = four;
}

// A tile of the state, beside the tile of W^T that it is multiplied with.
DEVICE void keep_start(const Chunks& c, const Place& p, u32 key, float* tile) {
    for (u32 e = thread_index(); e < KEYS * COLUMNS; e += THREADS) {
        u32 k = key + e / COLUMNS, column = e % COLUMNS;
        bool inside = k < c.key_width && column < p.columns;
        tile[e] = inside ? start_of(c, p)[k * c.value_width + column] : 0.0f;
    }
}

// sums += a group's keys of a tile of W^T times the state: ROWS tokens by four columns a thread.
DEVICE void multiply_tile(const float* tile, const float* state, u32 group, u32 row, u32 column, float sums[ROWS][4]) {
UNROLL_2
    for (u32 key = 0; key < KEYS / GROUPS; key += 2) {
        u32 k = group * (KEYS / GROUPS) + key;
        float4 s0 = *(const float4*)(state + k * COLUMNS + column);
        float4 s1 = *(const float4*)(state + (k + 1) * COLUMNS + column);
UNROLL
        for (u32 i = 0; i < ROWS; i++) {
            const float* w = tile + k * TOKENS + row + i * (TOKENS / ROWS);
            sums[i][0] = fused(w[0], s0.x, fused(w[TOKENS], s1.x, sums[i][0]));
            sums[i][1] = fused(w[0], s0.y, fused(w[TOKENS], s1.y, sums[i][1]));
            sums[i][2] = fused(w[0], s0.z, fused(w[TOKENS], s1.z, sums[i][2]));
            sums[i][3] = fused(w[0], s0.w, fused(w[TOKENS], s1.w, sums[i][3]));
        }
    }
}

// A thread's share of U, and of the decays to the chunk's end: 0 outside.
struct Waiting {
    float u[SHARE], decay[SHARE];
};

DEVICE Waiting fetch_u(const Chunks& c, const Place& p, u32 first) {
    Waiting waiting;
UNROLL
    for (u32 n = 0; n < SHARE; n++) {
        u32 e = thread_index() + n * THREADS, token = first + e / COLUMNS, at = e % COLUMNS;
        bool inside = token < c.chunk && at < p.columns;
        waiting.u[n] = inside ? corrections_of(c, p)[token * c.value_width + at] : 0.0f;
        waiting.decay[n] = inside ? to_end_of(c, p)[token] : 0.0f;
    }
    return waiting;
}

// Turns U of the tokens `first`... into delta, in memory and, decayed to the chunk's end, in shared memory.
DEVICE void correct(const Chunks& c, const Place& p, const Shared& shared, u32 first, Queue& queue) {
    u32 thread = thread_index(), group = thread / (THREADS / GROUPS), within = thread % (THREADS / GROUPS);
    u32 row = within / 4, column = within % 4 * 4;
    float sums[ROWS][4] = {};
    Waiting waiting = fetch_u(c, p, first);
    for (u32 key = 0, turn = 0; key < c.key_width; key += KEYS, turn ^= 1) {
        float *tile = shared.tiles + turn * TILE, *state = shared.state + turn * KEYS * COLUMNS;
        keep_w(tile, take(c, queue));
        keep_start(c, p, key, state);
        barrier();
        multiply_tile(tile, state, group, row, column, sums);
    }
    barrier();
    float* parts = shared.tiles;
UNROLL
    for (u32 i = 0; i < ROWS; i++) {
        float4 four = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
        *(float4*)(parts + group * TOKENS * COLUMNS + (row + i * (TOKENS / ROWS)) * COLUMNS + column) = four;
    }
    barrier();
UNROLL
    for (u32 n = 0; n < SHARE; n++) {
        u32 e = thread + n * THREADS, token = first + e / COLUMNS, at = e % COLUMNS;
        float delta = waiting.u[n];
UNROLL
        for (u32 part = 0; part < GROUPS; part++) delta -= parts[part * TOKENS * COLUMNS + e];
        if (token < c.chunk && at < p.columns) corrections_of(c, p)[token * c.value_width + at] = delta;
        shared.delta[e] = waiting.decay[n] * delta;
    }
    barrier();
}

// Fetches again what `correct` left for the tokens `first`....
DEVICE void recall(const Chunks& c, const Place& p, const Shared& shared, u32 first) {
    barrier();
    for (u32 e = thread_index(); e < TOKENS * COLUMNS; e += THREADS) {
        u32 token = first + e / COLUMNS, at = e % COLUMNS;
        bool inside = token < c.chunk && at < p.columns;
        const float* correction = corrections_of(c, p) + (token * c.value_width + at);
        shared.delta[e] = inside ? to_end_of(c, p)[token] * *correction : 0.0f;
    }
    barrier();
}

// Where a thread stands in K^T delta: four keys by two columns, over half of a tile's tokens.
struct Share {
    u32 key, column, half;
};

DEVICE Share share_of() {
    u32 within = thread_index() % (THREADS / 2);
    Share share = {within / 8 * 4, within % 8 * 2, thread_index() / (THREADS / 2)};
    return share;
}

// sums += K^T delta over the tokens `first`... for the keys whose turn it is.
DEVICE void accumulate(const Chunks& c, const Shared& shared, u32 first, Queue& queue, float sums[8]) {
    Share share = share_of();
    u32 last = c.chunk - first < TOKENS ? c.chunk - first : TOKENS;
    for (u32 row = 0, turn = 0; row < last; row += STEP, turn ^= 1) {
        float* tile = shared.tiles + turn * TILE;
        keep_k(tile, take(c, queue));
        barrier();
UNROLL_4
        for (u32 i = 0; i < STEP / 2; i++) {
            u32 token = share.half * (STEP / 2) + i;
            float4 k = *(const float4*)(tile + token * SPAN_PITCH + share.key);
            float2 d = *(const float2*)(shared.delta + (row + token) * COLUMNS + share.column);
            sums[0] = fused(k.x, d.x, sums[0]);
            sums[1] = fused(k.x, d.y, sums[1]);
            sums[2] = fused(k.y, d.x, sums[2]);
            sums[3] = fused(k.y, d.y, sums[3]);
            sums[4] = fused(k.z, d.x, sums[4]);
            sums[5] = fused(k.z, d.y, sums[5]);
            sums[6] = fused(k.w, d.x, sums[6]);
            sums[7] = fused(k.w, d.y, sums[7]);
        }
    }
    barrier();
}

// Moves the state over one chunk; `next` is where it goes.
DEVICE void move_on(const Chunks& c, const Place& p, const Shared& shared, float* next, Queue& queue) {
    Share share = share_of();
    float whole = c.whole[(u64)p.entry * c.chunk + c.chunk - 1];
    for (u32 span = 0; span < c.key_width; span += SPAN) {
        float sums[8] = {};
        for (u32 first = 0; first < c.chunk; first += TOKENS) {
            recall(c, p, shared, first);
            accumulate(c, shared, first, queue, sums);
        }
        float* half = shared.tiles + thread_index() % (THREADS / 2);
UNROLL
        for (u32 e = 0; e < 8; e++)
            if (share.half == 1) half[e * (THREADS / 2)] = sums[e];
        barrier();
UNROLL
        for (u32 e = 0; e < 8; e++) {
            u32 k = span + share.key + e / 2, at = share.column + e % 2;
            if (share.half == 1 || k >= c.key_width) continue;
            float sum = sums[e] + half[e * (THREADS / 2)];
            u32 outside = k * c.value_width + at;
            if (at < p.columns) next[outside] = fused(whole, start_of(c, p)[outside], sum);
        }
        barrier();
    }
}

DEVICE void copy_state(const Chunks& c, const Place& p, const float* from, float* to) {
    for (u32 e = thread_index(); e < c.key_width * COLUMNS; e += THREADS) {
        u32 outside = e / COLUMNS * c.value_width + e % COLUMNS;
        if (e % COLUMNS < p.columns) to[outside] = from[outside];
    }
}

DEVICE void all_chunks(const Chunks& c, const Shared& shared) {
    u32 slices = (c.value_width + COLUMNS - 1) / COLUMNS;
    for (u32 item = block_index(); item < c.heads * slices; item += grid_size()) {
        u32 head = item / slices, column = item % slices * COLUMNS, left = c.value_width - column;
        Place p = {head * c.chunks, column, left < COLUMNS ? left : COLUMNS};
        Queue queue;
        queue.cursor = {p.entry, 0, 0, false};
        queue.last = p.entry + c.chunks - 1;
        queue.next = advance(c, queue);
        queue.after = advance(c, queue);
        float* state = c.state + (u64)head * c.key_width * c.value_width + column;
        copy_state(c, p, state, start_of(c, p));
        barrier();
        for (; p.entry <= queue.last; p.entry++) {
            for (u32 first = 0; first < c.chunk; first += TOKENS) correct(c, p, shared, first, queue);
            Place after = {p.entry + 1, p.column, p.columns};
            move_on(c, p, shared, p.entry < queue.last ? start_of(c, after) : state, queue);
        }
    }
}

KERNEL(512)
chunk_state_wide(const float* w, const float* keys, const float* to_end, const float* whole, float* mixed, float* state,
                 u64 heads, u64 chunks, u64 chunk, u64 key_width, u64 value_width) {
    SHARED float4 tiles[2 * TILE / 4];
    SHARED float4 delta[TOKENS * COLUMNS / 4];
    SHARED float4 starts[2 * KEYS * COLUMNS / 4];
    Chunks c = {w, keys, to_end, whole, mixed, state, (u32)heads, (u32)chunks, (u32)chunk, (u32)key_width, (u32)value_width,
                chunk % 4 == 0 && (u64)w % 16 == 0, key_width % 4 == 0 && (u64)keys % 16 == 0};
    Shared shared = {(float*)tiles, (float*)delta, (float*)starts};
    all_chunks(c, shared);
}

ENTRY(chunk_state_wide)
