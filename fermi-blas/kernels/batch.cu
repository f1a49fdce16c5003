// Batches of matrix products that the library does not take as they are.
#include "cuda.cuh"

// Where the matrices lie: entry i of an input lies i / repeat strides from its first. Each entry is cut into parts.
KERNEL(256)
batch_pointers(u64* pointers, u64 batch, u64 parts, u64 a, u64 a_stride, u64 a_repeat, u64 a_part, u64 b, u64 b_stride,
               u64 b_repeat, u64 b_part, u64 c, u64 c_stride, u64 c_part) {
    u64 count = batch * parts;
    FOR_EACH_THREAD_ITEM(i, count) {
        u64 entry = i / parts, part = i % parts;
        pointers[i] = a + entry / a_repeat * a_stride + part * a_part;
        pointers[count + i] = b + entry / b_repeat * b_stride + part * b_part;
        pointers[2 * count + i] = c + entry * c_stride + part * c_part;
    }
}

// C = the sum of its parts + beta * C, a block for each row. The parts lie one behind the other, each [rows, columns] without
// gaps.
KERNEL(256)
sum_parts(const float* parts, float* c, u64 batch, u64 count, u64 rows, u64 columns, u64 stride, u64 batch_stride,
          float beta) {
    u64 size = rows * columns;
    FOR_EACH_BLOCK_ITEM(item, batch * rows) {
        u64 entry = item / rows, row = item % rows;
        const float* first = parts + entry * count * size + row * columns;
        float* values = c + entry * batch_stride + row * stride;
        for (u64 i = thread_index(); i < columns; i += block_size()) {
            float sum = 0.0f;
            UNROLL_4
            for (u64 part = 0; part < count; part++) sum += first[part * size + i];
            values[i] = beta == 0.0f ? sum : sum + beta * values[i];
        }
    }
}

ENTRY(batch_pointers)
ENTRY(sum_parts)
