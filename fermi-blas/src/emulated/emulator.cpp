// Runs kernels on the host: blocks one after another, a block's threads as fibers. One order of fibers hides a missing barrier
// that another shows, so the order is the caller's.
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#endif

#define DEVICE static inline
#include "emulator.hpp"
#undef DEVICE

namespace emulator {
thread_local Place place;

namespace {
const std::size_t STACK = 128 << 10;

enum class State { Ready, Waiting, Done };

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state;
    u32 thread;
};

using Entry = void (*)(const void* const*);

struct Block {
    ucontext_t scheduler;
    std::vector<Fiber> fibers;
    Fiber* running = nullptr;
    Entry entry = nullptr;
    const void* const* arguments = nullptr;
};
thread_local Block block;

void start() {
    block.entry(block.arguments);
    block.running->state = State::Done;
}

void prepare(u32 threads) {
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    for (u32 thread = 0; thread < threads; thread++) {
        Fiber& fiber = block.fibers[thread];
        if (!fiber.stack) fiber.stack.reset(new char[STACK]);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = &block.scheduler;
        fiber.state = State::Ready;
        fiber.thread = thread;
        makecontext(&fiber.context, start, 0);
        // AddressSanitizer forgets where a stack's arrays end whenever its context is switched to, unless the stack seems empty.
        fiber.context.uc_stack.ss_size = 0;
    }
}

// The n-th to run of `count`: forward, backward, or a shuffle that every round draws anew.
u32 nth(u32 n, u32 count, u32 order, u32 round) {
    if (order == 0) return n;
    if (order == 1) return count - 1 - n;
    u32 step = 2 * (round * 7 + 5) + 1;
    while (true) {
        u32 a = step, b = count;
        while (b) {
            u32 rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) break;
        step += 2;
    }
    return (u32)(((u64)n * step + round * 13) % count);
}

// Runs one block to its end; false when only some of its threads came to a barrier.
bool run_block(u32 threads, u32 order) {
    prepare(threads);
    for (u32 round = 0;; round++) {
        u32 waiting = 0, done = 0;
        for (u32 n = 0; n < threads; n++) {
            Fiber& fiber = block.fibers[nth(n, threads, order, round)];
            place.thread = fiber.thread;
            fiber.state = State::Ready;
            block.running = &fiber;
            swapcontext(&block.scheduler, &fiber.context);
            (fiber.state == State::Waiting ? waiting : done)++;
        }
        if (waiting == 0) return true;
        if (done != 0) {
            // No other block may find what these stacks were left with.
            block.fibers.clear();
            return false;
        }
    }
}
}  // namespace

void wait() {
    Fiber* fiber = block.running;
    fiber->state = State::Waiting;
    swapcontext(&fiber->context, &block.scheduler);
    place.thread = fiber->thread;
}
}  // namespace emulator

extern "C" void* fermi_blas_guarded_alloc(std::size_t bytes);
extern "C" void fermi_blas_guarded_free(void* memory, std::size_t bytes);

// Returns 0; 1 when a barrier was not met by all; 2 without memory.
extern "C" int fermi_blas_emulate(emulator::Entry entry, const void* const* arguments, u32 blocks, u32 threads, u32 shared,
                                  u32 order) {
#ifdef __SANITIZE_ADDRESS__
    // Shared arrays are the process's then, see SHARED.
    static std::mutex launches;
    std::lock_guard<std::mutex> lock(launches);
#endif
    emulator::block.entry = entry;
    emulator::block.arguments = arguments;
    emulator::place.threads = threads;
    emulator::place.blocks = blocks;
    void* memory = shared ? fermi_blas_guarded_alloc(shared) : nullptr;
    if (shared && !memory) return 2;
    emulator::place.shared = memory;
    bool met = true;
    for (u32 n = 0; met && n < blocks; n++) {
        emulator::place.block = emulator::nth(n, blocks, order, 0);
        met = emulator::run_block(threads, order);
    }
    if (memory) fermi_blas_guarded_free(memory, shared);
    return met ? 0 : 1;
}

// Zeroed memory that ends at a page which may not be touched, and begins after another: a kernel that leaves its buffer is
// stopped. The bytes are rounded up to 16, the alignment of the widest load. AddressSanitizer also guards what is left of the
// buffer's own pages.
extern "C" void* fermi_blas_guarded_alloc(std::size_t bytes) {
    std::size_t page = (std::size_t)sysconf(_SC_PAGESIZE);
    std::size_t rounded = (bytes + 15) / 16 * 16, inner = (rounded + page - 1) / page * page;
    void* mapped = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(mapped) + page;
    if (mprotect(start, inner, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapped, inner + 2 * page);
        return nullptr;
    }
    char* memory = start + inner - rounded;
    ASAN_POISON_MEMORY_REGION(start, inner - rounded);
    ASAN_POISON_MEMORY_REGION(memory + bytes, rounded - bytes);
    return memory;
}

extern "C" void fermi_blas_guarded_free(void* memory, std::size_t bytes) {
    std::size_t page = (std::size_t)sysconf(_SC_PAGESIZE);
    std::size_t rounded = (bytes + 15) / 16 * 16, inner = (rounded + page - 1) / page * page;
    char* start = static_cast<char*>(memory) + rounded - inner;
    ASAN_UNPOISON_MEMORY_REGION(start, inner);
    munmap(start - page, inner + 2 * page);
}
