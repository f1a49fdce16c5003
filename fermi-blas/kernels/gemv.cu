// y = W x for one activation row: decode's products. Each weight is read once, in the type that it is stored in.
#include "math.cuh"

#define GROUP 64
#define ROWS 4       // rows of a warp: x is read once for all of them
#define WARPS 8      // warps of a block
#define WARP 32

// Adds up each warp's lanes: lane 0 has the sum.
DEVICE float warp_sum(float value, float* partial) {
    u32 lane = thread_index() % WARP;
    barrier();
    partial[thread_index()] = value;
    barrier();
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        if (lane < step) partial[thread_index()] += partial[thread_index() + step];
        barrier();
    }
    return partial[thread_index()];
}

DEVICE float dot_four(u32 codes, float4 x) {
    return fused((float)(i8)codes, x.x,
                 fused((float)(i8)(codes >> 8), x.y,
                       fused((float)(i8)(codes >> 16), x.z, (float)(i8)(codes >> 24) * x.w)));
}

// 8-bit weights. A lane takes 16 codes of a row by one load; the four rows of a warp share the 16 activations.
KERNEL(256)
gemv_q8(const i8* codes, const float* scales, const float* x, float* y, u64 rows, u64 columns, u64 code_stride,
        u64 scale_stride) {
    SHARED float partial[WARPS * WARP];
    u32 warp = thread_index() / WARP, lane = thread_index() % WARP;
    bool wide = columns % 16 == 0 && code_stride % 16 == 0 && (u64)codes % 16 == 0 && (u64)x % 16 == 0;
    FOR_EACH_BLOCK_ITEM(item, (rows + ROWS * WARPS - 1) / (ROWS * WARPS)) {
        u64 first = (item * WARPS + warp) * ROWS;
        float sum[ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (wide) {
            for (u64 column = lane * 16; column < columns; column += WARP * 16) {
                float4 x0 = *(const float4*)(x + column), x1 = *(const float4*)(x + column + 4);
                float4 x2 = *(const float4*)(x + column + 8), x3 = *(const float4*)(x + column + 12);
UNROLL
                for (u32 r = 0; r < ROWS; r++) {
                    u64 row = first + r < rows ? first + r : rows - 1;
                    int4 c = *(const int4*)(codes + row * code_stride + column);
                    float part = dot_four(c.x, x0) + dot_four(c.y, x1) + (dot_four(c.z, x2) + dot_four(c.w, x3));
                    sum[r] = fused(scales[row * scale_stride + column / GROUP], part, sum[r]);
                }
            }
        } else {
            for (u64 column = lane; column < columns; column += WARP) {
UNROLL
                for (u32 r = 0; r < ROWS; r++) {
                    u64 row = first + r < rows ? first + r : rows - 1;
                    float weight = (float)codes[row * code_stride + column] * scales[row * scale_stride + column / GROUP];
                    sum[r] = fused(weight, x[column], sum[r]);
                }
            }
        }
UNROLL
        for (u32 r = 0; r < ROWS; r++) {
            float total = warp_sum(sum[r], partial);
            if (lane == 0 && first + r < rows) y[first + r] = total;
        }
    }
}

// float32 weights; a warp a row.
KERNEL(256)
gemv_f32(const float* weights, const float* x, float* y, u64 rows, u64 columns, u64 stride) {
    SHARED float partial[WARPS * WARP];
    u32 warp = thread_index() / WARP, lane = thread_index() % WARP;
    bool wide = columns % 4 == 0 && stride % 4 == 0 && (u64)weights % 16 == 0 && (u64)x % 16 == 0;
    FOR_EACH_BLOCK_ITEM(item, (rows + WARPS - 1) / WARPS) {
        u64 row = item * WARPS + warp;
        const float* weight = weights + (row < rows ? row : rows - 1) * stride;
        float sum = 0.0f;
        if (wide) {
            for (u64 column = lane * 4; column < columns; column += WARP * 4) {
                float4 w = *(const float4*)(weight + column), v = *(const float4*)(x + column);
                sum = fused(w.x, v.x, fused(w.y, v.y, fused(w.z, v.z, fused(w.w, v.w, sum))));
            }
        } else {
            for (u64 column = lane; column < columns; column += WARP) sum = fused(weight[column], x[column], sum);
        }
        float total = warp_sum(sum, partial);
        if (lane == 0 && row < rows) y[row] = total;
    }
}

// bfloat16 weights; a warp a row.
KERNEL(256)
gemv_bf16(const bf16* weights, const float* x, float* y, u64 rows, u64 columns, u64 stride) {
    SHARED float partial[WARPS * WARP];
    u32 warp = thread_index() / WARP, lane = thread_index() % WARP;
    bool wide = columns % 8 == 0 && stride % 8 == 0 && (u64)weights % 16 == 0 && (u64)x % 16 == 0;
    FOR_EACH_BLOCK_ITEM(item, (rows + WARPS - 1) / WARPS) {
        u64 row = item * WARPS + warp;
        const bf16* weight = weights + (row < rows ? row : rows - 1) * stride;
        float sum = 0.0f;
        if (wide) {
            for (u64 column = lane * 8; column < columns; column += WARP * 8) {
                int4 w = *(const int4*)(weight + column);
                float4 x0 = *(const float4*)(x + column), x1 = *(const float4*)(x + column + 4);
                sum = fused(from_bits((u32)w.x << 16), x0.x, fused(from_bits((u32)w.x & 0xffff0000u), x0.y, sum));
                sum = fused(from_bits((u32)w.y << 16), x0.z, fused(from_bits((u32)w.y & 0xffff0000u), x0.w, sum));
                sum = fused(from_bits((u32)w.z << 16), x1.x, fused(from_bits((u32)w.z & 0xffff0000u), x1.y, sum));
                sum = fused(from_bits((u32)w.w << 16), x1.z, fused(from_bits((u32)w.w & 0xffff0000u), x1.w, sum));
            }
        } else {
            for (u64 column = lane; column < columns; column += WARP)
                sum = fused(bf16_value(weight[column]), x[column], sum);
        }
        float total = warp_sum(sum, partial);
        if (lane == 0 && row < rows) y[row] = total;
    }
}
