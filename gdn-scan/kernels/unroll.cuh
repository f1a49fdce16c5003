// Loops of unknown length, some steps at a time: a thread then has several loads on their way. More steps need more registers,
// of which a thread of Fermi has 63.
#pragma once

#ifdef EMULATED
#define UNROLL_2
#define UNROLL_4
#else
#define UNROLL_2 _Pragma("unroll 2")
#define UNROLL_4 _Pragma("unroll 4")
#endif
