// Running sums of the decays' logarithms within each chunk, as a float32 and what its rounding left over: after one strong
// decay, differences of float32 sums alone would have lost their digits.
#include "math.cuh"

#define STRONGEST (-1000.0f)  // exp of it is 0; keeps sums finite when a decay is minus infinity
#define AHEAD 16              // values that are fetched before they are added

// One thread a chunk and head. The tokens that fill up the last chunk decay nothing.
KERNEL(64)
chunk_cumsum(const float* g, float* high, float* low, u64 tokens, u64 heads, u64 chunks, u64 chunk, u64 stride) {
    FOR_EACH_THREAD_ITEM(item, heads * chunks) {
        u64 head = item % heads, first = item / heads * chunk;
        u64 to = head * chunks * chunk + first;
        double sum = 0.0;
        for (u64 i = 0; i < chunk; i += AHEAD) {
            float values[AHEAD];
UNROLL
            for (u32 n = 0; n < AHEAD; n++) {
                u64 token = first + i + n;
                float value = token < tokens ? g[token * stride + head] : 0.0f;
                values[n] = value < STRONGEST ? STRONGEST : value;
            }
UNROLL
            for (u32 n = 0; n < AHEAD; n++) {
                if (i + n >= chunk) break;
                sum += (double)values[n];
                float rounded = (float)sum;
                high[to + i + n] = rounded;
                low[to + i + n] = (float)(sum - (double)rounded);
            }
        }
    }
}

ENTRY(chunk_cumsum)
