/* Jumps into lib LIBRARY, which is opened at the first call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static const char *const files[] = { FILES NULL };
static const char *const names[] = { NAMES };

__attribute__((visibility("hidden"))) void *LIBRARY_jumps[sizeof(names) / sizeof(names[0])];

/* Stands in for a function of a library that is not there. */
static long missing(void) { return FAILURE; }

static void *open_library(void) {
    static void *library;
    if (!library)
        for (size_t i = 0; files[i] && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    return library;
}

__attribute__((visibility("hidden"), used)) void *LIBRARY_resolve(size_t index) {
    void *library = open_library();
    void *function = library ? dlsym(library, names[index]) : NULL;
    if (!function) function = (void *)missing;
    __atomic_store_n(&LIBRARY_jumps[index], function, __ATOMIC_RELEASE);
    return function;
}

/* Keeps every register that may hold an argument while the name is looked up. r10 holds the name's index. */
__asm__(
    ".text\n"
    ".hidden LIBRARY_first\n"
    "LIBRARY_first:\n"
    "  push %rbp\n  mov %rsp, %rbp\n  and $-16, %rsp\n  sub $192, %rsp\n"
    "  mov %rdi, 0(%rsp)\n  mov %rsi, 8(%rsp)\n  mov %rdx, 16(%rsp)\n  mov %rcx, 24(%rsp)\n"
    "  mov %r8, 32(%rsp)\n  mov %r9, 40(%rsp)\n  mov %rax, 48(%rsp)\n"
    "  movups %xmm0, 64(%rsp)\n  movups %xmm1, 80(%rsp)\n  movups %xmm2, 96(%rsp)\n  movups %xmm3, 112(%rsp)\n"
    "  movups %xmm4, 128(%rsp)\n  movups %xmm5, 144(%rsp)\n  movups %xmm6, 160(%rsp)\n  movups %xmm7, 176(%rsp)\n"
    "  mov %r10, %rdi\n  call LIBRARY_resolve\n  mov %rax, %r11\n"
    "  mov 0(%rsp), %rdi\n  mov 8(%rsp), %rsi\n  mov 16(%rsp), %rdx\n  mov 24(%rsp), %rcx\n"
    "  mov 32(%rsp), %r8\n  mov 40(%rsp), %r9\n  mov 48(%rsp), %rax\n"
    "  movups 64(%rsp), %xmm0\n  movups 80(%rsp), %xmm1\n  movups 96(%rsp), %xmm2\n  movups 112(%rsp), %xmm3\n"
    "  movups 128(%rsp), %xmm4\n  movups 144(%rsp), %xmm5\n  movups 160(%rsp), %xmm6\n  movups 176(%rsp), %xmm7\n"
    "  mov %rbp, %rsp\n  pop %rbp\n  jmp *%r11\n");

#define TRAMPOLINE(name, index)                                   \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n" \
            #name ":\n"                                            \
            "  mov LIBRARY_jumps+8*" #index "(%rip), %r11\n"       \
            "  test %r11, %r11\n"                                  \
            "  jz 1f\n"                                            \
            "  jmp *%r11\n"                                        \
            "1:\n"                                                 \
            "  mov $" #index ", %r10d\n"                           \
            "  jmp LIBRARY_first\n");

