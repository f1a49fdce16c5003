// The scan token by token: S = exp(g) S, delta = beta (v - S^T k), S = S + k delta^T, o = S^T q.
//
// A block takes some value columns of one head through all tokens. Each of its threads owns some key rows of one column, so a
// token costs one meeting of the threads: what both products need is read off the state before it, since
// q^T (exp(g) S + k delta^T) = exp(g) q^T S + (q^T k) delta^T.
#include "math.cuh"

#define COLUMNS 8
#define PARTS 32   // threads that share a column
#define ROWS 4     // key rows that a thread keeps in registers
#define KEYS (PARTS * ROWS)
#define PITCH 36   // distance of two columns' partial sums: in another bank each

struct Sequence {
    const float *q, *k, *v, *g, *beta;
    float *state, *out;
    u64 tokens;
    u32 group, key_width, value_width;
    u64 q_stride, k_stride, v_stride, g_stride, beta_stride, out_stride;
    float scale, eps;
    u32 normalize;
};

struct Partial {
    float* reads;    // two turns of k S and q S, column by column
    float* lengths;  // two turns of k k, q q and q k
};

DEVICE float sum_of_parts(const float* parts) {
    float sum = 0.0f;
UNROLL
    for (u32 i = 0; i < PARTS; i += 4) {
        float4 four = *(const float4*)(parts + i);
        sum += (four.x + four.y) + (four.z + four.w);
    }
    return sum;
}

// What a thread's rows add to a token's five sums.
struct Sums {
    float k_state, q_state, k_k, q_q, q_k;
};

DEVICE void add_row(Sums& sums, float k, float q, float state) {
    sums.k_state = fused(k, state, sums.k_state);
    sums.q_state = fused(q, state, sums.q_state);
    sums.k_k = fused(k, k, sums.k_k);
    sums.q_q = fused(q, q, sums.q_q);
    sums.q_k = fused(q, k, sums.q_k);
}

// How the state moves: S = decay S + correction k.
struct Move {
    float decay, correction;
};

// A token's gates and value.
struct Gates {
    float g, beta, value;
};

DEVICE Gates gates_of(const Sequence& s, u64 token, u32 head, u32 column) {
    bool inside = column < s.value_width;
    Gates gates = {s.g[token * s.g_stride + head], s.beta[token * s.beta_stride + head],
                   inside ? s.v[token * s.v_stride + head * s.value_width + column] : 0.0f};
    return gates;
}

// Meets the other threads, and gives the token's output to the column's first thread's place.
DEVICE Move finish_token(const Sequence& s, const Sums& sums, const Gates& gates, const Partial& partial, u64 token, u32 head,
                         u32 column, u32 turn) {
    u32 place = thread_index() % COLUMNS, part = thread_index() / COLUMNS;
    float* reads = partial.reads + turn * 2 * COLUMNS * PITCH;
    float* lengths = partial.lengths + turn * 3 * PARTS;
    bool inside = column < s.value_width;
    float decay = exponential(gates.g);
    reads[place * PITCH + part] = sums.k_state;
    reads[(COLUMNS + place) * PITCH + part] = sums.q_state;
    if (place == 0) {
        lengths[part] = sums.k_k;
        lengths[PARTS + part] = sums.q_q;
        lengths[2 * PARTS + part] = sums.q_k;
    }
    barrier();
    float k_factor = 1.0f, q_factor = s.scale;
    if (s.normalize) {
        k_factor = 1.0f / root(sum_of_parts(lengths) + s.eps);
        q_factor = s.scale / root(sum_of_parts(lengths + PARTS) + s.eps);
    }
    float predicted = decay * k_factor * sum_of_parts(reads + place * PITCH);
    float delta = gates.beta * (gates.value - predicted);
    float correction = k_factor * delta;
    if (part == 0 && inside) {
        float read = decay * sum_of_parts(reads + (COLUMNS + place) * PITCH);
        float written = correction * sum_of_parts(lengths + 2 * PARTS);
        s.out[token * s.out_stride + head * s.value_width + column] = q_factor * (read + written);
    }
    Move move = {decay, correction};
    return move;
}

// A thread's rows of a token's key and query.
DEVICE void fetch_rows(const Sequence& s, u64 token, u32 head, float k[ROWS], float q[ROWS]) {
    u32 first = head / s.group * KEYS + thread_index() / COLUMNS;
    const float *q_row = s.q + token * s.q_stride + first, *k_row = s.k + token * s.k_stride + first;
UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        k[r] = k_row[r * PARTS];
        q[r] = q_row[r * PARTS];
    }
}

// The state stays in registers: keys of KEYS values.
DEVICE void resident(const Sequence& s, const Partial& partial, u32 head, u32 column, u32& turn) {
    u32 part = thread_index() / COLUMNS;
    bool inside = column < s.value_width;
    float* state = s.state + (u64)head * s.key_width * s.value_width + column;
    const float* from = state + (u64)part * s.value_width;
    float kept[ROWS], k[ROWS], next_k[ROWS], next_q[ROWS];
UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        kept[r] = inside ? *from : 0.0f;
        from += (u64)PARTS * s.value_width;
    }
    if (s.tokens == 0) return;
    // A token's inputs are on their way while the one before is worked on.
    fetch_rows(s, 0, head, next_k, next_q);
    Gates next = gates_of(s, 0, head, column);
    for (u64 token = 0; token < s.tokens; token++, turn ^= 1) {
        Gates gates = next;
        Sums sums = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
UNROLL
        for (u32 r = 0; r < ROWS; r++) {
            k[r] = next_k[r];
            add_row(sums, k[r], next_q[r], kept[r]);
        }
        // After the last token its own are fetched again, and not used.
        u64 after = token + 1 < s.tokens ? token + 1 : token;
        fetch_rows(s, after, head, next_k, next_q);
        next = gates_of(s, after, head, column);
        Move move = finish_token(s, sums, gates, partial, token, head, column, turn);
UNROLL
        for (u32 r = 0; r < ROWS; r++) kept[r] = fused(move.correction, k[r], move.decay * kept[r]);
    }
UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        u32 row = part + r * PARTS;
        if (inside) state[row * s.value_width] = kept[r];
    }
}

// Keys of any width: the state stays where it is.
DEVICE void in_memory(const Sequence& s, const Partial& partial, u32 head, u32 column, u32& turn) {
    u32 part = thread_index() / COLUMNS;
    bool inside = column < s.value_width;
    float* state = s.state + (u64)head * s.key_width * s.value_width + column;
    u32 keys = head / s.group * s.key_width;
    for (u64 token = 0; token < s.tokens; token++, turn ^= 1) {
        const float *q_row = s.q + token * s.q_stride + keys, *k_row = s.k + token * s.k_stride + keys;
        Sums sums = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (u32 row = part; row < s.key_width; row += PARTS)
            add_row(sums, k_row[row], q_row[row], inside ? state[row * s.value_width] : 0.0f);
        Move move = finish_token(s, sums, gates_of(s, token, head, column), partial, token, head, column, turn);
        if (!inside) continue;
        for (u32 row = part; row < s.key_width; row += PARTS) {
            float* value = state + row * s.value_width;
            *value = fused(move.correction, k_row[row], move.decay * *value);
        }
    }
}

template <bool RESIDENT>
DEVICE void all_heads(const Sequence& s, u32 heads) {
    SHARED float4 reads[2 * 2 * COLUMNS * PITCH / 4];
    SHARED float4 lengths[2 * 3 * PARTS / 4];
    Partial partial = {(float*)reads, (float*)lengths};
    u32 slices = (s.value_width + COLUMNS - 1) / COLUMNS;
    // Sums are written in two places by turns: who writes a place again has met all who read it.
    u32 turn = 0;
    for (u32 item = block_index(); item < heads * slices; item += grid_size()) {
        u32 head = item / slices, column = item % slices * COLUMNS + thread_index() % COLUMNS;
        if (RESIDENT)
            resident(s, partial, head, column, turn);
        else
            in_memory(s, partial, head, column, turn);
    }
}

KERNEL(256)
recurrent(const float* q, const float* k, const float* v, const float* g, const float* beta, float* state, float* out,
          u64 tokens, u64 heads, u64 group, u64 key_width, u64 value_width, u64 q_stride, u64 k_stride, u64 v_stride,
          u64 g_stride, u64 beta_stride, u64 out_stride, float scale, u32 normalize, float eps) {
    Sequence s = {q, k, v, g, beta, state, out, tokens, (u32)group, (u32)key_width, (u32)value_width, q_stride, k_stride,
                  v_stride, g_stride, beta_stride, out_stride, scale, eps, normalize};
    all_heads<true>(s, (u32)heads);
}

// Keys of any width.
KERNEL(256)
recurrent_wide(const float* q, const float* k, const float* v, const float* g, const float* beta, float* state, float* out,
               u64 tokens, u64 heads, u64 group, u64 key_width, u64 value_width, u64 q_stride, u64 k_stride, u64 v_stride,
               u64 g_stride, u64 beta_stride, u64 out_stride, float scale, u32 normalize, float eps) {
    Sequence s = {q, k, v, g, beta, state, out, tokens, (u32)group, (u32)key_width, (u32)value_width, q_stride, k_stride,
                  v_stride, g_stride, beta_stride, out_stride, scale, eps, normalize};
    all_heads<false>(s, (u32)heads);
}

ENTRY(recurrent)
ENTRY(recurrent_wide)
