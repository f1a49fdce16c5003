// y = W x with 4-bit weights (paper, section 3.3): half the bytes of 8 bits, and more work to take them apart. Only here, for
// the comparison; loads, sums and launches are those of the 8-bit product.
#include "gemv.cuh"

// Byte i of a row holds column 2 i in its low half and column 2 i + 1 in its high half, as value + 8.
struct Q4Weights {
    const i8* codes;
    const float* scales;
    u64 code_stride, scale_stride;

    enum { STEP = 16 };
    struct Piece {
        u32 low, high;
        float scale;
    };

    struct Pair {
        u32 x, y;
    } __attribute__((aligned(8)));

    DEVICE Piece load(const Q4Weights& w, u32 row, u32 column) {
        Pair pair = *(const Pair*)(w.codes + row * w.code_stride + column / 2);
        Piece piece;
        piece.low = pair.x;
        piece.high = pair.y;
        piece.scale = w.scales[row * w.scale_stride + column / GROUP];
        return piece;
    }

    DEVICE float value(u32 halves, u32 k) { return raised_byte(halves, k) - 8388616.0f; }

    // Eight columns.
    DEVICE float add_eight(u32 codes, float4 x0, float4 x1, float sum) {
        u32 even = codes & 0x0f0f0f0fu, odd = codes >> 4 & 0x0f0f0f0fu;
        sum = fused(value(even, 0), x0.x, fused(value(odd, 0), x0.y, sum));
        sum = fused(value(even, 1), x0.z, fused(value(odd, 1), x0.w, sum));
        sum = fused(value(even, 2), x1.x, fused(value(odd, 2), x1.y, sum));
        return fused(value(even, 3), x1.z, fused(value(odd, 3), x1.w, sum));
    }

    DEVICE float add(const Piece& piece, const float4* x, float sum) {
        float low = add_eight(piece.low, x[0], x[1], 0.0f);
        return fused(piece.scale, add_eight(piece.high, x[2], x[3], low), sum);
    }

    DEVICE float at(const Q4Weights& w, u32 row, u32 column) {
        u32 byte = (unsigned char)w.codes[row * w.code_stride + column / 2];
        float code = (float)((int)(column % 2 ? byte >> 4 : byte & 15) - 8);
        return code * w.scales[row * w.scale_stride + column / GROUP];
    }
};

KERNEL(256)
gemv_q4(const i8* codes, const float* scales, const float* x, float* y, u64 rows, u64 columns, u64 code_stride,
        u64 scale_stride, u32 lanes) {
    SHARED float partial[GEMV_PARTIAL(4)] __attribute__((aligned(16)));
    Q4Weights w = {codes, scales, code_stride, scale_stride};
    bool wide = columns % Q4Weights::STEP == 0 && code_stride % 8 == 0 && (u64)codes % 8 == 0 && (u64)x % 16 == 0;
    gemv_rows<4>(w, wide, x, y, rows, columns, 1, columns, rows, lanes, partial);
}

ENTRY(gemv_q4)
