// Decays and writing strengths: g = -exp(A_log) softplus(a + dt_bias), beta = sigmoid(b).
#include "math.cuh"

KERNEL(256)
scan_gates(const float* a, const float* b, const float* a_log, const float* dt_bias, float* g, float* beta, u64 tokens,
           u64 heads, u64 a_stride, u64 b_stride, u64 g_stride, u64 beta_stride) {
    FOR_EACH_THREAD_ITEM(item, tokens * heads) {
        u64 token = item / heads, head = item % heads;
        g[token * g_stride + head] = -exponential(a_log[head]) * softplus(a[token * a_stride + head] + dt_bias[head]);
        beta[token * beta_stride + head] = sigmoid(b[token * b_stride + head]);
    }
}

ENTRY(scan_gates)
