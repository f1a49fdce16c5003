// y = W x for one activation row or a few: decode's products. Each weight is read in the type that it is stored in.
#include "gemv.cuh"

struct Q8Weights {
    const i8* codes;
    const float* scales;
    u64 code_stride, scale_stride;

    enum { STEP = 16 };
    struct Piece {
        int4 codes;
        float scale;
    };

    DEVICE bool wide(const Q8Weights& w, u64 columns) {
        return columns % STEP == 0 && w.code_stride % STEP == 0 && (u64)w.codes % 16 == 0;
    }

    DEVICE Piece load(const Q8Weights& w, u32 row, u32 column) {
        Piece piece;
        piece.codes = *(const int4*)(w.codes + row * w.code_stride + column);
        piece.scale = w.scales[row * w.scale_stride + column / GROUP];
        return piece;
    }

    DEVICE float add(const Piece& piece, const float4* x, float sum) {
        float left = dot(four_codes(piece.codes.x), x[0], dot(four_codes(piece.codes.y), x[1], 0.0f));
        float right = dot(four_codes(piece.codes.z), x[2], dot(four_codes(piece.codes.w), x[3], 0.0f));
        return fused(piece.scale, left + right, sum);
    }

    DEVICE float at(const Q8Weights& w, u32 row, u32 column) {
        return (float)w.codes[row * w.code_stride + column] * w.scales[row * w.scale_stride + column / GROUP];
    }
};

struct FloatWeights {
    const float* values;
    u64 stride;

    enum { STEP = 4 };
    struct Piece {
        float4 values;
    };

    DEVICE bool wide(const FloatWeights& w, u64 columns) {
        return columns % STEP == 0 && w.stride % STEP == 0 && (u64)w.values % 16 == 0;
    }

    DEVICE Piece load(const FloatWeights& w, u32 row, u32 column) {
        Piece piece;
        piece.values = *(const float4*)(w.values + row * w.stride + column);
        return piece;
    }

    DEVICE float add(const Piece& piece, const float4* x, float sum) { return dot(piece.values, x[0], sum); }

    DEVICE float at(const FloatWeights& w, u32 row, u32 column) { return w.values[row * w.stride + column]; }
};

struct Bf16Weights {
    const bf16* values;
    u64 stride;

    enum { STEP = 8 };
    struct Piece {
        int4 values;
    };

    DEVICE bool wide(const Bf16Weights& w, u64 columns) {
        return columns % STEP == 0 && w.stride % STEP == 0 && (u64)w.values % 16 == 0;
    }

    DEVICE Piece load(const Bf16Weights& w, u32 row, u32 column) {
        Piece piece;
        piece.values = *(const int4*)(w.values + row * w.stride + column);
        return piece;
    }

    DEVICE float pair(u32 two, float low, float high, float sum) {
        return fused(from_bits(two << 16), low, fused(from_bits(two & 0xffff0000u), high, sum));
    }

    DEVICE float add(const Piece& piece, const float4* x, float sum) {
        sum = pair(piece.values.x, x[0].x, x[0].y, sum);
        sum = pair(piece.values.y, x[0].z, x[0].w, sum);
        sum = pair(piece.values.z, x[1].x, x[1].y, sum);
        return pair(piece.values.w, x[1].z, x[1].w, sum);
    }

    DEVICE float at(const Bf16Weights& w, u32 row, u32 column) { return bf16_value(w.values[row * w.stride + column]); }
};

template <u32 ROWS, class Weights>
DEVICE void gemv(Weights w, const float* x, float* y, u64 rows, u64 columns, u64 tokens, u64 x_stride, u64 y_stride,
                 u32 lanes, float* partial) {
    bool wide = Weights::wide(w, columns) && x_stride % 4 == 0 && (u64)x % 16 == 0;
    gemv_rows<ROWS>(w, wide, x, y, rows, columns, tokens, x_stride, y_stride, lanes, partial);
}

// One row a group: fills the card where rows are few.
KERNEL(256)
gemv_q8_few(const i8* codes, const float* scales, const float* x, float* y, u64 rows, u64 columns, u64 code_stride,
            u64 scale_stride, u64 tokens, u64 x_stride, u64 y_stride, u32 lanes) {
    SHARED float partial[GEMV_PARTIAL(1)] __attribute__((aligned(16)));
    Q8Weights w = {codes, scales, code_stride, scale_stride};
    gemv<1>(w, x, y, rows, columns, tokens, x_stride, y_stride, lanes, partial);
}

KERNEL(256)
gemv_q8(const i8* codes, const float* scales, const float* x, float* y, u64 rows, u64 columns, u64 code_stride,
        u64 scale_stride, u64 tokens, u64 x_stride, u64 y_stride, u32 lanes) {
    SHARED float partial[GEMV_PARTIAL(4)] __attribute__((aligned(16)));
    Q8Weights w = {codes, scales, code_stride, scale_stride};
    gemv<4>(w, x, y, rows, columns, tokens, x_stride, y_stride, lanes, partial);
}

KERNEL(256)
gemv_f32(const float* values, const float* x, float* y, u64 rows, u64 columns, u64 stride, u64 tokens, u64 x_stride,
         u64 y_stride, u32 lanes) {
    SHARED float partial[GEMV_PARTIAL(2)] __attribute__((aligned(16)));
    FloatWeights w = {values, stride};
    gemv<2>(w, x, y, rows, columns, tokens, x_stride, y_stride, lanes, partial);
}

KERNEL(256)
gemv_bf16(const bf16* values, const float* x, float* y, u64 rows, u64 columns, u64 stride, u64 tokens, u64 x_stride,
          u64 y_stride, u32 lanes) {
    SHARED float partial[GEMV_PARTIAL(2)] __attribute__((aligned(16)));
    Bf16Weights w = {values, stride};
    gemv<2>(w, x, y, rows, columns, tokens, x_stride, y_stride, lanes, partial);
}

ENTRY(gemv_q8_few)
ENTRY(gemv_q8)
ENTRY(gemv_f32)
ENTRY(gemv_bf16)
