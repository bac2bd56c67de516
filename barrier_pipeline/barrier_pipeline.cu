// SPDX-License-Identifier: MIT
//
// Day 75: asynchronous barriers
//
// A block loads tiles into shared memory with some of its warps and computes
// on them with the others. Does it pay to replace __syncthreads(), at which
// everybody waits, by barriers at which one group only arrives and the other
// waits? The same loop, three ways:
//
//   pipelineSyncthreads   one __syncthreads() a tile
//   pipelineSplitBarrier  cuda::barrier, two a buffer, all threads counted on
//                         each: the producer-consumer pattern of the guide
//   pipelineRoleBarrier   cuda::barrier, two a buffer, each counting only the
//                         threads that signal; the others wait by parity
//
// Held equal: data, tiles, buffers, warps, and the code that copies and
// computes. loadTile and consumeTile are never inlined, and how far their
// loops are unrolled is given: a compiler that put more loads in flight in one
// kernel than in another would make a difference that looked like the
// barrier's. The only variable is the synchronisation.
//
// What came out on an H200: the split barrier does not pay here. With two
// buffers and all threads counted, "this buffer is ready" and "the other one is
// filled" come true at one moment, the one at which __syncthreads() would let
// everybody go. Counting roles spares a thread the wait for its own group, but
// a buffer still changes hands only when the other group is done with it: with
// equal tiles the rate is that of the slower group. And to arrive and to wait
// takes more instructions than __syncthreads(), which is one. Why the role
// barrier is no faster than the split one we have not shown. The program prints
// the ratios and no verdict. What the barrier is for is copies that no thread
// makes: bulk_pipeline.cu.
//
// The input repeats every 97 elements, and neither tile nor warp is a multiple
// of that, so a lane or a tile taken for another shows, unless the tile lies a
// multiple of 97 tiles away. The last tile is ragged.
//
// Needs: compute capability 8.0 or newer, CUDA 12.5 or newer, C++17.
// Build:
//   nvcc -std=c++17 -O3 -arch=native -o barrier_pipeline barrier_pipeline.cu
// Run:   ./barrier_pipeline
// Exit:  0 every check held; 1 a check or a CUDA call failed; 77 the GPU has
//        no hardware barrier.
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver 580.159.04,
// CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may be published
// is evidence/barrier_pipeline/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda/barrier>
#include <cuda_runtime.h>

// For an older architecture nvcc would build a barrier in software, without a
// word, and this program would time that.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "needs compute capability 8.0: add -arch=sm_80, or your GPU's"
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

// The exercise's knob: how many of a block's warps load; the others compute.
constexpr int kProducerWarps = 4;
constexpr int kThreadsPerBlock = 256;
static_assert(kThreadsPerBlock % 32 == 0, "a warp would be cut short");
constexpr int kProducerThreads = kProducerWarps * 32;
constexpr int kConsumerThreads = kThreadsPerBlock - kProducerThreads;
static_assert(kProducerThreads > 0 && kConsumerThreads > 0,
              "kProducerWarps must leave warps to load and warps to compute");

// Elements in all, ragged on purpose, and a tile; tiles take turns in two
// buffers.
constexpr size_t kElems = 4 * 1024 * 1024 + 611;
constexpr size_t kTileElems = 1024;
constexpr int kBuffers = 2;
static_assert(kBuffers == 2, "stage ^= 1 changes between two");

// Blocks for each SM of the GPU; none is without a tile.
constexpr int kBlocksPerSm = 2;

// Work an element: dependent fused multiply-adds, each waiting for the last.
constexpr int kInnerIters = 64;
constexpr float kMul = 0.999f;
constexpr float kAdd = 0.25f;

// The input is 0.00 to 0.96, again and again.
constexpr size_t kPeriod = 97;
static_assert(kTileElems % kPeriod != 0 && 32 % kPeriod != 0,
              "tiles or warps would be alike, and a mix-up would not show");

// What the table is labelled with.
constexpr int kNumKernels = 3;
constexpr const char *kKernelNames[kNumKernels] = {"sync", "split", "role"};
constexpr const char *kColumns[] = {"kernel", "ms", "GB/s", "time_to_sync",
                                    "spread_%"};

using Barrier = cuda::barrier<cuda::thread_scope_block>;
// nvcc would warn that a barrier's constructor does not run in shared memory;
// init() below stands in for it.
#pragma nv_diag_suppress static_var_with_dynamic_init

// Does nothing; what a launch of it takes is the floor under every time here.
__global__ void emptyKernel() {}

// The work on one element. fmaf rounds once on the GPU and on the CPU alike,
// so both give the same bits.
__host__ __device__ inline float fmaChain(float x) {
    for (int i = 0; i < kInnerIters; ++i) x = fmaf(x, kMul, kAdd);
    return x;
}

// Tiles that n elements make; the last may be ragged.
__host__ __device__ inline size_t numTiles(size_t n) {
    return (n + kTileElems - 1) / kTileElems;
}

// Copies one tile of in[0, n) to shared memory. One producer thread takes
// every kProducerThreads-th element of the tile, so a warp reads 128
// consecutive bytes. Thread 0 of the block is producer 0. No barrier.
// Its loop is unrolled by four, whatever the knob: the compiler gives each
// kernel a copy of this function, and left to itself may choose another factor
// for each.
__device__ __noinline__ void loadTile(const float *in, size_t n, size_t tile,
                                      float *buffer) {
#pragma unroll 4
    for (size_t j = threadIdx.x; j < kTileElems; j += kProducerThreads) {
        const size_t i = tile * kTileElems + j;
        if (i < n) buffer[j] = in[i];
    }
}

// Computes one tile from shared memory and stores it to out[0, n). One
// consumer thread takes every kConsumerThreads-th element of the tile. The
// consumers are the threads behind the producers. No barrier.
__device__ __noinline__ void consumeTile(const float *buffer, size_t n,
                                         size_t tile, float *out) {
#pragma unroll 1
    for (size_t j = threadIdx.x - kProducerThreads; j < kTileElems;
         j += kConsumerThreads) {
        const size_t i = tile * kTileElems + j;
        if (i < n) out[i] = fmaChain(buffer[j]);
    }
}

// While the consumers compute one buffer, the producers fill the other; one
// barrier a tile ends both, so neither group can be more than a tile ahead.
// All threads reach it: the loop's bounds are the block's, not the thread's.
// Launch: kThreadsPerBlock threads, at most numTiles(n) blocks.
__global__ void pipelineSyncthreads(const float *in, float *out, size_t n) {
    __shared__ float buffers[kBuffers][kTileElems];
    const bool isProducer = threadIdx.x < kProducerThreads;
    const size_t tiles = numTiles(n);
    // snippet: sync-loop
    int stage = 0;
    if (isProducer) loadTile(in, n, blockIdx.x, buffers[stage]);
    __syncthreads();
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const size_t next = tile + gridDim.x;
        if (isProducer) {
            if (next < tiles) loadTile(in, n, next, buffers[stage ^ 1]);
        } else {
            consumeTile(buffers[stage], n, tile, out);
        }
        __syncthreads();
        stage ^= 1;
    }
    // end snippet
}

// The producer-consumer pattern of the CUDA C++ Programming Guide 13.0, section
// "Spatial Partitioning (also known as Warp Specialization)". A phase of a
// barrier ends when all kThreadsPerBlock threads have arrived; arrive() does
// not wait. Producers wait on ready alone and consumers on filled alone.
// That promises that a group which is ahead need not wait for its signal to be
// taken. With all threads counted it must all the same: its next wait ends only
// when the other group has arrived, too. The token that arrive() returns would
// be for waiting, which the signalling group never does, so it is dropped. Each
// thread is in one group for good and arrives at most once in a phase.
// Launch: kThreadsPerBlock threads, at most numTiles(n) blocks.
__global__ void pipelineSplitBarrier(const float *in, float *out, size_t n) {
    __shared__ float buffers[kBuffers][kTileElems];
    __shared__ Barrier ready[kBuffers];
    __shared__ Barrier filled[kBuffers];
    // Thread 0 sets the counts; the __syncthreads() shows them to all.
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kBuffers; ++stage) {
            init(&ready[stage], kThreadsPerBlock);
            init(&filled[stage], kThreadsPerBlock);
        }
    }
    __syncthreads();
    const bool isProducer = threadIdx.x < kProducerThreads;
    const size_t tiles = numTiles(n);
    // snippet: split-loop
    int stage = 0;
    if (isProducer) {
        for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            ready[stage].arrive_and_wait();
            loadTile(in, n, tile, buffers[stage]);
            (void)filled[stage].arrive();
            stage ^= 1;
        }
    } else {
        (void)ready[0].arrive();  // Both buffers start out empty.
        (void)ready[1].arrive();
        for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            filled[stage].arrive_and_wait();
            consumeTile(buffers[stage], n, tile, out);
            (void)ready[stage].arrive();
            stage ^= 1;
        }
    }
    // end snippet
}

// The same hand-over, but a barrier counts only the threads that signal on it,
// and the other group waits by parity. Phases are numbered 0, 1, 2, ... and
// wait_parity(p) waits as long as the number of the current phase has parity
// p. A fresh barrier is in phase 0, so wait_parity(1) passes at once: that is
// how the producers find both buffers empty. wait_parity is an extension of
// libcu++; std::barrier has no such thing.
// Launch: kThreadsPerBlock threads, at most numTiles(n) blocks.
__global__ void pipelineRoleBarrier(const float *in, float *out, size_t n) {
    __shared__ float buffers[kBuffers][kTileElems];
    __shared__ Barrier ready[kBuffers];
    __shared__ Barrier filled[kBuffers];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kBuffers; ++stage) {
            init(&ready[stage], kConsumerThreads);
            init(&filled[stage], kProducerThreads);
        }
    }
    __syncthreads();
    const bool isProducer = threadIdx.x < kProducerThreads;
    const size_t tiles = numTiles(n);
    // snippet: role-loop
    int stage = 0;
    bool parity = false;  // Of this stage's current phase.
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        if (isProducer) {
            ready[stage].wait_parity(!parity);
            loadTile(in, n, tile, buffers[stage]);
            (void)filled[stage].arrive();
        } else {
            filled[stage].wait_parity(parity);
            consumeTile(buffers[stage], n, tile, out);
            (void)ready[stage].arrive();
        }
        stage ^= 1;
        if (stage == 0) parity = !parity;
    }
    // end snippet
}

using PipelineKernel = void (*)(const float *in, float *out, size_t n);
constexpr PipelineKernel kKernels[kNumKernels] = {
    pipelineSyncthreads, pipelineSplitBarrier, pipelineRoleBarrier};

// The reference: the same chain, an element at a time.
void pipelineCpu(const float *in, float *out, size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = fmaChain(in[i]);
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

// Whether got[0, n) is want[0, n), bit for bit; says on stderr how many
// elements are not, and which is the first.
bool checkOutput(const char *kernel, const float *got, const float *want,
                 size_t n) {
    size_t wrong = 0;
    size_t first = 0;
    for (size_t i = n; i-- > 0;) {
        if (std::memcmp(&got[i], &want[i], sizeof(float)) == 0) continue;
        ++wrong;
        first = i;
    }
    if (wrong == 0) return true;
    std::fprintf(stderr,
                 "FAILED: %s: %zu of %zu elements wrong, the first at %zu: "
                 "got %.9g, want %.9g\n",
                 kernel, wrong, n, first, got[first], want[first]);
    return false;
}

// Times kernel k over d_in[0, n). Returns whether its output, poisoned before,
// was right both before the timing and after its last launch. What an earlier
// launch did wrong, and a later one put right, does not show.
bool timePipeline(int k, const float *d_in, float *d_out, int blocks,
                  const std::vector<float> &want, Timing *time) {
    const PipelineKernel kernel = kKernels[k];
    const size_t n = want.size();
    const size_t bytes = n * sizeof(float);
    const auto launch = [=](int) {
        kernel<<<blocks, kThreadsPerBlock>>>(d_in, d_out, n);
    };
    std::vector<float> got(n);
    CUDA_CHECK(cudaMemset(d_out, 0xFF, bytes));
    launch(0);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    if (!checkOutput(kKernelNames[k], got.data(), want.data(), n)) return false;

    CUDA_CHECK(cudaMemset(d_out, 0xFF, bytes));
    *time = timeKernel(launch);
    CUDA_CHECK(cudaMemcpy(got.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    return checkOutput(kKernelNames[k], got.data(), want.data(), n);
}

// Times every kernel and prints the table. Returns how many failed a check.
int compare(const float *d_in, float *d_out, int blocks,
            const std::vector<float> &want, float floorMs) {
    Timing times[kNumKernels] = {};
    bool ok[kNumKernels];
    int failures = 0;
    // Table pipeline: rows kKernelNames, columns kColumns.
    std::printf("\n== pipeline: one tile loop, three ways to wait ==\n");
    std::printf("elements: %zu\n", want.size());
    std::printf("blocks: %d\n", blocks);
    std::printf("producer_warps: %d\n", kProducerWarps);
    std::printf("consumer_warps: %d\n", kConsumerThreads / 32);
    printLabels(kColumns);
    for (int k = 0; k < kNumKernels; ++k) {
        ok[k] = timePipeline(k, d_in, d_out, blocks, want, &times[k]);
        const float ms = times[k].median;
        const bool marked = nearFloor(ms, floorMs);
        printCell(kColumns[0], kKernelNames[k]);
        printCell(kColumns[1], figure("%.4f", ms, ok[k], marked));
        printCell(kColumns[2],
                  figure("%.1f", readWriteGBs(want.size(), ms), ok[k], marked));
        printCell(kColumns[3],
                  figure("%.3f", ms / times[0].median, ok[k] && ok[0],
                         marked || nearFloor(times[0].median, floorMs)));
        printCell(kColumns[4], figure("%.1f", spreadPercent(times[k]), ok[k]));
        std::printf("\n");
        failures += !ok[k];
    }
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
    if (device.major < 8) {
        std::fprintf(stderr,
                     "Skipped: asynchronous barriers in hardware need compute "
                     "capability 8.0 or newer; the %s has %d.%d.\n",
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
    std::printf("Day 75: asynchronous barriers\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);

    const size_t bytes = kElems * sizeof(float);
    float *d_in = nullptr;
    float *d_out = nullptr;
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    std::vector<float> h_in(kElems);
    std::vector<float> want(kElems);
    for (size_t i = 0; i < kElems; ++i) h_in[i] = (i % kPeriod) * 0.01f;
    pipelineCpu(h_in.data(), want.data(), kElems);
    CUDA_CHECK(cudaMemcpy(d_in, h_in.data(), bytes, cudaMemcpyHostToDevice));

    const Timing floor = timeKernel([](int) { emptyKernel<<<1, 1>>>(); });
    std::printf("\n== floor: an empty kernel, launched the same way ==\n");
    std::printf("launches: %d\n", kLaunches);
    std::printf("floor_ms: %.4f\n", floor.median);
    std::printf("spread_%%: %.1f\n", spreadPercent(floor));
    std::printf("marked_*: within twice the launch floor, do not compare\n");

    const int blocks = int(std::min<size_t>(
        numTiles(kElems), size_t(kBlocksPerSm) * device.multiProcessorCount));
    const int failures = compare(d_in, d_out, blocks, want, floor.median);

    CUDA_CHECK(cudaFree(d_out));
    CUDA_CHECK(cudaFree(d_in));
    if (failures == 0) std::printf("\nAll checks passed.\n");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "The results could not be written to stdout.\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
