// Elementary functions: without a device library clang has none, and the host build shall compute the same.
#pragma once
#include "cuda.cuh"

#define INFINITY_F __builtin_inff()
#define LOWEST_F (-3.40282347e38f)

DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float root(float x) { return __builtin_sqrtf(x); }
DEVICE float largest(float a, float b) { return a > b ? a : b; }

DEVICE float from_bits(u32 bits) {
    union {
        u32 bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
}

DEVICE u32 to_bits(float value) {
    union {
        u32 bits;
        float value;
    } both;
    both.value = value;
    return both.bits;
}

DEVICE bool is_nan(float x) { return x != x; }

// e^r for |r| <= ln 2 / 2.
DEVICE float exponential_polynomial(float r) {
    float p = 1.98756911e-4f;
    p = fused(p, r, 1.39819994e-3f);
    p = fused(p, r, 8.33345205e-3f);
    p = fused(p, r, 4.16657962e-2f);
    p = fused(p, r, 1.66666657e-1f);
    p = fused(p, r, 0.5f);
    return fused(p * r, r, r) + 1.0f;
}

// e^x: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so that r keeps its digits; a polynomial for e^r; 2^n in two
// factors, so that results near the ends of the range are right. NaN stays NaN.
DEVICE float exponential(float x) {
    if (is_nan(x)) return x;
    if (x > 88.8f) return INFINITY_F;
    if (x < -103.98f) return 0.0f;
    float n = x * 1.44269504f;
    int whole = (int)(n + (n < 0.0f ? -0.5f : 0.5f));
    n = (float)whole;
    float r = fused(n, -0.693145752f, x);
    r = fused(n, -1.42860677e-6f, r);
    int half = whole / 2;
    return exponential_polynomial(r) * from_bits((u32)(half + 127) << 23) * from_bits((u32)(whole - half + 127) << 23);
}

// e^x for x <= 0 or hardly above, in half the steps: as above, but 1.5 * 2^23 is added so that the whole number of halvings
// comes to stand in the low bits, and results below the smallest normal number are 0. NaN stays NaN.
DEVICE float negative_exponential(float x) {
    float shifted = fused(x, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fused(n, -0.693145752f, x);
    r = fused(n, -1.42860677e-6f, r);
    float p = exponential_polynomial(r) * from_bits((to_bits(shifted) + 127u) << 23);
    return x < -87.33f ? 0.0f : p;
}

// ln x for x >= 1.
DEVICE float logarithm(float x) {
    if (is_nan(x) || x == INFINITY_F) return x;
    u32 bits = to_bits(x);
    int exponent = (int)(bits >> 23) - 127;
    float m = from_bits((bits & 0x007fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m *= 0.5f;
        exponent += 1;
    }
    float f = m - 1.0f;
    float s = f / (2.0f + f), z = s * s;
    float p = 0.2333811f;
    p = fused(p, z, 0.28550527f);
    p = fused(p, z, 0.40000125f);
    p = fused(p, z, 0.66666667f);
    float e = (float)exponent;
    return fused(e, 0.693145752f, f - s * (f - p * z)) + e * 1.42860677e-6f;
}

// ln(1 + y) for 0 <= y <= 1: the part of 1 + y that rounding drops is put back.
DEVICE float log_1p(float y) {
    float sum = 1.0f + y;
    return logarithm(sum) + (y - (sum - 1.0f)) / sum;
}

// ln(1 + e^x), as the reference takes it: x itself above 20.
DEVICE float softplus(float x) { return x > 20.0f ? x : x > 0.0f ? x + log_1p(exponential(-x)) : log_1p(exponential(x)); }

DEVICE float sigmoid(float x) {
    float e = exponential(x > 0.0f ? -x : x);
    return (x > 0.0f ? 1.0f : e) / (1.0f + e);
}

// (e^2x - 1) / (e^2x + 1); near 0 by the odd series, where that difference would lose its digits.
DEVICE float hyperbolic_tangent(float x) {
    float magnitude = x < 0.0f ? -x : x;
    if (magnitude < 0.55f) {
        float z = x * x;
        float p = 0.0025255f;
        p = fused(p, z, -0.00852544f);
        p = fused(p, z, 0.02181812f);
        p = fused(p, z, -0.05396465f);
        p = fused(p, z, 0.13333324f);
        p = fused(p, z, -0.33333333f);
        return fused(p * z, x, x);
    }
    float t = 1.0f - 2.0f / (exponential(2.0f * magnitude) + 1.0f);
    return x < 0.0f ? -t : t;
}

// The error function: its series up to 1, and 1 minus the complement beyond, whose factor e^(x^2) erfc(x) is a polynomial in
// t = 1 / (1 + x / 2) times t.
DEVICE float error_function(float x) {
    float magnitude = x < 0.0f ? -x : x;
    if (magnitude < 1.0f) {
        float z = x * x;
        float p = -1.02195892e-5f;
        p = fused(p, z, 1.14524923e-4f);
        p = fused(p, z, -8.50861441e-4f);
        p = fused(p, z, 5.22261341e-3f);
        p = fused(p, z, -2.68659453e-2f);
        p = fused(p, z, 1.12837903e-1f);
        p = fused(p, z, -3.76126389e-1f);
        return fused(p * z, x, 1.12837917f * x);
    }
    float t = 1.0f / fused(0.5f, magnitude, 1.0f);
    float p = 0.17087277f;
    p = fused(p, t, -0.82215223f);
    p = fused(p, t, 1.48851587f);
    p = fused(p, t, -1.13520398f);
    p = fused(p, t, 0.27886807f);
    p = fused(p, t, -0.18628806f);
    p = fused(p, t, 0.09678418f);
    p = fused(p, t, 0.37409196f);
    p = fused(p, t, 1.00002368f);
    p = fused(p, t, -1.26551223f);
    float complement = t * exponential(fused(-magnitude, magnitude, p));
    float erf = 1.0f - complement;
    return x < 0.0f ? -erf : erf;
}

#define SILU 0
#define SIGMOID 1
#define GELU_TANH 2
#define GELU_ERF 3

// The elementwise functions, by the number that the launcher hands over.
DEVICE float activation(u32 kind, float x) {
    switch (kind) {
        case SILU: return x * sigmoid(x);
        case SIGMOID: return sigmoid(x);
        case GELU_TANH: {
            float inner = 0.797884561f * fused(0.044715f * x * x, x, x);
            return 0.5f * x * (1.0f + hyperbolic_tangent(inner));
        }
        default: return 0.5f * x * (1.0f + error_function(x * 0.707106781f));
    }
}
