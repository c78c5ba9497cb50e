// Enough of CUDA to run a kernel on the host: one block at a time, each of its threads a fibre.
//
// Threads run until they meet a barrier, of the warp (a shuffle) or of the block, one after another
// in ascending or descending order: a result that depends on the order shows a missing barrier.
// Threads of one warp that wait at different barriers, or for threads that have ended, are an error.

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)

using std::max;
using std::min;

struct Place {
    unsigned x;
};
static Place threadIdx, blockIdx, blockDim, gridDim;

enum Wait { READY, AT_WARP, AT_BLOCK, ENDED };

struct Fibre {
    ucontext_t context;  // where it begins
    jmp_buf place;       // where it goes on: jumps need no system call
    bool has_begun;
    std::vector<char> stack;
    Wait wait;
    unsigned long long slot;
};
static std::vector<Fibre> fibres;
static jmp_buf scheduler;
static int running;

inline void pause_at(Wait wait) {
    fibres[running].wait = wait;
    if (!_setjmp(fibres[running].place)) _longjmp(scheduler, 1);
}

inline void go_on(Fibre &fibre) {
    if (_setjmp(scheduler)) return;
    if (fibre.has_begun) _longjmp(fibre.place, 1);
    fibre.has_begun = true;
    setcontext(&fibre.context);
}

inline void __syncthreads() {
    pause_at(AT_BLOCK);
}

template <typename T>
T exchange(T value, int other) {
    static_assert(sizeof(T) <= 8);
    std::memcpy(&fibres[running].slot, &value, sizeof(T));
    pause_at(AT_WARP);
    T got;
    std::memcpy(&got, &fibres[other].slot, sizeof(T));
    pause_at(AT_WARP);
    return got;
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    return exchange(value, running ^ mask);
}

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
    return exchange(value, running / 32 * 32 + lane);
}

template <typename T>
T __shfl_up_sync(unsigned, T value, int distance) {
    return exchange(value, running % 32 >= distance ? running - distance : running);
}

template <typename T>
void atomicAdd(T *place, std::type_identity_t<T> value) {
    *place += value;
}

template <typename T>
void atomicMax(T *place, std::type_identity_t<T> value) {
    *place = std::max(*place, value);
}

template <typename To, typename From>
To same_bits(From value) {
    To result;
    std::memcpy(&result, &value, sizeof(To));
    return result;
}

inline double __longlong_as_double(long long bits) { return same_bits<double>(bits); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }

static void (*body)(const void *);
static const void *argument;

inline void enter() {
    body(argument);
    pause_at(ENDED);
}

inline bool all_wait(int first, int last, Wait wait) {
    bool some = false;
    for (int i = first; i < last; ++i) {
        if (fibres[i].wait != wait && fibres[i].wait != ENDED) return false;
        some = some || fibres[i].wait == wait;
    }
    return some;
}

inline void release(int first, int last) {
    for (int i = first; i < last; ++i)
        if (fibres[i].wait != ENDED) fibres[i].wait = READY;
}

// Returns false if the threads wait for each other for ever.
inline bool run_block(int n_threads, bool descending) {
    for (int i = 0; i < n_threads; ++i) {
        Fibre &fibre = fibres[i];
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = nullptr;
        fibre.has_begun = false;
        fibre.wait = READY;
        makecontext(&fibre.context, enter, 0);
    }
    while (true) {
        bool moved = false;
        for (int step = 0; step < n_threads; ++step) {
            int i = descending ? n_threads - 1 - step : step;
            if (fibres[i].wait != READY) continue;
            running = i;
            threadIdx.x = i;
            go_on(fibres[i]);
            moved = true;
        }
        for (int first = 0; first < n_threads; first += 32)
            if (all_wait(first, first + 32, AT_WARP)) release(first, first + 32);
        if (all_wait(0, n_threads, AT_BLOCK)) release(0, n_threads);
        if (!moved) return all_wait(0, n_threads, ENDED);
    }
}

inline int run_grid(
    void (*kernel)(const void *), const void *sent, int blocks, int threads, int descending,
    void *memory, size_t bytes
) {
    body = kernel;
    argument = sent;
    fibres.resize(threads);
    for (Fibre &fibre : fibres) fibre.stack.resize(1 << 16);
    blockDim.x = threads;
    gridDim.x = blocks;
    for (int block = 0; block < blocks; ++block) {
        std::memset(memory, 0x5a, bytes);  // a kernel finds no zeros there
        blockIdx.x = block;
        if (!run_block(threads, descending)) return 1;
    }
    return 0;
}
