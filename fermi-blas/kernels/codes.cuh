// 8-bit codes as float32.
#pragma once
#include "math.cuh"

// Codes of a row that share a scale.
#define GROUP 64

// Byte `k` of `bits` as 2^23 + byte: the byte becomes the low mantissa bits of a float. Newer cards convert integers at a
// quarter of the rate at which they move bytes, and Fermi shifts at half the rate at which it adds.
DEVICE float raised_byte(u32 bits, u32 k) { return from_bits(permute(bits, 0x4b000000u, 0x7540u + k)); }

// Four signed bytes.
DEVICE float4 four_codes(u32 codes) {
    u32 positive = codes ^ 0x80808080u;  // + 128
    float4 values;
    values.x = raised_byte(positive, 0) - 8388736.0f;
    values.y = raised_byte(positive, 1) - 8388736.0f;
    values.z = raised_byte(positive, 2) - 8388736.0f;
    values.w = raised_byte(positive, 3) - 8388736.0f;
    return values;
}

DEVICE float dot(float4 a, float4 b, float sum) {
    return fused(a.x, b.x, fused(a.y, b.y, fused(a.z, b.z, fused(a.w, b.w, sum))));
}
