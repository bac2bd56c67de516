// SPDX-License-Identifier: MIT
//
// Day 26, part three: from one atomic to the memory limit
//
// How fast can a sum of n floats be, and what does each step on the way there
// buy? The same sum, a rung at a time, one idea a rung:
//
//   sumGlobalAtomic  one atomicAdd an element, to one global float
//   sumSharedAtomic  one an element to a shared float, then one a block
//   sumTreeAtomic    day 24's halving tree in shared memory, then one a block
//   sumWarpShuffle   lanes add through registers, then one a warp
//   sumBlockShuffle  the warps' sums meet in shared memory, then one a block
//   sumGridStride    a few blocks an SM; threads add many elements first
//   sumFloat4        four elements a load
//   sumInFlight      several such loads on their way at a time
//   sumLastBlock     no float atomic: blocks store their sums, and the last to
//                    finish adds them in a fixed order
//   readOnly         reads and does nothing else: the limit, in the same run
//
// Held equal: the data, the block size (128 threads; atomics.cu has 256, and so
// half as many adds in its tree's queue), and that every kernel reads each
// element once, in coalesced order. Rungs that add to a total are timed
// together with the reset of that total, because each sum by atomics needs one;
// the last rung needs none.
//
// The rungs are checked by phases: in phase p of P, element i is 1 if i % P is
// p, and else 0. Every partial sum is then an integer of at most 2^24, which a
// float holds exactly, so the order of the adds cannot matter, the check is
// bitwise equality, and each element is the 1 of exactly one phase: the loss of
// any one changes an answer. The blind spot: an element read twice makes up for
// a lost one that lies a multiple of P away, which is any where P is 1. Three
// elements are safe from that: a NaN at the first, the middle or the last place
// must come out of every sum. The rungs are timed on ones, whose sum is exact,
// too, in all kernels that are run on them. Only then come values that do
// round, to count how many different answers 20 runs give.
//
// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o sum_ladder sum_ladder.cu
// Run:   ./sum_ladder
// Exit:  0 every check held; 1 a check or a CUDA call failed.
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver 580.159.04,
// CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may be published
// is evidence/sum_ladder/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <cuda/atomic>
#include <cuda_runtime.h>

// Ends the program with one sentence when a CUDA call fails.
#define CUDA_CHECK(call)                                                  \
    do {                                                                  \
        const cudaError_t status_ = (call);                               \
        if (status_ != cudaSuccess) {                                     \
            std::fprintf(stderr, "%s:%d: %s failed: %s (%s)\n", __FILE__, \
                         __LINE__, #call, cudaGetErrorString(status_),    \
                         cudaGetErrorName(status_));                      \
            std::exit(EXIT_FAILURE);                                      \
        }                                                                 \
    } while (0)

// How every lesson times: warm-up launches, then samples, each the mean of
// several launches back to back.
constexpr int kWarmupRuns = 3;
constexpr int kSamples = 7;
constexpr int kTimedRuns = 10;
constexpr int kLaunches = kWarmupRuns + kSamples * kTimedRuns;

// One block size for all rungs; the tree needs a power of two, and the shuffles
// whole warps, no more of them than the first one has lanes.
constexpr int kThreadsPerBlock = 128;
constexpr int kWarps = kThreadsPerBlock / 32;
static_assert((kThreadsPerBlock & (kThreadsPerBlock - 1)) == 0 &&
                  kThreadsPerBlock % 32 == 0 && kWarps <= 32,
              "the tree or the shuffles would drop elements");
constexpr unsigned kAllLanes = 0xffffffff;

// The exercise's knobs. Rungs with a fixed grid have at most this many blocks
// an SM. From the rung flight on, each thread has this many float4 loads on
// their way, each of which takes four registers.
constexpr int kBlocksPerSm = 8;
constexpr int kLoadsInFlight = 8;
constexpr int kTileQuads = kLoadsInFlight * kThreadsPerBlock;
static_assert(kLoadsInFlight >= 1 && kLoadsInFlight <= 8,
              "kLoadsInFlight must be 1 to 8: the loads need registers");
static_assert(kBlocksPerSm >= 1 && kBlocksPerSm <= 8,
              "kBlocksPerSm must be 1 to 8: not every SM holds more");

// Elements a sum, smallest first: one section of the output each. What does not
// fit into memory is named and left out.
constexpr int kNumSizes = 4;
constexpr size_t kSizes[kNumSizes] = {4194304, 16777216, 67108864, 268435456};
static_assert(kSizes[kNumSizes - 1] / kThreadsPerBlock < 0x7fffffff,
              "the grid would be larger than a launch can take");

// Up to this integer a float can count in ones. No phase has more ones than
// this, as the sizes above it are multiples of it, and no total takes more of
// them one at a time.
constexpr size_t kFloatIntegerLimit = 16777216;
static_assert(kFloatIntegerLimit <= size_t(1) << 24,
              "partial sums would round: the check would test float precision");
static_assert(kSizes[kNumSizes - 1] / 32 <= kFloatIntegerLimit,
              "sums of 32 ones would round: the timed answers would not be "
              "exact");

// Sizes that fill no block, warp or float4: checked, not timed.
constexpr int kNumEdges = 7;
constexpr size_t kEdges[kNumEdges] = {1, 127, 129, 1025, 4095, 4097, 3000001};
static_assert(kEdges[kNumEdges - 1] <= kSizes[0],
              "the edges would not fit into the memory of the smallest sum");

// The values that round are 0.000 to 0.999, summed this many times a rung.
// Even near the largest total that takes them one by one, they spread evenly
// over the gap from one float to the next: as many round up as down, and their
// rounding errors do not add up.
constexpr size_t kInexactModulus = 1000;
constexpr int kDetRuns = 20;
static_assert(kDetRuns <= kLaunches, "the slots would not suffice");

// What the tables are labelled with; the limit is the last row.
constexpr int kGlobal = 0;
constexpr int kStride = 5;
constexpr int kFloat4 = 6;
constexpr int kLast = 8;
constexpr int kLimit = 9;
constexpr int kNumRungs = 10;
constexpr const char *kRungNames[kNumRungs] = {
    "global", "shared", "tree",   "warp", "block",
    "stride", "float4", "flight", "last", "limit"};
constexpr const char *kColumns[] = {
    "rung", "us", "GB/s", "limit_%", "times_faster", "spread_%", "distinct"};

// Does nothing; what a launch of it takes is the floor under every time here.
__global__ void emptyKernel() {}

// Fills x[0, n) with phase 0 <= phase < phases: one thread an element.
__global__ void fillPhase(float *x, size_t n, size_t phases, size_t phase) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i % phases == phase ? 1.0f : 0.0f;
}

// An element of the data that rounds.
__host__ __device__ inline float inexactValue(size_t i) {
    return (i % kInexactModulus) * 0.001f;
}

// Fills x[0, n) with the values that round: one thread an element.
__global__ void fillInexact(float *x, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) x[i] = inexactValue(i);
}

// One thread adds one element to the one total. All these adds have one
// address, so they are performed one after another: what the kernel takes is
// their number times the time of one, whatever else the GPU could do.
// No barrier. Launch: at least n threads in all.
// snippet: global-atomic
__global__ void sumGlobalAtomic(const float *in, float *total, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, in[i]);
}
// end snippet

// One thread adds one element to its block's sum; thread 0 adds that to total.
// The idea: many addresses. Each block has a sum of its own, in the memory of
// its SM, so blocks wait for each other once a block instead of once a thread.
// The first barrier publishes the plain store of zero, the second keeps thread
// 0 from reading too early; every thread reaches both, as the guard is around
// the add alone. Launch: at least n threads in all.
// snippet: shared-atomic
__global__ void sumSharedAtomic(const float *in, float *total, size_t n) {
    __shared__ float blockTotal;
    if (threadIdx.x == 0) blockTotal = 0.0f;
    __syncthreads();
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&blockTotal, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, blockTotal);
}
// end snippet

// One thread stores one element; then half of the threads add the other
// half's, and so on down to one; thread 0 adds the block's sum to total.
// The idea: pairs instead of a queue. The adds of a step have addresses of
// their own, so a block of 128 needs 7 steps and no atomic until the end.
// Threads past the end store zero, and every thread reaches every barrier: the
// guard is around the add alone. Launch: kThreadsPerBlock threads a block, at
// least n in all.
// snippet: tree
__global__ void sumTreeAtomic(const float *in, float *total, size_t n) {
    __shared__ float partial[kThreadsPerBlock];
    const int rank = threadIdx.x;
    const size_t i = size_t(blockIdx.x) * kThreadsPerBlock + rank;
    partial[rank] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int half = kThreadsPerBlock / 2; half > 0; half /= 2) {
        if (rank < half) partial[rank] += partial[rank + half];
        __syncthreads();
    }
    if (rank == 0) atomicAdd(total, partial[0]);
}
// end snippet

// One thread hands its element to another lane and adds the one it was handed;
// after five such steps lane 0 holds the sum of its warp and adds it to total.
// The idea: a shuffle moves a register to another lane, so a warp needs neither
// shared memory nor a barrier. The price: a total that is added to once a warp
// is added to four times as often as once a block of four warps, and those
// adds still queue. Every lane of every warp reaches the shuffles.
// Launch: whole warps, at least n threads in all.
// snippet: warp
__device__ float warpSum(float x) {
    for (int offset = 16; offset > 0; offset /= 2)
        x += __shfl_down_sync(kAllLanes, x, offset);
    return x;  // The sum in lane 0; what the others hold is of no use.
}

__global__ void sumWarpShuffle(const float *in, float *total, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const float sum = warpSum(i < n ? in[i] : 0.0f);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}
// end snippet

// The warps' sums meet in shared memory, where thread 0 adds them; then it adds
// the block's sum to total. The idea: both at once. One atomic a block as in
// the tree, but one barrier instead of eight, because only one value a warp has
// to cross warps. Every thread reaches the barrier.
// Launch: kThreadsPerBlock threads a block, at least n in all.
// snippet: block
__device__ float blockSum(float x) {
    __shared__ float warpSums[kWarps];
    x = warpSum(x);
    if (threadIdx.x % 32 == 0) warpSums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int warp = 1; warp < kWarps; ++warp) x += warpSums[warp];
    return x;  // The sum in thread 0; what the others hold is of no use.
}

__global__ void sumBlockShuffle(const float *in, float *total, size_t n) {
    const size_t i = size_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
    const float sum = blockSum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
// end snippet

// One thread adds every gridDim.x * kThreadsPerBlock-th element in a register;
// then the block adds up as before. The idea: few blocks. What a block does
// once (it starts, shuffles, meets at the barrier and, above all, waits for its
// turn at the one total) is done once for many elements a thread instead of
// once for one. A warp still reads 128 consecutive bytes at a time. The loop is
// not unrolled, so that one load an iteration is what the code says; the rung
// flight changes that on purpose.
// Launch: kThreadsPerBlock threads a block, any grid.
// snippet: stride
__global__ void sumGridStride(const float *in, float *total, size_t n) {
    const size_t stride = size_t(gridDim.x) * kThreadsPerBlock;
    size_t i = size_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
    float sum = 0.0f;
#pragma unroll 1
    for (; i < n; i += stride) sum += in[i];
    sum = blockSum(sum);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
// end snippet

// One thread takes four neighbouring elements an iteration. The idea: one load
// instruction asks for 16 bytes a lane, 512 a warp, instead of 4 and 128, so
// the same bytes need a quarter of the loads and iterations, and four times
// as many bytes are on their way while a thread waits for one load. The memory
// that in points to must be aligned to 16 bytes. The last n % 4 elements fill
// no float4: the first threads of block 0 take one each. Launch: as before.
// snippet: float4
__device__ float sumOf(float4 quad) {
    return (quad.x + quad.y) + (quad.z + quad.w);
}

__device__ float sumOfTail(const float *in, size_t n) {
    return threadIdx.x < n % 4 ? in[n - n % 4 + threadIdx.x] : 0.0f;
}

__global__ void sumFloat4(const float *in, float *total, size_t n) {
    const float4 *quads = reinterpret_cast<const float4 *>(in);
    const size_t stride = size_t(gridDim.x) * kThreadsPerBlock;
    size_t i = size_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
    float sum = blockIdx.x == 0 ? sumOfTail(in, n) : 0.0f;
#pragma unroll 1
    for (; i < n / 4; i += stride) sum += sumOf(quads[i]);
    sum = blockSum(sum);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
// end snippet

// A block takes tiles of kLoadsInFlight float4 a thread, and a thread asks for
// all of its own, or as many as there are, before it adds the first. The idea
// is Little's law: to keep a memory busy, bandwidth times latency bytes must be
// on their way at any time. The loop of the rung before has one load a thread
// on its way, because the add behind it waits for it, and the next load comes
// after that add; here the loads stand in a row with no add between them. What
// is on its way needs registers to arrive in: __launch_bounds__ says how many
// threads an SM must hold, and so how many registers each may have. __ldcs says
// that nobody will read this again, so no cache need keep it. Launch: as
// before.
// snippet: flight
__device__ float threadSum(const float *in, size_t n, size_t block,
                           size_t blocks) {
    const float4 *quads = reinterpret_cast<const float4 *>(in);
    const size_t stride = blocks * kTileQuads;
    float sum = block == 0 ? sumOfTail(in, n) : 0.0f;
#pragma unroll 1
    for (size_t i = block * kTileQuads + threadIdx.x; i < n / 4; i += stride) {
        float4 quad[kLoadsInFlight] = {};
        for (int j = 0; j < kLoadsInFlight; ++j) {
            const size_t k = i + j * kThreadsPerBlock;
            if (k < n / 4) quad[j] = __ldcs(quads + k);
        }
        for (float4 q : quad) sum += sumOf(q);
    }
    return sum;
}

__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerSm)
    sumInFlight(const float *in, float *total, size_t n) {
    const float sum = blockSum(threadSum(in, n, blockIdx.x, gridDim.x));
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
// end snippet

// A block stores its sum and draws a ticket. The block that draws the last one
// knows that all others have stored theirs, and sums them: one more array, and
// small enough for one block. The idea: float atomics add in the order in which
// blocks happen to finish, and need a total that starts at zero. Here the order
// of the adds depends on n and the grid alone, so every run gives the same
// bits, and total is stored, not added to. The ticket is an integer, which does
// not round: who draws which is free.
// Why the others' sums are there to be read: the ticket is drawn with release
// and acquire. Release: whoever sees my ticket drawn sees what I stored before.
// Acquire: what I read next is not older than the tickets drawn before mine.
// atomicAdd promises neither, so after it a sum might still be on its way, or
// be read too early. The barrier then hands on to the block what thread 0 saw.
// Every thread of a block reaches each barrier, because isLast is the block's.
// The last block puts the ticket back to zero for the next launch; a block on
// its own has nobody to wait for.
// Launch: kThreadsPerBlock threads a block, any grid that partials has room
// for; *ticket is zero before the first launch, and no two launches use the
// same partials and ticket at a time.
// snippet: last
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerSm)
    sumLastBlock(const float *in, float *total, size_t n, float *partials,
                 unsigned *ticket) {
    __shared__ bool isLast;
    float sum = blockSum(threadSum(in, n, blockIdx.x, gridDim.x));
    if (gridDim.x > 1) {
        if (threadIdx.x == 0) {
            partials[blockIdx.x] = sum;
            cuda::atomic_ref<unsigned, cuda::thread_scope_device> drawn(
                *ticket);
            isLast =
                drawn.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
        }
        __syncthreads();
        if (!isLast) return;
        sum = blockSum(threadSum(partials, gridDim.x, 0, 1));
        if (threadIdx.x == 0) *ticket = 0;
    }
    if (threadIdx.x == 0) *total = sum;
}
// end snippet

// Reads as the last two rungs do and does nothing with it: it stores only a sum
// that is not a number, which keeps the compiler from dropping the loads.
// Launch: as before.
// snippet: limit
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerSm)
    readOnly(const float *in, float *total, size_t n) {
    const float sum = threadSum(in, n, blockIdx.x, gridDim.x);
    if (sum != sum) *total = sum;
}
// end snippet

// The kernels in the order of kRungNames. The last rung has parameters of its
// own: see launchRung.
using SumKernel = void (*)(const float *in, float *total, size_t n);
constexpr SumKernel kKernels[kNumRungs] = {
    sumGlobalAtomic, sumSharedAtomic, sumTreeAtomic, sumWarpShuffle,
    sumBlockShuffle, sumGridStride,   sumFloat4,     sumInFlight,
    nullptr,         readOnly};

// The reference for a phase: how many i of [0, n) have i % phases == phase.
size_t countOfPhase(size_t n, size_t phases, size_t phase) {
    return n / phases + (phase < n % phases);
}

// The reference for the values that round: their sum over [0, n), from the sum
// of one period. In double, what a thousand such adds lose is far less than a
// float can show.
double inexactSum(size_t n) {
    double period = 0.0;
    double rest = 0.0;
    for (size_t i = 0; i < kInexactModulus; ++i) {
        period += inexactValue(i);
        if (i < n % kInexactModulus) rest += inexactValue(i);
    }
    return n / kInexactModulus * period + rest;
}

// What timeKernel returns: milliseconds a launch, over its samples.
struct Timing {
    float median;
    float min;
    float max;
};

// Times launch(run), which launches one kernel; run counts from 0 over all
// kLaunches calls, so that an accumulating kernel can use a fresh slot each.
// A sample is the mean of kTimedRuns launches between two events: the events
// are recorded on the GPU, so they see the kernels and not only the launches.
template <typename Launch>
Timing timeKernel(Launch launch) {
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    int run = 0;
    while (run < kWarmupRuns) launch(run++);
    float ms[kSamples];
    for (float &sample : ms) {
        CUDA_CHECK(cudaEventRecord(start));
        for (int i = 0; i < kTimedRuns; ++i) launch(run++);
        CUDA_CHECK(cudaEventRecord(stop));
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaEventSynchronize(stop));
        CUDA_CHECK(cudaEventElapsedTime(&sample, start, stop));
        sample /= kTimedRuns;
    }
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    std::sort(ms, ms + kSamples);
    return {ms[kSamples / 2], ms[0], ms[kSamples - 1]};
}

// Input bytes read, in GB/s. Only the input counts: it is the same for every
// kernel and the least that a sum must move, so the columns stay comparable.
double readGBs(size_t n, float ms) { return n * sizeof(float) / (ms * 1e6); }

// How far the samples of one timing lie apart, in percent of their median.
double spreadPercent(const Timing &t) {
    return 100.0 * (t.max - t.min) / t.median;
}

// Whether a time is too close to the launch floor to say much of a kernel.
bool nearFloor(float ms, float floorMs) { return ms < 2 * floorMs; }

// Prints one cell of a table, right-aligned under its column's label.
void printCell(const char *label, const std::string &text) {
    const int width = std::max(9, int(std::strlen(label)));
    std::printf(" %*s", width, text.c_str());
}

// Prints the labels of a table's columns.
template <int kColumns>
void printLabels(const char *const (&labels)[kColumns]) {
    for (const char *label : labels) printCell(label, label);
    std::printf("\n");
}

// A figure as text, * behind it where it is near the launch floor. A figure
// whose check failed is not told.
std::string figure(const char *format, double value, bool ok,
                   bool marked = false) {
    if (!ok) return "failed";
    char text[32];
    std::snprintf(text, sizeof(text), format, value);
    return std::string(text) + (marked ? "*" : "");
}

// Whether got is want, bit for bit; says on stderr what was wrong.
bool checkExact(const char *kernel, size_t n, float got, float want) {
    if (std::memcmp(&got, &want, sizeof(float)) == 0) return true;
    std::fprintf(stderr, "FAILED: %s sum of %zu: got %.9g, want %.9g\n", kernel,
                 n, got, want);
    return false;
}

// Whether got lies within tolerance of want, which NaN never does; says on
// stderr what was wrong.
bool checkNear(const char *kernel, size_t n, float got, double want,
               double tolerance) {
    if (std::fabs(got - want) <= tolerance) return true;
    std::fprintf(stderr,
                 "FAILED: %s sum of %zu: got %.9g, want %.9g within %.9g\n",
                 kernel, n, got, want, tolerance);
    return false;
}

// How many different bit patterns stand in values[0, count).
int distinctResults(const float *values, int count) {
    int distinct = 0;
    for (int i = 0; i < count; ++i) {
        int j = 0;
        while (std::memcmp(&values[j], &values[i], sizeof(float)) != 0) ++j;
        distinct += j == i;
    }
    return distinct;
}

// What the launches share: the input, kLaunches totals, and the last rung's
// partials, one for each of the blocks that a fixed grid has at most.
struct Buffers {
    float *in;
    float *totals;
    float *partials;
    unsigned *ticket;
    size_t maxBlocks;
    size_t room;  // Elements that in has.
};

// Whether the rung adds to a total, which must then start at zero.
bool accumulates(int rung) { return rung < kLast; }

// Whether the rung can sum n ones exactly.
bool sumsOnesExactly(int rung, size_t n) {
    return rung != kGlobal || n <= kFloatIntegerLimit;
}

// How many parts of size cover whole.
size_t parts(size_t whole, size_t size) { return (whole + size - 1) / size; }

// Blocks for n threads.
unsigned blocksOf(size_t n) { return unsigned(parts(n, kThreadsPerBlock)); }

// Blocks that a rung takes for n elements. Up to the block rung, a thread takes
// one element. The others have a fixed grid: as few blocks as make no more
// rounds than maxBlocks would, so that all have about as much to do.
unsigned gridOf(int rung, size_t n, size_t maxBlocks) {
    if (rung < kStride) return blocksOf(n);
    const size_t part = rung == kStride   ? kThreadsPerBlock
                        : rung == kFloat4 ? 4 * kThreadsPerBlock
                                          : 4 * kTileQuads;
    const size_t all = parts(n, part);
    const size_t rounds = parts(all, maxBlocks);
    return unsigned(parts(all, rounds));
}

// Launches one sum of b.in[0, n) into *d_total, and before it the reset of the
// total where the rung needs one.
void launchRung(int rung, const Buffers &b, float *d_total, size_t n) {
    const unsigned blocks = gridOf(rung, n, b.maxBlocks);
    if (accumulates(rung)) CUDA_CHECK(cudaMemset(d_total, 0, sizeof(float)));
    if (rung == kLast) {
        sumLastBlock<<<blocks, kThreadsPerBlock>>>(b.in, d_total, n, b.partials,
                                                   b.ticket);
    } else {
        const SumKernel kernel = kKernels[rung];
        kernel<<<blocks, kThreadsPerBlock>>>(b.in, d_total, n);
    }
}

// Makes every total and partial a NaN, so that what a rung does not write
// itself shows.
void poison(const Buffers &b) {
    CUDA_CHECK(cudaMemset(b.totals, 0xFF, kLaunches * sizeof(float)));
    CUDA_CHECK(cudaMemset(b.partials, 0xFF, b.maxBlocks * sizeof(float)));
}

// Launches count sums of b.in[0, n), each into a total of its own, and brings
// them back in totals[0, count).
void sumRepeatedly(int rung, const Buffers &b, size_t n, int count,
                   float *totals) {
    poison(b);
    for (int run = 0; run < count; ++run)
        launchRung(rung, b, b.totals + run, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(totals, b.totals, count * sizeof(float),
                          cudaMemcpyDeviceToHost));
}

// Fills b.in[0, n) with one phase.
void fill(const Buffers &b, size_t n, size_t phases, size_t phase) {
    fillPhase<<<blocksOf(n), kThreadsPerBlock>>>(b.in, n, phases, phase);
    CUDA_CHECK(cudaGetLastError());
}

// Fills b.in[0, n) with ones, which is the one phase of one.
void fillOnes(const Buffers &b, size_t n) { fill(b, n, 1, 0); }

// Checks every rung on every phase of n elements, and clears ok[rung] of those
// that were wrong.
void checkPhases(const Buffers &b, size_t n, bool (&ok)[kNumRungs]) {
    const size_t phases = std::max<size_t>(1, n / kFloatIntegerLimit);
    for (size_t phase = 0; phase < phases; ++phase) {
        fill(b, n, phases, phase);
        const float want = float(countOfPhase(n, phases, phase));
        for (int rung = 0; rung < kLimit; ++rung) {
            if (!sumsOnesExactly(rung, n)) continue;
            float got;
            sumRepeatedly(rung, b, n, 1, &got);
            ok[rung] = checkExact(kRungNames[rung], n, got, want) && ok[rung];
        }
    }
}

// Checks that every rung reads: a NaN among the ones, first, in the middle or
// last, must come out. Clears ok[rung] of those from which it does not.
void checkReads(const Buffers &b, size_t n, bool (&ok)[kNumRungs]) {
    for (size_t place : {size_t(0), n / 2, n - 1}) {
        fillOnes(b, n);
        CUDA_CHECK(cudaMemset(b.in + place, 0xFF, sizeof(float)));
        for (int rung = 0; rung < kNumRungs; ++rung) {
            if (!sumsOnesExactly(rung, n)) continue;
            CUDA_CHECK(cudaMemset(b.totals, 0, sizeof(float)));
            launchRung(rung, b, b.totals, n);
            CUDA_CHECK(cudaGetLastError());
            float got;
            CUDA_CHECK(cudaMemcpy(&got, b.totals, sizeof(got),
                                  cudaMemcpyDeviceToHost));
            if (std::isnan(got)) continue;
            std::fprintf(stderr,
                         "FAILED: %s of %zu: element %zu was not read\n",
                         kRungNames[rung], n, place);
            ok[rung] = false;
        }
    }
}

// Times a rung on ones. Returns whether every timed launch had the right
// answer; the limit has none.
bool timeRung(int rung, const Buffers &b, size_t n, Timing *time) {
    poison(b);
    *time =
        timeKernel([&](int run) { launchRung(rung, b, b.totals + run, n); });
    float totals[kLaunches];
    CUDA_CHECK(
        cudaMemcpy(totals, b.totals, sizeof(totals), cudaMemcpyDeviceToHost));
    if (rung == kLimit) return true;
    for (float total : totals)
        if (!checkExact(kRungNames[rung], n, total, float(n))) return false;
    return true;
}

// Sums values that round kDetRuns times and counts the different answers.
// Returns whether each was near the reference, and, of the last rung, whether
// they were one: that is what it promises. The rounding errors of n adds in any
// one order mostly cancel: they grow like the square root of n, and four units
// of 2^-23 times that is wide enough for every honest order. It is also many
// elements wide: the phases are there to see the loss of a single one.
bool countDistinct(int rung, const Buffers &b, size_t n, int *distinct) {
    const double want = inexactSum(n);
    const double relative = 4 * std::ldexp(1.0, -23) * std::sqrt(double(n));
    float totals[kDetRuns];
    sumRepeatedly(rung, b, n, kDetRuns, totals);
    *distinct = distinctResults(totals, kDetRuns);
    for (float total : totals)
        if (!checkNear(kRungNames[rung], n, total, want, relative * want))
            return false;
    if (rung != kLast || *distinct == 1) return true;
    std::fprintf(stderr, "FAILED: %s sum of %zu: %d answers in %d runs\n",
                 kRungNames[rung], n, *distinct, kDetRuns);
    return false;
}

// The floors under the times, in milliseconds: of a launch, and of a reset and
// a launch, which is what an accumulating rung cannot be faster than.
struct Floors {
    float launch;
    float reset;
};

// What climb finds out about a rung.
struct Result {
    Timing time;
    int distinct;
    bool ran;
    bool ok;
    bool marked;
};

// Prints the rows of one table.
void printRows(const Result (&results)[kNumRungs], size_t n) {
    const Result &limit = results[kLimit];
    for (int rung = 0; rung < kNumRungs; ++rung) {
        const Result &r = results[rung];
        const Result &before = results[std::max(rung - 1, 0)];
        const bool follows = rung > 0 && rung != kLimit && before.ran;
        const float ms = r.time.median;
        int c = 0;
        printCell(kColumns[c++], kRungNames[rung]);
        printCell(kColumns[c++],
                  r.ran ? figure("%.4f", 1000 * ms, r.ok, r.marked) : "-");
        printCell(kColumns[c++],
                  r.ran ? figure("%.1f", readGBs(n, ms), r.ok, r.marked) : "-");
        printCell(kColumns[c++],
                  r.ran ? figure("%.1f", 100 * limit.time.median / ms,
                                 r.ok && limit.ok, r.marked || limit.marked)
                        : "-");
        printCell(kColumns[c++],
                  follows ? figure("%.2f", before.time.median / ms,
                                   r.ok && before.ok, r.marked || before.marked)
                          : "-");
        printCell(kColumns[c++],
                  r.ran ? figure("%.1f", spreadPercent(r.time), r.ok) : "-");
        printCell(kColumns[c++], r.ran && rung != kLimit
                                     ? figure("%.0f", r.distinct, r.ok)
                                     : "-");
        std::printf("\n");
    }
}

// Checks, times and counts every rung at n elements and prints the table, or
// says that there is no room for them. Returns how many rungs failed a check.
int climb(const Buffers &b, size_t n, const Floors &floors) {
    std::printf("elements: %zu\n", n);
    std::printf("MiB: %zu\n", n * sizeof(float) >> 20);
    if (n > b.room) {
        std::printf("left_out: the GPU has no room for it\n");
        return 0;
    }
    bool ok[kNumRungs];
    std::fill(ok, ok + kNumRungs, true);
    checkPhases(b, n, ok);
    checkReads(b, n, ok);

    Result results[kNumRungs] = {};
    fillOnes(b, n);
    for (int rung = 0; rung < kNumRungs; ++rung) {
        Result &r = results[rung];
        r.ran = sumsOnesExactly(rung, n);
        r.ok = ok[rung] && (!r.ran || timeRung(rung, b, n, &r.time));
        r.marked = nearFloor(r.time.median,
                             accumulates(rung) ? floors.reset : floors.launch);
    }
    fillInexact<<<blocksOf(n), kThreadsPerBlock>>>(b.in, n);
    CUDA_CHECK(cudaGetLastError());
    int failures = 0;
    for (int rung = 0; rung < kNumRungs; ++rung) {
        Result &r = results[rung];
        if (r.ran && rung != kLimit)
            r.ok = countDistinct(rung, b, n, &r.distinct) && r.ok;
        failures += !r.ok;
    }

    printLabels(kColumns);
    printRows(results, n);
    return failures;
}

// Checks every rung at every edge. Behind the elements stand NaNs, so that one
// that is read too many shows. Returns how many rungs failed.
int checkEdges(const Buffers &b) {
    bool ok[kNumRungs];
    std::fill(ok, ok + kNumRungs, true);
    for (size_t n : kEdges) {
        CUDA_CHECK(cudaMemset(b.in, 0xFF, kSizes[0] * sizeof(float)));
        checkPhases(b, n, ok);
        checkReads(b, n, ok);
    }
    const int failures = int(std::count(ok, ok + kNumRungs, false));
    std::printf("\n== edges: sizes that fill no block or float4, checked ==\n");
    std::printf("sizes: %d\n", kNumEdges);
    std::printf("largest: %zu\n", kEdges[kNumEdges - 1]);
    std::printf("failed_rungs: %d\n", failures);
    return failures;
}

int main() {
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
        std::fprintf(stderr,
                     "No CUDA GPU to run on (%s): run this on a machine with "
                     "an NVIDIA GPU and its driver.\n",
                     cudaGetErrorString(found));
        return EXIT_FAILURE;
    }
    cudaDeviceProp device;
    CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
    emptyKernel<<<1, 1>>>();
    const cudaError_t launched = cudaGetLastError();
    if (launched == cudaErrorNoKernelImageForDevice ||
        launched == cudaErrorInvalidDeviceFunction) {
        std::fprintf(stderr,
                     "This program has no code for the %s (compute capability "
                     "%d.%d): build it with nvcc -arch=native.\n",
                     device.name, device.major, device.minor);
        return EXIT_FAILURE;
    }
    CUDA_CHECK(launched);
    std::printf("Day 26, part three: from one atomic to the memory limit\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);

    // As much input as fits, up to the largest size.
    Buffers b = {};
    for (int k = kNumSizes - 1; k >= 0 && b.room == 0; --k) {
        if (cudaMalloc(&b.in, kSizes[k] * sizeof(float)) == cudaSuccess)
            b.room = kSizes[k];
        else
            cudaGetLastError();  // Forgets that there was no room.
    }
    if (b.room == 0) {
        std::fprintf(stderr,
                     "The GPU has no room for %zu MiB, which the smallest sum "
                     "needs: free some of its memory.\n",
                     kSizes[0] * sizeof(float) >> 20);
        return EXIT_FAILURE;
    }
    b.maxBlocks = kBlocksPerSm * device.multiProcessorCount;
    CUDA_CHECK(cudaMalloc(&b.totals, kLaunches * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.partials, b.maxBlocks * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.ticket, sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(b.ticket, 0, sizeof(unsigned)));

    const Timing floor = timeKernel([](int) { emptyKernel<<<1, 1>>>(); });
    const Timing reset = timeKernel([&](int run) {
        CUDA_CHECK(cudaMemset(b.totals + run, 0, sizeof(float)));
        emptyKernel<<<1, 1>>>();
    });
    const Floors floors = {floor.median, reset.median};
    std::printf("\n== floor: an empty kernel, launched the same way ==\n");
    std::printf("launches: %d\n", kLaunches);
    std::printf("floor_us: %.4f\n", 1000 * floor.median);
    std::printf("spread_%%: %.1f\n", spreadPercent(floor));
    std::printf("reset_floor_us: %.4f\n", 1000 * reset.median);
    std::printf("reset_spread_%%: %.1f\n", spreadPercent(reset));
    std::printf(
        "marked_*: within twice the floor of launches, or of resets and "
        "launches, do not compare\n");

    int failures = checkEdges(b);
    // Table n22: rows kRungNames, columns kColumns.
    std::printf("\n== n22: 2^22 elements ==\n");
    failures += climb(b, kSizes[0], floors);
    // Table n24: rows kRungNames, columns kColumns.
    std::printf("\n== n24: 2^24 elements ==\n");
    failures += climb(b, kSizes[1], floors);
    // Table n26: rows kRungNames, columns kColumns.
    std::printf("\n== n26: 2^26 elements ==\n");
    failures += climb(b, kSizes[2], floors);
    // Table n28: rows kRungNames, columns kColumns.
    std::printf("\n== n28: 2^28 elements ==\n");
    failures += climb(b, kSizes[3], floors);

    CUDA_CHECK(cudaFree(b.ticket));
    CUDA_CHECK(cudaFree(b.partials));
    CUDA_CHECK(cudaFree(b.totals));
    CUDA_CHECK(cudaFree(b.in));
    if (failures == 0) std::printf("\nAll checks passed.\n");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "The results could not be written to stdout.\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
