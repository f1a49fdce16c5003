// Norms over rows; one block a row.
#include "reduce.cuh"

// y = (x - mean) / sqrt(variance + eps) * weight + bias
KERNEL(256)
layer_norm(const float* x, const float* weight, const float* bias, float* y, u64 rows, u64 columns, u64 x_stride,
           u64 y_stride, float eps) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        const float* in = x + row * x_stride;
        float* out = y + row * y_stride;
        float sum = 0.0f;
        for (u64 c = thread_index(); c < columns; c += block_size()) sum += in[c];
        float mean = block_sum(sum, partial) / (float)columns;
        float squares = 0.0f;
        for (u64 c = thread_index(); c < columns; c += block_size()) squares = fused(in[c] - mean, in[c] - mean, squares);
        float inverse = 1.0f / root(block_sum(squares, partial) / (float)columns + eps);
        for (u64 c = thread_index(); c < columns; c += block_size())
            out[c] = fused((in[c] - mean) * inverse, weight[c], bias[c]);
    }
}

// 1 / sqrt(mean(x^2) + eps), in every thread.
DEVICE float inverse_rms(const float* x, u64 columns, float eps, float* partial) {
    float squares = 0.0f;
    for (u64 c = thread_index(); c < columns; c += block_size()) squares = fused(x[c], x[c], squares);
    return 1.0f / root(block_sum(squares, partial) / (float)columns + eps);
}

// y = x / rms * (1 + weight), for the rows of a batch; x and y may be the same.
KERNEL(256)
rms_norm(const float* x, const float* weight, float* y, u64 batch, u64 rows, u64 columns, u64 x_batch_stride,
         u64 x_stride, u64 y_batch_stride, u64 y_stride, float eps) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(item, batch * rows) {
        u64 entry = item % batch, row = item / batch;
        const float* in = x + entry * x_batch_stride + row * x_stride;
        float* out = y + entry * y_batch_stride + row * y_stride;
        float inverse = inverse_rms(in, columns, eps, partial);
        for (u64 c = thread_index(); c < columns; c += block_size()) out[c] = in[c] * inverse * (1.0f + weight[c]);
        barrier();
    }
}

// x = weight * x / rms * silu(z)
KERNEL(256)
gated_rms_norm(float* x, const float* z, const float* weight, u64 rows, u64 columns, u64 x_stride, u64 z_stride,
               float eps) {
    SHARED float partial[REDUCE_THREADS];
    FOR_EACH_BLOCK_ITEM(row, rows) {
        float* in = x + row * x_stride;
        const float* gate = z + row * z_stride;
        float inverse = inverse_rms(in, columns, eps, partial);
        for (u64 c = thread_index(); c < columns; c += block_size())
            in[c] = weight[c] * (in[c] * inverse) * activation(SILU, gate[c]);
        barrier();
    }
}

ENTRY(layer_norm)
ENTRY(rms_norm)
ENTRY(gated_rms_norm)
