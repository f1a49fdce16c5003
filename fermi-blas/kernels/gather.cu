// Rows of a table by index: values[i] = table[indices[i]].
#include "codes.cuh"

KERNEL(256)
gather_f32(const float* table, const u32* indices, float* values, u64 count, u64 columns, u64 table_stride,
           u64 value_stride) {
    FOR_EACH_THREAD_ITEM(item, count * columns) {
        u64 row = item / columns, column = item % columns;
        values[row * value_stride + column] = table[indices[row] * table_stride + column];
    }
}

KERNEL(256)
gather_bf16(const bf16* table, const u32* indices, float* values, u64 count, u64 columns, u64 table_stride,
            u64 value_stride) {
    FOR_EACH_THREAD_ITEM(item, count * columns) {
        u64 row = item / columns, column = item % columns;
        values[row * value_stride + column] = bf16_value(table[indices[row] * table_stride + column]);
    }
}

KERNEL(256)
gather_q8(const i8* codes, const float* scales, const u32* indices, float* values, u64 count, u64 columns,
          u64 code_stride, u64 scale_stride, u64 value_stride) {
    FOR_EACH_THREAD_ITEM(item, count * columns) {
        u64 row = item / columns, column = item % columns, source = indices[row];
        float scale = scales[source * scale_stride + column / GROUP];
        values[row * value_stride + column] = (float)codes[source * code_stride + column] * scale;
    }
}

ENTRY(gather_f32)
ENTRY(gather_bf16)
ENTRY(gather_q8)
