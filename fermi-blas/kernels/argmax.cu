// The first index of a row's largest value, so that decode copies back one id.
#include "reduce.cuh"

#define NONE 0xffffffffu

// One block a row. NONE for a row with a NaN, or of nothing but negative infinities.
KERNEL(256)
argmax(const float* x, u32* index, u64 rows, u64 columns, u64 stride) {
    SHARED float values[REDUCE_THREADS];
    SHARED u32 places[REDUCE_THREADS];
    u32 thread = thread_index();
    FOR_EACH_BLOCK_ITEM(row, rows) {
        const float* in = x + row * stride;
        float most = -INFINITY_F;
        u32 place = NONE;
        bool damaged = false;
        for (u64 c = thread; c < columns; c += block_size()) {
            float value = in[c];
            damaged |= is_nan(value);
            if (value > most) {
                most = value;
                place = (u32)c;
            }
        }
        values[thread] = damaged ? __builtin_nanf("") : most;
        places[thread] = place;
        barrier();
        for (u32 step = block_size() / 2; step > 0; step /= 2) {
            if (thread < step) {
                float a = values[thread], b = values[thread + step];
                bool better = b > a || (b == a && places[thread + step] < places[thread]);
                if (!is_nan(a) && (is_nan(b) || better)) {
                    values[thread] = b;
                    places[thread] = places[thread + step];
                }
            }
            barrier();
        }
        if (thread == 0) index[row] = is_nan(values[0]) ? NONE : places[0];
        barrier();
    }
}

ENTRY(argmax)
