// Operations on single elements: residuals, activations, gates.
#include "math.cuh"

// x += y; a `y_stride` of 0 adds one row to all.
KERNEL(256)
add(float* x, const float* y, u64 rows, u64 columns, u64 x_stride, u64 y_stride) {
    FOR_EACH_THREAD_ITEM(item, rows * columns) {
        u64 row = item / columns, column = item % columns;
        x[row * x_stride + column] += y[row * y_stride + column];
    }
}

// x = f(x)
KERNEL(256)
activate(float* x, u64 rows, u64 columns, u64 stride, u32 kind) {
    FOR_EACH_THREAD_ITEM(item, rows * columns) {
        u64 index = item / columns * stride + item % columns;
        x[index] = activation(kind, x[index]);
    }
}

// x = x * f(gate)
KERNEL(256)
gate(float* x, const float* gates, u64 rows, u64 columns, u64 x_stride, u64 gate_stride, u32 kind) {
    FOR_EACH_THREAD_ITEM(item, rows * columns) {
        u64 row = item / columns, column = item % columns;
        x[row * x_stride + column] *= activation(kind, gates[row * gate_stride + column]);
    }
}

ENTRY(add)
ENTRY(activate)
ENTRY(gate)
