// The same words as host C++: a block's threads are fibers that meet at the barrier.
#pragma once
#include <cstddef>
#include <utility>

#define KERNEL(threads) extern "C" void
#define DEVICE static inline
#ifdef __SANITIZE_ADDRESS__
// AddressSanitizer watches the process's arrays, but no thread's own.
#define SHARED static
#else
#define SHARED static thread_local
#endif
#define LAUNCH_SHARED(type, name) type* name = static_cast<type*>(emulator::place.shared)
#define UNROLL
#define UNROLL_2
#define UNROLL_4

namespace emulator {
// Where the running fiber stands.
struct Place {
    u32 thread, block, threads, blocks;
    void* shared;  // as much as was asked for at the launch
};
extern thread_local Place place;

// Hands over to the other fibers until all have come here.
void wait();

// Calls a kernel with the values that `arguments` points to.
template <class... Types, std::size_t... Index>
void apply(void (*kernel)(Types...), const void* const* arguments, std::index_sequence<Index...>) {
    kernel(*static_cast<const Types*>(arguments[Index])...);
}

template <class... Types>
void call(void (*kernel)(Types...), const void* const* arguments) {
    apply(kernel, arguments, std::index_sequence_for<Types...>());
}
}  // namespace emulator

// The entry that the launcher knows: takes the arguments' addresses, as the driver does.
#define ENTRY(kernel) \
    extern "C" void emulated_##kernel(const void* const* arguments) { emulator::call(kernel, arguments); }

DEVICE u32 thread_index() { return emulator::place.thread; }
DEVICE u32 block_index() { return emulator::place.block; }
DEVICE u32 block_size() { return emulator::place.threads; }
DEVICE u32 grid_size() { return emulator::place.blocks; }
DEVICE void barrier() { emulator::wait(); }

DEVICE u32 permute(u32 a, u32 b, u32 selector) {
    u64 bytes = (u64)b << 32 | a;
    u32 result = 0;
    for (u32 i = 0; i < 4; i++) result |= (u32)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}
