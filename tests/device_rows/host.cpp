// The kernel of `clustruct.grouping.device_rows` as a library of the host.

#include "host.hpp"

#define IN_SHARED 3
#include "device_rows.cu"

alignas(16) Sums shared[1 << 14];  // 256 KiB, the shared memory of a block

template <int IN>
void call(const void *sent) {
    solve_rows<IN>(static_cast<const Task *>(sent), shared);
}

extern "C" int run(const void *sent, int in_shared, int blocks, int threads, int descending) {
    void (*kernels[])(const void *) = {call<0>, call<1>, call<2>, call<3>};
    return run_grid(
        kernels[in_shared], sent, blocks, threads, descending, shared, sizeof(shared)
    );
}

extern "C" int board_bytes() {
    return (sizeof(Board) + 15) / 16 * 16;
}
