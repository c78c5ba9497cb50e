// The kernel of `clustruct.grouping.device_rows` as a library of the host.

#include "host.hpp"

#include "device_rows.cu"

alignas(16) Sums shared[1 << 14];  // 256 KiB, the shared memory of a block

template <void (*KERNEL)(const Task *)>
void call(const void *sent) {
    KERNEL(static_cast<const Task *>(sent));
}

// `kind`: the number in the name of the kernel.
extern "C" int run(const void *sent, int kind, int blocks, int threads, int descending) {
    auto kernel = kind == 2 ? call<rows_2> : kind == 1 ? call<rows_1> : call<rows_0>;
    return run_grid(kernel, sent, blocks, threads, descending, shared, sizeof(shared));
}

extern "C" int board_bytes() {
    return (sizeof(Board) + 15) / 16 * 16;
}
