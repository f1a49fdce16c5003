// CUDA's own words, without its headers: clang compiles these to PTX for sm_20, a C++ compiler to host code for tests.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef unsigned short bf16;

#ifdef EMULATED
#include "emulator.hpp"
#else
#define KERNEL(threads) extern "C" __attribute__((global)) __attribute__((launch_bounds(threads))) void
// Names a kernel to the host code's launcher; a driver finds it by itself.
#define ENTRY(kernel)
#define DEVICE static __attribute__((device)) __inline__ __attribute__((always_inline))
#define SHARED __attribute__((shared))
// A shared array as long as the launch says.
#define LAUNCH_SHARED(type, name) extern SHARED type name[]
#define UNROLL _Pragma("unroll")
// Loops of unknown length, some steps at a time: a thread then has several loads on their way. More steps need more registers,
// of which a thread of Fermi has 63.
#define UNROLL_2 _Pragma("unroll 2")
#define UNROLL_4 _Pragma("unroll 4")

DEVICE u32 thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_size() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 grid_size() { return __nvvm_read_ptx_sreg_nctaid_x(); }

// Every thread of the block waits here for the others.
DEVICE void barrier() { __syncthreads(); }

// Four of the bytes of b and a (a's are 0 to 3), chosen by the selector's low nibbles, the lowest first.
DEVICE u32 permute(u32 a, u32 b, u32 selector) { return __nvvm_prmt(a, b, selector); }
#endif

// Work items of a grid that is too small for all of them: block b takes b, b + blocks, b + 2 blocks, ...
#define FOR_EACH_BLOCK_ITEM(item, count) for (u64 item = block_index(); item < (count); item += grid_size())

// The same for single threads.
#define FOR_EACH_THREAD_ITEM(item, count)                                              \
    for (u64 item = (u64)block_index() * block_size() + thread_index(); item < (count); \
         item += (u64)grid_size() * block_size())

struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));

struct int4 {
    int x, y, z, w;
} __attribute__((aligned(16)));

DEVICE float bf16_value(bf16 bits) {
    union {
        u32 bits;
        float value;
    } both;
    both.bits = (u32)bits << 16;
    return both.value;
}
