// The causal convolution: y_t = f(sum_j weight_j x_(t - K + 1 + j)), inputs before the first from the state.
#include "math.cuh"

#define NO_ACTIVATION 4
#define SEGMENT 16  // tokens of a thread, at least

DEVICE float finish(u32 kind, float y) { return kind == NO_ACTIVATION ? y : activation(kind, y); }

// One channel.
struct Channel {
    const float *x, *weight;
    float *state, *out;
    u64 taps, channels, x_stride, weight_stride, out_stride;
    u32 kind;
};

// The input at `index` of the state's rows followed by the tokens.
DEVICE float input(const Channel& c, u64 index) {
    return index + 1 < c.taps ? c.state[index * c.channels] : c.x[(index + 1 - c.taps) * c.x_stride];
}

DEVICE void any_taps(const Channel& c, u64 first, u64 last) {
    for (u64 token = first; token < last; token++) {
        float sum = 0.0f;
        for (u64 tap = 0; tap < c.taps; tap++) sum = fused(c.weight[tap * c.weight_stride], input(c, token + tap), sum);
        c.out[token * c.out_stride] = finish(c.kind, sum);
    }
}

// The models' four taps: each input is read once, four of them together.
DEVICE void four_taps(const Channel& c, u64 first, u64 last) {
    float w0 = c.weight[0], w1 = c.weight[c.weight_stride], w2 = c.weight[2 * c.weight_stride];
    float w3 = c.weight[3 * c.weight_stride];
    float x[7] = {input(c, first), input(c, first + 1), input(c, first + 2)};
    for (u64 token = first; token < last; token += 4) {
UNROLL
        for (u32 n = 0; n < 4; n++) x[3 + n] = token + n < last ? c.x[(token + n) * c.x_stride] : 0.0f;
UNROLL
        for (u32 n = 0; n < 4; n++) {
            float y = fused(w3, x[n + 3], fused(w2, x[n + 2], fused(w1, x[n + 1], w0 * x[n])));
            if (token + n < last) c.out[(token + n) * c.out_stride] = finish(c.kind, y);
        }
UNROLL
        for (u32 n = 0; n < 3; n++) x[n] = x[n + 4];
    }
}

// A thread takes a segment of one channel's tokens. Only the first segment reaches back into the state, so the thread that
// has computed it may move the state on.
KERNEL(256)
causal_conv(const float* x, const float* weight, float* state, float* out, u64 tokens, u64 channels, u64 taps,
            u64 x_stride, u64 weight_stride, u64 out_stride, u32 kind) {
    u64 length = taps > SEGMENT ? taps : SEGMENT;
    u64 segments = tokens > length ? (tokens + length - 1) / length : 1;
    FOR_EACH_THREAD_ITEM(item, segments * channels) {
        u64 channel = item % channels, first = item / channels * length;
        u64 last = first + length < tokens ? first + length : tokens;
        Channel c = {x + channel, weight + channel, state + channel, out + channel, taps, channels, x_stride, weight_stride,
                     out_stride, kind};
        if (taps == 4 && first < last)
            four_taps(c, first, last);
        else
            any_taps(c, first, last);
        if (first > 0) continue;
        for (u64 row = 0; row + 1 < taps; row++) c.state[row * channels] = input(c, tokens + row);
    }
}

ENTRY(causal_conv)
