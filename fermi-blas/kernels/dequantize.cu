// Weights as float32: the first half of a prefill's projection (paper, section 3.1).
#include "codes.cuh"

// values[r][c] = codes[r][c] * scales[r][c / 64]. A thread takes four neighbours where the row allows it.
KERNEL(256)
dequantize_q8(const i8* codes, const float* scales, float* values, u64 rows, u64 columns, u64 code_stride,
              u64 scale_stride, u64 value_stride) {
    u64 quads = (columns + 3) / 4;
    bool wide = columns % 4 == 0 && code_stride % 4 == 0 && value_stride % 4 == 0 && (u64)codes % 4 == 0 &&
                (u64)values % 16 == 0;
    FOR_EACH_THREAD_ITEM(item, rows * quads) {
        u64 row = item / quads, column = item % quads * 4;
        const i8* code = codes + row * code_stride + column;
        float* value = values + row * value_stride + column;
        float scale = scales[row * scale_stride + column / GROUP];
        if (wide) {
            float4 result = four_codes(*(const u32*)code);
            result.x *= scale;
            result.y *= scale;
            result.z *= scale;
            result.w *= scale;
            *(float4*)value = result;
        } else {
            for (u64 i = 0; i < 4 && column + i < columns; i++) value[i] = (float)code[i] * scale;
        }
    }
}

// values[r][c] = the bfloat16 words[r][c]
KERNEL(256)
dequantize_bf16(const bf16* words, float* values, u64 rows, u64 columns, u64 word_stride, u64 value_stride) {
    FOR_EACH_THREAD_ITEM(item, rows * columns) {
        u64 row = item / columns, column = item % columns;
        values[row * value_stride + column] = bf16_value(words[row * word_stride + column]);
    }
}

ENTRY(dequantize_q8)
ENTRY(dequantize_bf16)
