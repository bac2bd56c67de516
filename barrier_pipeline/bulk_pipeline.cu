// SPDX-License-Identifier: MIT
//
// Day 75, part two: what the asynchronous barrier is for
//
// Part one (barrier_pipeline.cu) replaced __syncthreads() by barriers and
// gained nothing. There, threads made the copy. From compute capability 9.0 on
// a single thread can start the copy of a whole tile, and the barrier counts
// the bytes as they land. No thread loads from global memory or stores to
// shared memory; each still reads its part of the tile. Is that worth a tile
// loop, against kernels that use no shared memory at all?
//
//   pipelineBulk     one thread starts bulk copies, which complete on a barrier
//   pipelineSync     part one's loop; threads copy, one __syncthreads() a tile
//   pipelineElement  no shared memory, one element a thread
//   pipelineFloat4   no shared memory, one float4 a thread
//   pipelinePlain    no shared memory, the best we could write: a grid-stride
//                    loop over several float4s, the next ones already loading
//
// and two limits, measured in the same run: copyFloat4 only moves the data,
// fmaOnly only does the arithmetic. Their larger time is the roofline. It is
// measured, so a kernel may come out a little above it; where it is that of
// fmaOnly, and fmaOnly falls short of what the chip can do, there is none.
//
// Held equal: data, and what is computed from each element, kIters dependent
// fused multiply-adds. Few of them and memory sets the pace, many and the
// arithmetic does; between, where both limits meet, every instruction that only
// moves data takes the place of one that computes.
//
// The input repeats every 97 elements, so the reference is 97 chains on the
// CPU, and outputs are compared on the GPU. Neither tile nor warp is a multiple
// of that, so a lane or a tile taken for another shows, unless the tile lies a
// multiple of 97 tiles away. The last tile is ragged.
//
// Needs: compute capability 9.0 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o bulk_pipeline bulk_pipeline.cu
// Run:   ./bulk_pipeline
// Exit:  0 every check held; 1 a check or a CUDA call failed; 77 the GPU has
//        no bulk copies.
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver 580.159.04,
// CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may be published
// is evidence/bulk_pipeline/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "needs compute capability 9.0: add -arch=sm_90, or your GPU's"
#endif

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

// Elements in all: 4, 64 and 256 Mi and then 611, so that the last tile is
// ragged. Arrays are padded to whole float4s, which most kernels work in.
constexpr int kNumSizes = 3;
constexpr size_t kSizes[kNumSizes] = {4194915, 67109475, 268436067};
static_assert(kSizes[kNumSizes - 1] / 4 < 1u << 31,
              "the kernels count float4s in 32 bits");

// Work an element: dependent fused multiply-adds, each waiting for the last.
// How many is a template parameter, kIters, so that the compiler knows it. The
// factor is so near 1 that two inputs stay apart even over the many steps that
// fmaOnly takes of each.
constexpr float kMul = 0.99999f;
constexpr float kAdd = 0.25f;

// Fused multiply-adds in a loop's body. A shorter body makes more iterations, a
// longer one is more code to fetch.
constexpr int kBodyFmas = 1024;

// The exercise's knobs: buffers a block, float4s a tile, threads a block.
constexpr int kStages = 1;
constexpr int kTileVectors = 256;
constexpr int kBulkThreads = 32;
static_assert(kBulkThreads > 0 && kBulkThreads % 32 == 0 &&
                  kBulkThreads <= 1024,
              "kBulkThreads must be whole warps, and fit into a block");
static_assert(kTileVectors > 0 && kTileVectors % kBulkThreads == 0,
              "kTileVectors must be a multiple of kBulkThreads, and so "
              "kBulkThreads must divide kTileVectors");
static_assert(kTileVectors <= 48 * kBulkThreads,
              "kTileVectors must be at most 48 * kBulkThreads, or a thread's "
              "part of a tile would not fit in registers");
static_assert(kStages >= 1, "kStages must be at least 1");
static_assert(kStages * (kTileVectors * sizeof(float4) + 8) <= 48 * 1024,
              "kStages must be smaller, or kTileVectors must be: the tiles "
              "would not fit in static shared memory");

// Up to this many steps an element, a block takes one tile and is done; beyond,
// as many blocks as run at once go through all tiles. That is how it was faster
// on an H200; why it is so we have not shown. A knob, too: 0 for a loop at any
// number.
constexpr int kLightIters = 16;
static_assert(kLightIters >= 0, "kLightIters must be at least 0");

// The same tile loop without bulk copies: so many threads compute, so many
// copy.
constexpr int kSyncTileVectors = 512;
constexpr int kSyncConsumers = 128;
constexpr int kSyncLoaders = 128;
constexpr int kSyncThreads = kSyncConsumers + kSyncLoaders;
static_assert(kSyncTileVectors % kSyncConsumers == 0 &&
                  kSyncTileVectors % kSyncLoaders == 0,
              "a tile must be the same number of float4s for every thread");

// The kernels without shared memory.
constexpr int kThreadsPerBlock = 256;
constexpr int kPlainThreads = 384;
constexpr int kPlainVectors = 4;
constexpr int kPlainBlocksPerSm = 3;

// The all-FMA kernel: chains a thread, and blocks an SM.
constexpr int kFmaChains = 16;
constexpr int kFmaBlocksPerSm = 4;

// Fused multiply-adds that an SM of compute capability 9.0 or newer makes a
// clock (CUDA C++ Programming Guide v13.0, "Arithmetic Instructions"), and the
// share of that which the all-FMA kernel must reach to pass for a limit.
constexpr int kFmaPerClock = 128;
constexpr double kMinFmaShare = 0.97;

// A rest before each kernel is timed: at the limit of its power a GPU lowers
// its clock, and no kernel shall pay for what the one before it has drawn.
constexpr std::chrono::milliseconds kPause(100);

// The input is 0.00 to 0.96, again and again.
constexpr int kPeriod = 97;
static_assert(kTileVectors * 4 % kPeriod != 0 &&
                  kSyncTileVectors * 4 % kPeriod != 0 && 32 % kPeriod != 0,
              "tiles or warps would be alike, and a mix-up would not show");

// What the tables are labelled with: every kernel at every size.
enum Kernel { kCopy, kFma, kElement, kFloat4, kPlain, kSync, kBulk };
constexpr int kNumKernels = 7;
constexpr const char *kRows[kNumSizes * kNumKernels] = {
    "copy@4Mi",      "fma@4Mi",      "element@4Mi", "float4@4Mi",
    "plain@4Mi",     "sync@4Mi",     "bulk@4Mi",    "copy@64Mi",
    "fma@64Mi",      "element@64Mi", "float4@64Mi", "plain@64Mi",
    "sync@64Mi",     "bulk@64Mi",    "copy@256Mi",  "fma@256Mi",
    "element@256Mi", "float4@256Mi", "plain@256Mi", "sync@256Mi",
    "bulk@256Mi"};
constexpr const char *kColumns[] = {
    "kernel@elements", "ms",          "GB/s",    "TFMA/s",
    "roofline_%",      "times_plain", "fastest", "spread_%"};

using Barrier = cuda::barrier<cuda::thread_scope_block>;
// nvcc would warn that a barrier's constructor does not run in shared memory;
// init() below stands in for it.
#pragma nv_diag_suppress static_var_with_dynamic_init

// Does nothing; what a launch of it takes is the floor under every time here.
__global__ void emptyKernel() {}

// Fills in[0, n) with the periodic input. One thread takes every stride-th
// element. Any launch.
__global__ void fillInput(float *in, size_t n) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += stride)
        in[i] = (i % kPeriod) * 0.01f;
}

// What countWrong finds.
struct Wrong {
    unsigned long long count;
    unsigned long long first;
};

// Counts the elements of got[0, n) that are not the period want[0, kPeriod)
// over and over, bit for bit, and notes the first. *wrong must start as
// {0, n}. One thread takes every stride-th element. Any launch.
__global__ void countWrong(const float *got, const float *want, size_t n,
                           Wrong *wrong) {
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    Wrong mine = {0, n};
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += stride) {
        if (__float_as_uint(got[i]) == __float_as_uint(want[i % kPeriod]))
            continue;
        if (mine.count++ == 0) mine.first = i;
    }
    if (mine.count == 0) return;
    atomicAdd(&wrong->count, mine.count);
    atomicMin(&wrong->first, mine.first);
}

// float4s that hold n elements; the last may be padded.
__host__ __device__ inline unsigned numVectors(size_t n) {
    return unsigned((n + 3) / 4);
}

// Tiles of so many float4s; the last may be ragged.
__host__ __device__ constexpr unsigned numTiles(unsigned vectors, int tile) {
    return (vectors + tile - 1) / tile;
}

// Steps of so many chains that fit in a loop's body: a power of two.
__host__ __device__ constexpr int stepsPerBody(int chains) {
    int steps = 1;
    while (2 * steps * chains <= kBodyFmas) steps *= 2;
    return steps;
}

// The work on kCount float4s: kIters steps on each float. A chain's steps wait
// for one another, the chains do not, so they stand side by side.
template <int kIters, int kCount>
__device__ inline void fmaChains(float4 (&x)[kCount]) {
    constexpr int kSteps = stepsPerBody(4 * kCount);
#pragma unroll kSteps
    for (int i = 0; i < kIters; ++i) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
            x[k].x = fmaf(x[k].x, kMul, kAdd);
            x[k].y = fmaf(x[k].y, kMul, kAdd);
            x[k].z = fmaf(x[k].z, kMul, kAdd);
            x[k].w = fmaf(x[k].w, kMul, kAdd);
        }
    }
}

// The memory limit: moves every element and does nothing to it. One thread
// moves one float4, a warp 512 consecutive bytes. No barrier.
// Launch: any block size, at least as many threads as float4s.
__global__ void copyFloat4(const float4 *in, float4 *out, unsigned vectors) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) out[i] = in[i];
}

// The arithmetic limit: kFmaChains chains a thread, each of so many steps that
// all together do the work on the whole input. Loads and stores one float a
// chain, from in[0, n) and to out[0, n), so that the result can be checked.
// No barrier. Launch: kThreadsPerBlock threads a block.
__global__ void __launch_bounds__(kThreadsPerBlock, kFmaBlocksPerSm)
    fmaOnly(const float *in, float *out, size_t n, int steps) {
    const size_t stride = size_t(gridDim.x) * kThreadsPerBlock;
    const size_t first = size_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
    float x[kFmaChains];
    for (int k = 0; k < kFmaChains; ++k)
        x[k] = first + k * stride < n ? in[first + k * stride] : 0.0f;
    constexpr int kSteps = stepsPerBody(kFmaChains);
#pragma unroll kSteps
    for (int i = 0; i < steps; ++i) {
#pragma unroll
        for (int k = 0; k < kFmaChains; ++k) x[k] = fmaf(x[k], kMul, kAdd);
    }
    for (int k = 0; k < kFmaChains; ++k)
        if (first + k * stride < n) out[first + k * stride] = x[k];
}

// One thread computes one element: one load of 4 bytes, then a single chain,
// in which every step waits for the last. A warp reads 128 consecutive bytes.
// No barrier. Launch: any block size, at least n threads in all.
template <int kIters>
__global__ void pipelineElement(const float *in, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
#pragma unroll kBodyFmas
    for (int step = 0; step < kIters; ++step) x = fmaf(x, kMul, kAdd);
    out[i] = x;
}

// One thread computes one float4: a quarter of the loads, four chains side by
// side. A warp reads 512 consecutive bytes. No barrier.
// Launch: any block size, at least as many threads as float4s.
template <int kIters>
__global__ void pipelineFloat4(const float4 *in, float4 *out,
                               unsigned vectors) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= vectors) return;
    float4 x[1] = {in[i]};
    fmaChains<kIters>(x);
    out[i] = x[0];
}

// float4s of one tile: all, or in the last tile what is left.
__device__ inline int tileCount(unsigned tile, int tileVectors,
                                unsigned vectors) {
    const unsigned left = vectors - tile * tileVectors;
    return left < unsigned(tileVectors) ? int(left) : tileVectors;
}

// Takes one tile from memory to registers. One of kThreads threads takes every
// kThreads-th float4, so a warp reads 512 consecutive bytes. No barrier.
template <int kThreads, int kCount>
__device__ inline void takeTile(const float4 *tile, float4 (&x)[kCount]) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) x[k] = tile[k * kThreads + threadIdx.x];
}

// Stores what takeTile took to out[0, count); whole tiles without a check for
// every float4. No barrier.
template <int kThreads, int kCount>
__device__ inline void storeTile(const float4 (&x)[kCount], float4 *out,
                                 int count) {
    if (count == kThreads * kCount) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) out[k * kThreads + threadIdx.x] = x[k];
        return;
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
        const int i = k * kThreads + threadIdx.x;
        if (i < count) out[i] = x[k];
    }
}

// As many blocks as run at once go through the input together, in chunks of
// kPlainVectors float4s a thread. While a thread computes its part of one
// chunk, that of its next is on its way to registers: the pipeline of this
// lesson, with registers for buffers. A warp reads and writes 512 consecutive
// bytes at a time. A last chunk that is ragged is left for one block. No
// barrier.
// __stcs says that nobody will read the results again. It does more here: with
// ordinary stores nvcc 13.0 moves the loads of the next chunk behind most of
// the arithmetic (seen at 64 steps for sm_90), and the thread waits for them.
// Launch: kPlainThreads threads a block, any number of blocks.
template <int kIters>
__global__ void __launch_bounds__(kPlainThreads, kPlainBlocksPerSm)
    pipelinePlain(const float4 *in, float4 *out, unsigned vectors) {
    constexpr int kChunk = kPlainThreads * kPlainVectors;
    const unsigned stride = gridDim.x * kChunk;
    unsigned first = blockIdx.x * kChunk;
    // snippet: plain-loop
    float4 next[kPlainVectors];
    bool isWhole = first + kChunk <= vectors;
    if (isWhole) takeTile<kPlainThreads>(in + first, next);
    while (isWhole) {
        float4 x[kPlainVectors];
        for (int k = 0; k < kPlainVectors; ++k) x[k] = next[k];
        float4 *const results = out + first;
        first += stride;
        isWhole = first + kChunk <= vectors;
        if (isWhole) takeTile<kPlainThreads>(in + first, next);
        fmaChains<kIters>(x);
        for (int k = 0; k < kPlainVectors; ++k)
            __stcs(results + k * kPlainThreads + threadIdx.x, x[k]);
    }
    // end snippet
    for (unsigned i = first + threadIdx.x; i < vectors; i += kPlainThreads) {
        float4 x[1] = {in[i]};
        fmaChains<kIters>(x);
        out[i] = x[0];
    }
}

// Copies one tile of in[0, count) to shared memory. The loaders are the
// threads behind the consumers. No barrier.
__device__ inline void loadTile(const float4 *in, int count, float4 *buffer) {
#pragma unroll
    for (int k = 0; k < kSyncTileVectors / kSyncLoaders; ++k) {
        const int i = k * kSyncLoaders + threadIdx.x - kSyncConsumers;
        if (i < count) buffer[i] = in[i];
    }
}

// Part one's loop on float4s: while kSyncConsumers threads compute one buffer,
// kSyncLoaders threads fill the other, and a __syncthreads() a tile ends both.
// All threads reach it: the loop's bounds are the block's. In a ragged tile
// some consumers compute what lies in the buffer; they store nothing of it.
// Launch: kSyncThreads threads, at most as many blocks as tiles.
template <int kIters>
__global__ void __launch_bounds__(kSyncThreads)
    pipelineSync(const float4 *in, float4 *out, unsigned vectors) {
    constexpr int kTile = kSyncTileVectors;
    __shared__ float4 buffers[2][kTile];
    const bool isLoader = threadIdx.x >= kSyncConsumers;
    const unsigned tiles = numTiles(vectors, kTile);
    int stage = 0;
    if (isLoader)
        loadTile(in + blockIdx.x * kTile, tileCount(blockIdx.x, kTile, vectors),
                 buffers[stage]);
    __syncthreads();
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const unsigned next = tile + gridDim.x;
        if (isLoader) {
            if (next < tiles)
                loadTile(in + next * kTile, tileCount(next, kTile, vectors),
                         buffers[stage ^ 1]);
        } else {
            float4 x[kTile / kSyncConsumers];
            takeTile<kSyncConsumers>(buffers[stage], x);
            fmaChains<kIters>(x);
            storeTile<kSyncConsumers>(x, out + tile * kTile,
                                      tileCount(tile, kTile, vectors));
        }
        __syncthreads();
        stage ^= 1;
    }
}

// Starts the copy of one tile into a buffer; one thread calls it for its block.
// barrier_arrive_tx is the one arrival that a phase of filled waits for, and
// adds the bytes that it waits for besides. The copy takes them off as they
// land, and with the last of them the phase is over.
__device__ inline void startCopy(const float4 *in, unsigned vectors,
                                 unsigned tile, float4 *buffer,
                                 Barrier &filled) {
    // snippet: bulk-copy
    const cuda::aligned_size_t<16> bytes(
        tileCount(tile, kTileVectors, vectors) * sizeof(float4));
    (void)cuda::device::barrier_arrive_tx(filled, 1, bytes);
    cuda::device::memcpy_async_tx(buffer, in + tile * kTileVectors, bytes,
                                  filled);
    // end snippet
}

// Thread 0 is the producer: it starts copies, and computes like every other
// thread. The block waits for its tile by parity, as in part one's
// pipelineRoleBarrier, takes it to registers and hands the buffer back before
// it computes: the next copy runs during the arithmetic, so one buffer is
// enough to have both at once. wait_parity polls: it asks again until the phase
// is over.
//
// Handing back takes one line more than in part one. __syncthreads() orders the
// reads before it and what threads do after it. But the copy is made by no
// thread: it writes by what PTX calls the async proxy, and one memory location
// that is used both ways needs a proxy fence in between. So every thread fences
// its reads, all meet, and thread 0 starts the copy. The other direction needs
// no fence: who has seen a copy complete sees what it wrote. The first fence,
// behind init, is the same rule for the barriers, on which the copies count.
//
// All threads reach each __syncthreads(): the conditions are the block's. In
// the last tile, threads past the end compute what lies in the buffer and
// store nothing of it.
// Launch: kBulkThreads threads, any number of blocks.
template <int kIters>
__global__ void __launch_bounds__(kBulkThreads)
    pipelineBulk(const float4 *in, float4 *out, unsigned vectors) {
    __shared__ float4 buffers[kStages][kTileVectors];
    __shared__ Barrier filled[kStages];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) init(&filled[stage], 1);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
    const unsigned tiles = numTiles(vectors, kTileVectors);
    // snippet: bulk-loop
    const bool isProducer = threadIdx.x == 0;
    for (int stage = 0; stage < kStages; ++stage) {
        const unsigned tile = blockIdx.x + stage * gridDim.x;
        if (isProducer && tile < tiles)
            startCopy(in, vectors, tile, buffers[stage], filled[stage]);
    }
    int stage = 0;
    bool parity = false;  // Of this stage's current phase.
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 x[kTileVectors / kBulkThreads];
        filled[stage].wait_parity(parity);
        takeTile<kBulkThreads>(buffers[stage], x);
        const unsigned next = tile + kStages * gridDim.x;
        if (next < tiles) {
            cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
            __syncthreads();
            if (isProducer)
                startCopy(in, vectors, next, buffers[stage], filled[stage]);
        }
        fmaChains<kIters>(x);
        storeTile<kBulkThreads>(x, out + tile * kTileVectors,
                                tileCount(tile, kTileVectors, vectors));
        if (++stage == kStages) {
            stage = 0;
            parity = !parity;
        }
    }
    // end snippet
}

// The reference: steps of the chain from each value of the period. fmaf
// rounds once on the GPU, and so does std::fmaf on the CPU: the same bits.
void pipelineCpu(float (&want)[kPeriod], int steps) {
    for (int i = 0; i < kPeriod; ++i) {
        want[i] = i * 0.01f;
        for (int step = 0; step < steps; ++step)
            want[i] = std::fmaf(want[i], kMul, kAdd);
    }
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

// Bytes read and written, in GB/s.
double readWriteGBs(size_t n, float ms) {
    return 2.0 * n * sizeof(float) / (ms * 1e6);
}

// Fused multiply-adds, in 10^12 a second.
double teraFmas(double fmas, float ms) { return fmas / (ms * 1e9); }

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

// What the launches and checks below work with. The arrays hold the largest
// size that fits, padded.
struct Bench {
    int sms;
    double peakTeraFmas;
    float floorMs;
    size_t maxElems;
    float *d_in;
    float *d_out;
    float *d_want;
    Wrong *d_wrong;
};

// Blocks for all items, part of them each, and no more than most.
unsigned gridFor(size_t all, size_t part, size_t most = 0x7fffffff) {
    return unsigned(std::min((all + part - 1) / part, most));
}

// Elements that fmaOnly loads, computes on and stores when the input has n: a
// quarter at most, so that loading them is little beside the work.
size_t fmaElems(const Bench &b, size_t n) {
    return std::min((n + 3) / 4, size_t(b.sms) * kFmaBlocksPerSm *
                                     kThreadsPerBlock * kFmaChains);
}

// Steps of each of its chains for the work of iters steps on n elements, up to
// the next whole step.
int fmaSteps(const Bench &b, size_t n, int iters) {
    const size_t elems = fmaElems(b, n);
    return int((n * iters + elems - 1) / elems);
}

// Whether kernel k is there to show a limit and does not do the whole work.
bool isLimit(int k) { return k == kCopy || k == kFma; }

// Blocks of so many threads of a kernel that an SM holds at once.
template <typename Kernel>
size_t blocksPerSm(Kernel kernel, int threads) {
    int blocks;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                             threads, 0));
    return blocks;
}

// Blocks that a kernel takes for n elements.
template <int kIters>
unsigned gridOf(int kernel, const Bench &b, size_t n) {
    const size_t vectors = numVectors(n);
    const size_t sms = b.sms;
    switch (kernel) {
        case kFma:
            return gridFor(fmaElems(b, n), kThreadsPerBlock * kFmaChains);
        case kElement:
            return gridFor(n, kThreadsPerBlock);
        case kPlain:
            return gridFor(vectors, kPlainThreads * kPlainVectors,
                           sms * kPlainBlocksPerSm);
        case kSync:
            return gridFor(
                vectors, kSyncTileVectors,
                sms * blocksPerSm(pipelineSync<kIters>, kSyncThreads));
        case kBulk:
            if (kIters <= kLightIters) return gridFor(vectors, kTileVectors);
            return gridFor(
                vectors, kTileVectors,
                sms * blocksPerSm(pipelineBulk<kIters>, kBulkThreads));
        default:
            return gridFor(vectors, kThreadsPerBlock);
    }
}

// Launches one kernel on the first n elements.
template <int kIters>
void launchKernel(int kernel, unsigned grid, const Bench &b, size_t n) {
    const unsigned vectors = numVectors(n);
    const float4 *in = reinterpret_cast<const float4 *>(b.d_in);
    float4 *out = reinterpret_cast<float4 *>(b.d_out);
    constexpr int kBlock = kThreadsPerBlock;
    const int steps = fmaSteps(b, n, kIters);
    switch (kernel) {
        case kCopy:
            copyFloat4<<<grid, kBlock>>>(in, out, vectors);
            break;
        case kFma:
            fmaOnly<<<grid, kBlock>>>(b.d_in, b.d_out, fmaElems(b, n), steps);
            break;
        case kElement:
            pipelineElement<kIters><<<grid, kBlock>>>(b.d_in, b.d_out, n);
            break;
        case kFloat4:
            pipelineFloat4<kIters><<<grid, kBlock>>>(in, out, vectors);
            break;
        case kPlain:
            pipelinePlain<kIters><<<grid, kPlainThreads>>>(in, out, vectors);
            break;
        case kSync:
            pipelineSync<kIters><<<grid, kSyncThreads>>>(in, out, vectors);
            break;
        case kBulk:
            pipelineBulk<kIters><<<grid, kBulkThreads>>>(in, out, vectors);
            break;
    }
}

// How many of d_got[0, n) are not want over and over, and which is the first.
Wrong compareOnDevice(const Bench &b, const float *d_got,
                      const float (&want)[kPeriod], size_t n) {
    Wrong wrong = {0, n};
    CUDA_CHECK(
        cudaMemcpy(b.d_want, want, sizeof(want), cudaMemcpyHostToDevice));
    CUDA_CHECK(
        cudaMemcpy(b.d_wrong, &wrong, sizeof(wrong), cudaMemcpyHostToDevice));
    const unsigned grid = gridFor(n, kThreadsPerBlock, size_t(b.sms) * 8);
    countWrong<<<grid, kThreadsPerBlock>>>(d_got, b.d_want, n, b.d_wrong);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(
        cudaMemcpy(&wrong, b.d_wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
    return wrong;
}

// Whether d_out[0, n) is right; says on stderr what is not.
bool checkOutput(const char *row, int iters, const Bench &b,
                 const float (&want)[kPeriod], size_t n) {
    const Wrong wrong = compareOnDevice(b, b.d_out, want, n);
    if (wrong.count == 0) return true;
    float got;
    CUDA_CHECK(cudaMemcpy(&got, b.d_out + wrong.first, sizeof(got),
                          cudaMemcpyDeviceToHost));
    std::fprintf(stderr,
                 "FAILED: %s, %d iterations: %llu of %zu elements wrong, the "
                 "first at %llu: got %.9g, want %.9g\n",
                 row, iters, wrong.count, n, wrong.first, got,
                 want[wrong.first % kPeriod]);
    return false;
}

// Whether the input is right and the comparison can tell: it must find no
// element wrong, and every one when the last bit of each value is another.
// Fills the input first.
bool checkInput(const Bench &b) {
    fillInput<<<b.sms * 8, kThreadsPerBlock>>>(
        b.d_in, 4 * size_t(numVectors(b.maxElems)));
    CUDA_CHECK(cudaGetLastError());
    float want[kPeriod];
    pipelineCpu(want, 0);
    const Wrong none = compareOnDevice(b, b.d_in, want, b.maxElems);
    for (float &value : want) {
        unsigned bits;
        std::memcpy(&bits, &value, sizeof(bits));
        bits ^= 1;
        std::memcpy(&value, &bits, sizeof(bits));
    }
    const Wrong every = compareOnDevice(b, b.d_in, want, b.maxElems);
    if (none.count == 0 && every.count == b.maxElems && every.first == 0)
        return true;
    std::fprintf(stderr,
                 "FAILED: input of %zu elements: %llu wrong, want 0; compared "
                 "with other values %llu wrong from %llu on, want all.\n",
                 b.maxElems, none.count, every.count, every.first);
    return false;
}

// Times one kernel on n elements. Returns whether its output, poisoned before,
// was right both before the timing and after its last launch.
template <int kIters>
bool timePipeline(const char *row, int kernel, const Bench &b, size_t n,
                  Timing *time) {
    const int steps = kernel == kCopy  ? 0
                      : kernel == kFma ? fmaSteps(b, n, kIters)
                                       : kIters;
    const size_t outputs = kernel == kFma ? fmaElems(b, n) : n;
    float want[kPeriod];
    pipelineCpu(want, steps);
    const unsigned grid = gridOf<kIters>(kernel, b, n);
    const auto launch = [&](int) { launchKernel<kIters>(kernel, grid, b, n); };
    CUDA_CHECK(cudaMemset(b.d_out, 0xFF, n * sizeof(float)));
    launch(0);
    CUDA_CHECK(cudaGetLastError());
    if (!checkOutput(row, kIters, b, want, outputs)) return false;

    CUDA_CHECK(cudaMemset(b.d_out, 0xFF, n * sizeof(float)));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::this_thread::sleep_for(kPause);
    *time = timeKernel(launch);
    return checkOutput(row, kIters, b, want, outputs);
}

// Whether kernel k was fastest beyond doubt, limits aside: its median lies
// below the minimum of every other and is not near the floor.
bool isFastest(int k, const Timing (&times)[kNumKernels],
               const bool (&ok)[kNumKernels], float floorMs) {
    bool wins = !isLimit(k) && ok[k] && !nearFloor(times[k].median, floorMs);
    for (int rival = 0; rival < kNumKernels; ++rival)
        if (rival != k && !isLimit(rival))
            wins = wins && ok[rival] && times[k].median < times[rival].min;
    return wins;
}

// Prints the rows of one size, without figures if it does not fit; rows are
// their labels. The roofline counts where the larger limit is one: the copy, or
// a fmaOnly that comes near what the chip can do.
void report(const char *const *rows, const Bench &b, size_t n, int iters,
            const Timing (&times)[kNumKernels], const bool (&ok)[kNumKernels]) {
    const std::string none = "-";
    const bool limitsOk = ok[kCopy] && ok[kFma];
    const double work = double(n) * iters;
    const bool limitsCount =
        times[kCopy].median > times[kFma].median ||
        teraFmas(work, times[kFma].median) >= kMinFmaShare * b.peakTeraFmas;
    const bool plainsOk = ok[kElement] && ok[kFloat4] && ok[kPlain];
    const float roofMs = std::max(times[kCopy].median, times[kFma].median);
    const float plainMs = std::min(
        {times[kElement].median, times[kFloat4].median, times[kPlain].median});
    for (int k = 0; k < kNumKernels; ++k) {
        const float ms = times[k].median;
        const bool marked = nearFloor(ms, b.floorMs);
        const std::string gbs =
            figure("%.1f", readWriteGBs(n, ms), ok[k], marked);
        const std::string rate =
            figure("%.2f", teraFmas(work, ms), ok[k], marked);
        const std::string ofRoofline =
            figure("%.1f", 100 * roofMs / ms, ok[k] && limitsOk,
                   marked || nearFloor(roofMs, b.floorMs));
        const std::string timesPlain =
            figure("%.3f", plainMs / ms, ok[k] && plainsOk,
                   marked || nearFloor(plainMs, b.floorMs));
        const std::string cells[] = {
            rows[k],
            figure("%.4f", ms, ok[k], marked),
            k == kFma ? none : gbs,
            k == kCopy ? none : rate,
            isLimit(k) || !limitsCount ? none : ofRoofline,
            isLimit(k) ? none : timesPlain,
            isFastest(k, times, ok, b.floorMs) ? "yes" : none,
            figure("%.1f", spreadPercent(times[k]), ok[k])};
        static_assert(std::size(cells) == std::size(kColumns),
                      "a row would not fit its table");
        for (size_t c = 0; c < std::size(cells); ++c)
            printCell(kColumns[c], c == 0 || n <= b.maxElems ? cells[c] : none);
        std::printf("\n");
    }
}

// Times every kernel at every size that fits, with kIters steps an element,
// and prints the table. Returns how many failed a check.
template <int kIters>
int sweep(const Bench &b) {
    int failures = 0;
    std::printf("bulk_blocks_per_sm: %zu\n",
                blocksPerSm(pipelineBulk<kIters>, kBulkThreads));
    printLabels(kColumns);
    for (int s = 0; s < kNumSizes; ++s) {
        const size_t n = kSizes[s];
        const char *const *rows = &kRows[s * kNumKernels];
        Timing times[kNumKernels] = {};
        bool ok[kNumKernels] = {};
        for (int k = 0; k < kNumKernels && n <= b.maxElems; ++k) {
            ok[k] = timePipeline<kIters>(rows[k], k, b, n, &times[k]);
            failures += !ok[k];
        }
        report(rows, b, n, kIters, times, ok);
    }
    return failures;
}

// The largest of kSizes for which two padded arrays fit into the GPU's free
// memory; 0 if none does. Names those that do not.
size_t largestThatFits() {
    size_t available, total;
    CUDA_CHECK(cudaMemGetInfo(&available, &total));
    size_t largest = 0;
    for (size_t n : kSizes) {
        // A sixteenth is left free.
        const size_t bytes = 2 * sizeof(float4) * numVectors(n);
        if (bytes < available - available / 16)
            largest = n;
        else
            std::printf("left_out: %zu elements, which need %zu MiB\n", n,
                        bytes >> 20);
    }
    return largest;
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
    if (device.major < 9) {
        std::fprintf(stderr,
                     "Skipped: bulk asynchronous copies need compute "
                     "capability 9.0 or newer; the %s has %d.%d.\n",
                     device.name, device.major, device.minor);
        return 77;
    }
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
    std::printf("Day 75, part two: what the asynchronous barrier is for\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);
    int clockKhz;
    CUDA_CHECK(cudaDeviceGetAttribute(&clockKhz, cudaDevAttrClockRate, 0));
    std::printf("clock_MHz: %d\n", clockKhz / 1000);

    Bench b = {};
    b.sms = device.multiProcessorCount;
    b.peakTeraFmas = double(b.sms) * kFmaPerClock * clockKhz * 1e-9;
    std::printf("peak_TFMA/s: %.2f\n", b.peakTeraFmas);
    b.maxElems = largestThatFits();
    if (b.maxElems == 0) {
        std::fprintf(stderr,
                     "Too little free GPU memory for two arrays of %zu "
                     "floats.\n",
                     kSizes[0]);
        return EXIT_FAILURE;
    }
    const size_t bytes = numVectors(b.maxElems) * sizeof(float4);
    CUDA_CHECK(cudaMalloc(&b.d_in, bytes));
    CUDA_CHECK(cudaMalloc(&b.d_out, bytes));
    CUDA_CHECK(cudaMalloc(&b.d_want, kPeriod * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.d_wrong, sizeof(Wrong)));

    const Timing floor = timeKernel([](int) { emptyKernel<<<1, 1>>>(); });
    b.floorMs = floor.median;
    std::printf("\n== floor: an empty kernel, launched the same way ==\n");
    std::printf("launches: %d\n", kLaunches);
    std::printf("floor_ms: %.4f\n", floor.median);
    std::printf("spread_%%: %.1f\n", spreadPercent(floor));
    std::printf("marked_*: within twice the launch floor, do not compare\n");

    int failures = !checkInput(b);
    if (failures == 0) {
        // Table iters8: rows kRows, columns kColumns.
        std::printf("\n== iters8: 8 steps an element ==\n");
        failures += sweep<8>(b);
        // Table iters64: rows kRows, columns kColumns.
        std::printf("\n== iters64: 64 steps an element ==\n");
        failures += sweep<64>(b);
        // Table iters256: rows kRows, columns kColumns.
        std::printf("\n== iters256: 256 steps an element ==\n");
        failures += sweep<256>(b);
    }

    CUDA_CHECK(cudaFree(b.d_wrong));
    CUDA_CHECK(cudaFree(b.d_want));
    CUDA_CHECK(cudaFree(b.d_out));
    CUDA_CHECK(cudaFree(b.d_in));
    if (failures == 0) std::printf("\nAll checks passed.\n");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "The results could not be written to stdout.\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
