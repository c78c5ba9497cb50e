// Exact k-means of many rows of numbers: one block of threads for a row, which it solves alone.
//
// Let x be the m distinct values of a row in ascending order, with weights w. With the sums before
// position j, W_j of w and S_j of w (x - o) about an origin o, a group of positions i to j - 1 costs
// its second moment less (S_j - S_i)^2 / (W_j - W_i), and the second moments of all groups add up
// to the same whatever the groups are. Least costs of the first j values in q groups, less these
// second moments, follow from those in q - 1 groups:
//
//     F_q(j) = min_{i < j} F_{q-1}(i) - (S_j - S_i)^2 / (W_j - W_i) .                           (1)
//
// The best i grows with j (the cost satisfies the Monge inequality) and with q. So the positions
// are searched in levels: a few that are far apart, then the ones half-way between those, where
// only what lies between the choices of both neighbours is to be looked at, and so on. With
// j = q + t and i = q - 1 + u, each layer q has the positions t = 0, ..., m - k, of which the
// choices u <= t: the groups before and after have at least one value each.
//
// All sums are of double precision, and every comparison in (1) is right up to about 1e-15 of
// R^2 sum w, with R the largest |x - o|: a group of mean mu about the origin gains mu^2 times its
// weight, of which rounding takes or adds a part of sum w. A wrong choice costs no more than that,
// as the Monge inequality bounds what is lost by the narrower range of its neighbours as well. A row
// whose inertia is so small that this may matter is marked: the host solves it again.
//
// The file needs no header: it is compiled when it is first used (`cuda.py`).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

enum Kind { DOUBLE, SINGLE, HALF, BRAIN };
enum State { SOLVED, BAD_VALUE, BAD_WEIGHT, NO_WEIGHT, DOUBTFUL };

// Rows with an inertia below this part of R^2 sum w are marked: 64 units of rounding are then more
// than a millionth of the inertia.
const double LEAST_INERTIA = 7e-9;
const int LANES = 32;
const u32 ALL = 0xffffffffu;
// Values that a thread holds in registers when a layer takes the place of the one before.
const int HELD = 8;
// Costs that a thread works on at the same time, to hide how long each takes.
const int WIDE = 2;
// Choices that a thread looks at in turn before all go on to the next tile: in long rows the threads
// read few places at the same time, which caches hold.
const int MOST_SHARE = 17;

// What `device_rows.py` sends: 64 bits each, in this order.
struct Task {
    const void *x;
    i64 kind, row_step, step, n_rows, n;
    const void *weights;  // null: all are one
    i64 weight_kind, weight_row_step, weight_step;
    i64 n_clusters;
    void *labels;
    i64 label_bytes;  // 1 or 4
    double *centers;
    i64 *sizes, *found;
    double *inertia;
    i64 *states;
    char *scratch;
    i64 scratch_bytes;  // of a block
};

struct alignas(16) Sums {
    double w, s;
};

__device__ inline double infinity() {
    return __longlong_as_double(0x7ff0000000000000ll);
}

__device__ inline double not_a_number() {
    return __longlong_as_double(0x7ff8000000000000ll);
}

// The best of some choices that follow each other, for each of three positions, and whether all
// choices of these begin among them.
struct Pieces {
    double cost[3];
    int choice[3];
    int begins;

    __device__ void clear(int first, bool begins_here) {
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            cost[p] = infinity();
            choice[p] = first;
        }
        begins = begins_here;
    }
    // Take up pieces that come before; the first of equal choices wins.
    __device__ void follow(const Pieces &left) {
        if (begins) return;
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            if (!(cost[p] < left.cost[p])) {
                cost[p] = left.cost[p];
                choice[p] = left.choice[p];
            }
        }
        begins = left.begins;
    }
    __device__ Pieces of_lane_before(int distance) const {
        Pieces left;
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            left.cost[p] = __shfl_up_sync(ALL, cost[p], distance);
            left.choice[p] = __shfl_up_sync(ALL, choice[p], distance);
        }
        left.begins = __shfl_up_sync(ALL, begins, distance);
        return left;
    }
};

// What the threads of a block tell each other.
struct Board {
    double w[LANES], s[LANES];
    int count[LANES];
    Pieces pieces[LANES], carried;  // of warps, and of the tile before
    int fault, n_zero;
    u64 heaviest;

    // Let pieces of a warp follow those of the warps before, as far back as they go.
    __device__ void precede(Pieces &later, int warp) const {
        for (int v = warp - 1; v >= 0 && !later.begins; --v) later.follow(pieces[v]);
        later.follow(carried);
    }
};

// Arrays of a block.
template <typename Index>
struct Space {
    Sums *sums;        // (n + 1), about the origin; at first the keys to sort lie here
    double *costs;     // F of the layer before, for each t
    Index *choices;    // u of the present layer, for each t
    double *centers, *limits, *inertias;  // of each group
    int *starts, *counts;
    double *values, *weights;  // (n) sorted and scaled
    Index *ends;       // (n + 1) how many sorted values come before each distinct one
    Index *back;       // (n_clusters - 2, n) choices of the layers that are done
};

template <typename T>
__device__ inline T *take(char *&from, i64 count) {
    T *taken = reinterpret_cast<T *>(from);
    from += (count * (i64)sizeof(T) + 15) / 16 * 16;
    return taken;
}

// Shared memory holds all arrays that the search uses (SHARED 3), all but the costs (2), the sums (1)
// or none (0): known to the compiler, which has faster instructions for it.
template <typename Index, int SHARED>
__device__ Space<Index> lay_out(const Task &task, char *shared) {
    i64 n = task.n, k = task.n_clusters;
    char *scratch = task.scratch + blockIdx.x * task.scratch_bytes;
    char *&sums = SHARED > 0 ? shared : scratch, *&fast = SHARED > 1 ? shared : scratch;
    char *&costs = SHARED > 2 ? shared : scratch;
    Space<Index> space;
    space.centers = take<double>(fast, k);
    space.limits = take<double>(fast, k);
    space.inertias = take<double>(fast, k);
    space.starts = take<int>(fast, k);
    space.counts = take<int>(fast, k);
    space.sums = take<Sums>(sums, n + 1);
    space.choices = take<Index>(fast, n + 1);
    space.costs = take<double>(costs, n + 1);
    space.values = take<double>(scratch, n);
    space.weights = take<double>(scratch, n);
    space.ends = take<Index>(scratch, n + 1);
    space.back = take<Index>(scratch, k > 2 ? (k - 2) * n : 0);
    return space;
}

// ---- Numbers.

__device__ inline float from_half(u32 bits) {
    u32 sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, rest = bits & 1023u;
    if (exponent == 0) {
        float size = (float)rest * (1.0f / 16777216.0f);
        return sign ? -size : size;
    }
    u32 raised = exponent == 31u ? 255u : exponent + 112u;
    return __uint_as_float(sign | raised << 23 | rest << 13);
}

__device__ inline double number_at(const void *array, i64 kind, i64 place) {
    if (kind == DOUBLE) return static_cast<const double *>(array)[place];
    if (kind == SINGLE) return (double)static_cast<const float *>(array)[place];
    u32 bits = static_cast<const u16 *>(array)[place];
    return (double)(kind == HALF ? from_half(bits) : __uint_as_float(bits << 16));
}

__device__ inline bool is_finite(double x) {
    return x - x == 0.0;
}

// Integers in the order of the numbers; zero has one of them.
__device__ inline u64 key_of(double x) {
    u64 bits = (u64)__double_as_longlong(x + 0.0);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ inline double of_key(u64 key) {
    return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

__device__ inline u32 short_key_of(float x) {
    u32 bits = __float_as_uint(x + 0.0f);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

__device__ inline float of_short_key(u32 key) {
    return __uint_as_float(key >> 31 ? key & ~(1u << 31) : ~key);
}

// 1 / x up to a unit or two in the last place, for x that is neither tiny nor huge.
__device__ inline double reciprocal(double x) {
#ifdef __CUDA_ARCH__
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
#else
    double r = 1.0 / x;
#endif
    double e = fma(-x, r, 1.0);
    return fma(fma(e, e, e), r, r);
}

// ---- Sorting.

// Room between the keys, so that threads that read neighbouring eights meet different banks.
__device__ inline int spread_out(int place) {
    return place + (place >> 3);
}

// BITS steps of a bitonic merge at once, each thread with 2^BITS keys: compares keys that are
// 2^high apart, then half of that, and so on. FLIP: the first step compares with the mirror image
// in the block of 2^(high + 1). The smaller key always goes to the lower place, so that keys beyond
// the end may be taken as infinite.
template <int BITS, bool FLIP, bool CARRY>
__device__ void merge_step(u64 *keys, u32 *carried, int n, int high) {
    const int SIZE = 1 << BITS, HALF_SIZE = SIZE / 2;
    int low_bits = high - (BITS - 1), apart = 1 << low_bits, block = 2 << high;
    for (int b = threadIdx.x;; b += blockDim.x) {
        int low = b & (apart - 1), base = b >> low_bits << (high + 1);
        if (base + low >= n) break;
        u64 key[SIZE];
        u32 extra[SIZE];
        int place[SIZE];
#pragma unroll
        for (int r = 0; r < SIZE; ++r) {
            bool mirrored = FLIP && r >= HALF_SIZE;
            place[r] = mirrored ? base + block - 1 - low - (r - HALF_SIZE) * apart
                                : base + low + r * apart;
            key[r] = place[r] < n ? keys[spread_out(place[r])] : ~0ull;
            extra[r] = CARRY && place[r] < n ? carried[spread_out(place[r])] : 0u;
        }
#pragma unroll
        for (int h = HALF_SIZE; h > 0; h /= 2) {
#pragma unroll
            for (int r = 0; r < SIZE; ++r) {
                if (r & h) continue;
                bool descending = FLIP && h < HALF_SIZE && r >= HALF_SIZE;
                int first = descending ? r + h : r, second = descending ? r : r + h;
                bool swap = key[first] > key[second];
                u64 small = swap ? key[second] : key[first];
                key[second] = swap ? key[first] : key[second];
                key[first] = small;
                if (CARRY) {
                    u32 with_small = swap ? extra[second] : extra[first];
                    extra[second] = swap ? extra[first] : extra[second];
                    extra[first] = with_small;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < SIZE; ++r) {
            if (place[r] < n) {
                keys[spread_out(place[r])] = key[r];
                if (CARRY) carried[spread_out(place[r])] = extra[r];
            }
        }
    }
    __syncthreads();
}

template <bool FLIP, bool CARRY>
__device__ int merge_steps(u64 *keys, u32 *carried, int n, int high) {
    if (high >= 2) {
        merge_step<3, FLIP, CARRY>(keys, carried, n, high);
        return high - 3;
    }
    if (high == 1) merge_step<2, FLIP, CARRY>(keys, carried, n, high);
    if (high == 0) merge_step<1, FLIP, CARRY>(keys, carried, n, high);
    return -1;
}

template <bool CARRY>
__device__ void sort_keys(u64 *keys, u32 *carried, int n) {
    for (int p = 0; 1 << p < n; ++p) {
        int high = merge_steps<true, CARRY>(keys, carried, n, p);
        while (high >= 0) high = merge_steps<false, CARRY>(keys, carried, n, high);
    }
}

// ---- The steps of a row. All threads of the block call them together.

// Sorted values and weights of the row, without those of weight zero, scaled by powers of two.
// Returns how many there are; zero if the row cannot be solved, with the reason on the board.
template <typename Index>
__device__ int sort_row(
    const Task &task, i64 row, const Space<Index> &space, Board &board, int &exponent, int &lift
) {
    int n = (int)task.n;
    bool weighted = task.weights != nullptr, is_short = task.kind != DOUBLE;
    bool carry = weighted && !is_short;
    u64 *keys = reinterpret_cast<u64 *>(space.sums);
    u32 *carried = reinterpret_cast<u32 *>(keys + spread_out(n) + 1);
    i64 start = row * task.row_step, weight_start = row * task.weight_row_step;
    if (threadIdx.x == 0) {
        board.fault = SOLVED;
        board.n_zero = 0;
        board.heaviest = 0;
    }
    __syncthreads();
    u64 heaviest = 0;
    int n_zero = 0, fault = SOLVED;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double x = number_at(task.x, task.kind, start + i * task.step), w = 1.0;
        if (weighted)
            w = number_at(task.weights, task.weight_kind, weight_start + i * task.weight_step);
        if (!(w >= 0.0) || !is_finite(w)) fault = BAD_WEIGHT;
        if (!is_finite(x)) fault = BAD_VALUE;
        u64 key = is_short ? (u64)short_key_of((float)x) << 32 | (u32)i : key_of(x);
        n_zero += w == 0.0;
        keys[spread_out(i)] = w == 0.0 ? ~0ull : key;
        if (carry) carried[spread_out(i)] = (u32)i;
        u64 weight_bits = (u64)__double_as_longlong(w);
        if (w > 0.0 && weight_bits > heaviest) heaviest = weight_bits;
    }
    if (fault) atomicMax(&board.fault, fault);
    if (n_zero) atomicAdd(&board.n_zero, n_zero);
    if (weighted) atomicMax(&board.heaviest, heaviest);
    __syncthreads();
    if (board.fault) return 0;
    int count = n - board.n_zero;
    if (count == 0) {
        if (threadIdx.x == 0) board.fault = NO_WEIGHT;
        return 0;
    }
    if (carry)
        sort_keys<true>(keys, carried, n);
    else
        sort_keys<false>(keys, carried, n);
    u64 first = keys[0], last = keys[spread_out(count - 1)];
    double least = is_short ? of_short_key((u32)(first >> 32)) : of_key(first);
    double most = is_short ? of_short_key((u32)(last >> 32)) : of_key(last);
    double largest = fmax(fabs(least), fabs(most));
    exponent = largest > 0.0 ? ilogb(largest) : 0;
    lift = weighted ? ilogb(__longlong_as_double((i64)board.heaviest)) : 0;
    for (int p = threadIdx.x; p < count; p += blockDim.x) {
        u64 key = keys[spread_out(p)];
        double x = is_short ? of_short_key((u32)(key >> 32)) : of_key(key), w = 1.0;
        if (weighted) {
            i64 i = is_short ? (u32)key : carried[spread_out(p)];
            w = number_at(task.weights, task.weight_kind, weight_start + i * task.weight_step);
        }
        space.values[p] = scalbn(x, -exponent);
        space.weights[p] = scalbn(w, -lift);
    }
    __syncthreads();
    return count;
}

// Sums before each distinct value, about the origin, and how many values come before it. Returns
// how many distinct values there are.
template <typename Index>
__device__ int add_up(const Space<Index> &space, Board &board, int count, double origin) {
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    if (threadIdx.x == 0) {
        space.sums[0].w = space.sums[0].s = 0.0;
        space.ends[0] = 0;
    }
    double w_before = 0.0, s_before = 0.0;
    int n_before = 0;
    for (int base = 0; base < count; base += blockDim.x) {
        int p = base + threadIdx.x;
        bool live = p < count;
        double w = live ? space.weights[p] : 0.0;
        double s = live ? w * (space.values[p] - origin) : 0.0;
        bool is_last = live && (p + 1 == count || space.values[p + 1] != space.values[p]);
        int number = is_last;
        for (int d = 1; d < LANES; d *= 2) {
            double w_left = __shfl_up_sync(ALL, w, d), s_left = __shfl_up_sync(ALL, s, d);
            int left = __shfl_up_sync(ALL, number, d);
            if (lane >= d) {
                w += w_left;
                s += s_left;
                number += left;
            }
        }
        __syncthreads();  // all have read what the board had from the tile before
        if (lane == LANES - 1) {
            board.w[warp] = w;
            board.s[warp] = s;
            board.count[warp] = number;
        }
        __syncthreads();
        for (int v = 0; v < (int)blockDim.x / LANES; ++v) {
            if (v == warp) {
                w += w_before;
                s += s_before;
                number += n_before;
            }
            w_before += board.w[v];
            s_before += board.s[v];
            n_before += board.count[v];
        }
        if (is_last) {
            space.sums[number].w = w;
            space.sums[number].s = s;
            space.ends[number] = (Index)(p + 1);
        }
    }
    __syncthreads();
    return n_before;
}

// Cost (1) of a position with the given sums for a choice. A group whose weight is lost in rounding
// gains nothing, as is true up to rounding; it must not be ruled out, since that may cost more.
__device__ inline double cost_of(Sums at, Sums before, double cost) {
    double w = at.w - before.w, s = at.s - before.s;
    return fma(-s * s, w > 0.0 ? reciprocal(w) : 0.0, cost);
}

// The best choice from first to last for a position with the given sums, shared by the threads of a
// warp. The first one of equal choices.
__device__ inline int best_choice(
    const Sums *from, const double *costs, Sums at, int first, int last, double &least
) {
    int best = first;
    least = infinity();
    for (int u = first + threadIdx.x % LANES; u <= last; u += WIDE * LANES) {
        double cost[WIDE];
#pragma unroll
        for (int r = 0; r < WIDE; ++r) {
            int v = min(u + r * LANES, last);
            cost[r] = cost_of(at, from[v], costs[v]);
        }
#pragma unroll
        for (int r = 0; r < WIDE; ++r) {
            if (cost[r] < least) {
                least = cost[r];
                best = min(u + r * LANES, last);
            }
        }
    }
    for (int d = LANES / 2; d > 0; d /= 2) {
        double other = __shfl_xor_sync(ALL, least, d);
        int choice = __shfl_xor_sync(ALL, best, d);
        if (other < least || (other == least && choice < best)) {
            least = other;
            best = choice;
        }
    }
    return best;
}

// Choices of layer q for the last position and for those that are `apart`: a warp for each.
template <typename Index>
__device__ void search_coarsely(const Space<Index> &space, int q, int length, int apart) {
    // The best choice grows with the layer: the one before has a lower bound.
    const Index *before = q > 2 ? space.back + (i64)(q - 3) * length : nullptr;
    int warps = blockDim.x / LANES, count = (length - 1) / apart;
    for (int a = threadIdx.x / LANES; a <= count; a += warps) {
        int t = a < count ? apart - 1 + a * apart : length - 1;
        int first = before ? max((int)before[min(t + 1, length - 1)] - 1, 0) : 0;
        double least;
        int best = best_choice(
            space.sums + (q - 1), space.costs, space.sums[q + t], min(first, t), t, least
        );
        if (threadIdx.x % LANES == 0) space.choices[t] = (Index)best;
    }
    __syncthreads();
    // Rounding may have put them out of order by choices that are as good.
    int lane = threadIdx.x, most = 0;
    for (int base = 0; lane < LANES && base <= count; base += LANES) {
        int a = base + lane, t = a < count ? apart - 1 + a * apart : length - 1;
        most = max(most, (int)space.choices[t]);
        for (int d = 1; d < LANES; d *= 2) {
            int left = __shfl_up_sync(ALL, most, d);
            if (lane >= d) most = max(most, left);
        }
        if (a <= count) space.choices[t] = (Index)most;
        most = __shfl_sync(ALL, most, LANES - 1);
    }
    __syncthreads();
}

// Choices of layer q for three positions between neighbours that are known and 4 apart from each
// other, in units of `apart`: t_a = apart - 1 + 4 a apart, and the next two.
//
// With b_a the choice of the neighbour before t_a (0 for the first), their choices are among
// b_a, ..., b_{a+1}. All of them in a row, the choice u for t_a has the number u + a, so that each
// thread takes the same number of them, in tiles if there are many. Pieces of positions that several
// threads share are put together by a scan.
template <typename Index>
__device__ void search_between(
    const Space<Index> &space, Board &board, int q, int length, int apart
) {
    const Sums *from = space.sums + (q - 1);
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int count = (length + 3 * apart - 1) / (4 * apart);  // t_a < length - 1
    auto bound = [&](int a) -> int {
        return a == 0 ? 0 : (int)space.choices[min(4 * apart * a, length) - 1];
    };
    auto write = [&](int a, const Pieces &pieces) {
        int most = 0;  // in order, whatever rounding does
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            int t = apart * (4 * a + p + 1) - 1;
            most = max(most, pieces.choice[p]);
            if (t < length - 1) space.choices[t] = (Index)most;
        }
    };
    int total = bound(count) + count, threads = blockDim.x;
    int share = min((total + threads - 1) / threads, MOST_SHARE) | 1;  // odd: fewer bank conflicts
    for (int tile = 0; tile < total; tile += share * threads) {
        int begin = min(tile + (int)threadIdx.x * share, total), end = min(begin + share, total);
        int a = 0;
        for (int above = count; above - a > 1;) {
            int middle = (a + above) / 2;
            if (bound(middle) + middle <= begin)
                a = middle;
            else
                above = middle;
        }
        int u = begin - a, upper = bound(a + 1), shared_a = -1;
        Pieces pieces, head;
        pieces.clear(u, begin == bound(a) + a);
        head.clear(u, false);
        Sums at[3];
        bool is_new = true;
        for (int f = begin; f < end; ++f) {
            int t = apart * (4 * a + 1) - 1;
            if (is_new) {
#pragma unroll
                for (int p = 0; p < 3; ++p) at[p] = space.sums[q + min(t + p * apart, length - 1)];
            }
            Sums before = from[u];
            double base = space.costs[u];
#pragma unroll
            for (int p = 0; p < 3; ++p) {
                double cost = cost_of(at[p], before, base);
                if (cost < pieces.cost[p] && u <= t + p * apart) {
                    pieces.cost[p] = cost;
                    pieces.choice[p] = u;
                }
            }
            is_new = u == upper;
            if (is_new) {
                if (pieces.begins) {
                    write(a, pieces);
                } else {
                    head = pieces;
                    shared_a = a;
                }
                pieces.clear(u, true);
                ++a;
                if (a < count) upper = bound(a + 1);
            } else {
                ++u;
            }
        }
        // From here on `pieces` is what the threads up to this one know of positions that go on.
        for (int d = 1; d < LANES; d *= 2) {
            Pieces left = pieces.of_lane_before(d);
            if (lane >= d) pieces.follow(left);
        }
        Pieces left = pieces.of_lane_before(1);
        if (lane == LANES - 1) board.pieces[warp] = pieces;
        __syncthreads();
        if (shared_a >= 0) {
            if (lane > 0) head.follow(left);
            board.precede(head, warp);
            write(shared_a, head);
        }
        bool is_last = (int)threadIdx.x == threads - 1;
        if (is_last) board.precede(pieces, warp);
        __syncthreads();
        if (is_last) board.carried = pieces;
    }
}

// Choices of layer q for all positions t < length.
template <typename Index>
__device__ void search_layer(const Space<Index> &space, Board &board, int q, int length) {
    int apart = 1, warps = blockDim.x / LANES;
    while ((length - 1) / apart >= 2 * warps) apart *= 4;
    search_coarsely(space, q, length, apart);
    for (apart /= 4; apart > 0; apart /= 4) search_between(space, board, q, length, apart);
}

// Costs of layer q in place of those of the layer before; choices to the ones that are done.
template <typename Index>
__device__ void finish_layer(const Space<Index> &space, int q, int length) {
    const Sums *from = space.sums + (q - 1), *at = space.sums + q;
    Index *back = space.back + (i64)(q - 2) * length;
    int threads = blockDim.x;
    // From the far end: a position needs costs of positions up to its own.
    for (int top = length; top > 0; top -= HELD * threads) {
        double held[HELD];
#pragma unroll
        for (int r = 0; r < HELD; ++r) {
            int t = top - 1 - (int)threadIdx.x - r * threads;
            if (t >= 0) {
                Index u = space.choices[t];
                held[r] = cost_of(at[t], from[u], space.costs[u]);
                back[t] = u;
            }
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < HELD; ++r) {
            int t = top - 1 - (int)threadIdx.x - r * threads;
            if (t >= 0) space.costs[t] = held[r];
        }
        __syncthreads();
    }
}

// The first distinct value of each of k groups, k < m, by dynamic programming.
template <typename Index>
__device__ void find_starts(const Space<Index> &space, Board &board, int m, int k) {
    int length = m - k + 1;
    for (int t = threadIdx.x; t < length; t += blockDim.x) {
        Sums at = space.sums[t + 1];
        space.costs[t] = at.w > 0.0 ? -at.s * at.s / at.w : 0.0;
    }
    __syncthreads();
    for (int q = 2; q < k; ++q) {
        search_layer(space, board, q, length);
        finish_layer(space, q, length);
    }
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    int share = (length + warps - 1) / warps, first = warp * share;
    int last = min(first + share, length) - 1;
    double least;
    int best = best_choice(
        space.sums + (k - 1), space.costs, space.sums[m], first, last, least
    );
    if (lane == 0) {
        board.w[warp] = least;
        board.count[warp] = best;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int chosen = 0;
        for (int v = 1; v < warps; ++v)
            if (board.w[v] < board.w[chosen]) chosen = v;
        int u = board.count[chosen];
        for (int q = k; q >= 2; --q) {
            space.starts[q - 1] = q - 1 + u;
            if (q > 2) u = space.back[(i64)(q - 3) * length + u];
        }
        space.starts[0] = 0;
    }
    __syncthreads();
}

// Centres and inertias of the groups, from their values: a warp for each.
template <typename Index>
__device__ void measure_groups(
    const Space<Index> &space, int count, int m, int n_groups, double origin
) {
    int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    for (int g = threadIdx.x / LANES; g < n_groups; g += warps) {
        int start = space.starts[g], stop = g + 1 < n_groups ? space.starts[g + 1] : m;
        int begin = space.ends[start], end = g + 1 < n_groups ? (int)space.ends[stop] : count;
        double w = space.sums[stop].w - space.sums[start].w;
        double s = space.sums[stop].s - space.sums[start].s;
        double lower = space.values[begin], upper = space.values[end - 1];
        double near = fmin(fmax(w > 0.0 ? origin + s / w : lower, lower), upper);
        double weight = 0.0, first = 0.0, second = 0.0;
        for (int p = begin + lane; p < end; p += LANES) {
            double x = space.values[p], part = space.weights[p];
            weight += part;
            first += part * (x - near);
            second += part * (x - near) * (x - near);
        }
        for (int d = LANES / 2; d > 0; d /= 2) {
            weight += __shfl_xor_sync(ALL, weight, d);
            first += __shfl_xor_sync(ALL, first, d);
            second += __shfl_xor_sync(ALL, second, d);
        }
        if (lane == 0) {
            double shift = weight > 0.0 ? first / weight : 0.0;
            space.centers[g] = fmin(fmax(near + shift, lower), upper);
            space.inertias[g] = fmax(second - first * shift, 0.0);
        }
    }
    __syncthreads();
}

// Centres, sizes, labels and so on to where the host finds them.
template <typename Index>
__device__ void write_row(
    const Task &task, i64 row, const Space<Index> &space, int n_groups, int exponent
) {
    int n = (int)task.n, k = (int)task.n_clusters;
    for (int g = threadIdx.x; g < k; g += blockDim.x) {
        bool live = g < n_groups;
        double center = live ? scalbn(space.centers[g], exponent) : not_a_number();
        task.centers[row * k + g] = center;
        space.counts[g] = 0;
        if (live && g > 0) {
            // Half-way between the centres, for values of weight zero, but where no other value
            // changes its group.
            int begin = space.ends[space.starts[g]];
            double before = scalbn(space.values[begin - 1], exponent);
            double half = 0.5 * scalbn(space.centers[g - 1], exponent) + 0.5 * center;
            half = fmax(half, nextafter(before, infinity()));
            space.limits[g] = fmin(half, scalbn(space.values[begin], exponent));
        }
    }
    __syncthreads();
    i64 start = row * task.row_step;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double x = number_at(task.x, task.kind, start + i * task.step);
        int label = 0, above = n_groups;  // limits up to `label` are at most x
        while (above - label > 1) {
            int middle = (label + above) / 2;
            if (space.limits[middle] <= x)
                label = middle;
            else
                above = middle;
        }
        atomicAdd(&space.counts[label], 1);
        if (task.label_bytes == 1)
            static_cast<u8 *>(task.labels)[row * n + i] = (u8)label;
        else
            static_cast<int *>(task.labels)[row * n + i] = label;
    }
    __syncthreads();
    for (int g = threadIdx.x; g < k; g += blockDim.x) task.sizes[row * k + g] = space.counts[g];
}

template <typename Index>
__device__ void solve_row(const Task &task, i64 row, const Space<Index> &space, Board &board) {
    int k = (int)task.n_clusters, exponent, lift;
    int count = sort_row(task, row, space, board, exponent, lift);
    if (count == 0) {
        __syncthreads();
        if (threadIdx.x == 0) task.states[row] = board.fault;
        return;
    }
    double origin = space.values[count / 2];
    int m = add_up(space, board, count, origin), n_groups = min(k, m);
    if (m > k && k > 1) {
        find_starts(space, board, m, k);
    } else {
        for (int g = threadIdx.x; g < n_groups; g += blockDim.x) space.starts[g] = g;
        __syncthreads();
    }
    measure_groups(space, count, m, n_groups, origin);
    if (threadIdx.x == 0) {
        double inertia = 0.0;
        for (int g = 0; g < n_groups; ++g) inertia += space.inertias[g];
        double widest = fmax(space.values[count - 1] - origin, origin - space.values[0]);
        double least = LEAST_INERTIA * widest * widest * space.sums[m].w;
        bool in_doubt = m > k && k > 1 && !(inertia >= least);
        task.states[row] = in_doubt ? DOUBTFUL : SOLVED;
        task.found[row] = n_groups;
        task.inertia[row] = scalbn(inertia, 2 * exponent + lift);
    }
    write_row(task, row, space, n_groups, exponent);
}

template <int SHARED>
struct Places {
    typedef u16 Index;
};

template <>
struct Places<0> {
    typedef u32 Index;  // of rows that may be too long for 16 bits
};

// The shared memory of a block: the board, then arrays.
template <int SHARED>
__device__ void solve_rows(const Task *sent, Sums *shared) {
    typedef typename Places<SHARED>::Index Index;
    Task task = *sent;
    Board &board = *reinterpret_cast<Board *>(shared);
    char *rest = reinterpret_cast<char *>(shared) + (sizeof(Board) + 15) / 16 * 16;
    Space<Index> space = lay_out<Index, SHARED>(task, rest);
    for (i64 row = blockIdx.x; row < task.n_rows; row += gridDim.x) {
        solve_row(task, row, space, board);
        __syncthreads();
    }
}

// IN_SHARED, what the shared memory holds, is defined in front of this file.
extern "C" __global__ void __launch_bounds__(1024) rows(const Task *sent) {
    extern __shared__ Sums shared[];
    solve_rows<IN_SHARED>(sent, shared);
}
