// SPDX-License-Identifier: MIT
//
// Small kernels, sound and faulty, on which cpu_runner_test.cc tests the CPU
// runner. usage: planted_faults CASE. Exit 0: the case's answer was right.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kBlocks = 5;
constexpr int kTiles = 7;

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Every thread adds its neighbour's value; sound only with the barrier.
template <bool kSound>
__global__ void neighbour(float *out) {
    __shared__ float values[kThreads];
    values[threadIdx.x] = float(threadIdx.x);
    if (kSound) __syncthreads();
    out[blockIdx.x * kThreads + threadIdx.x] =
        values[threadIdx.x] + values[(threadIdx.x + 1) % kThreads];
}

// The same inside a warp.
template <bool kSound>
__global__ void warpNeighbour(float *out) {
    __shared__ float values[kThreads];
    values[threadIdx.x] = float(threadIdx.x);
    if (kSound) __syncwarp();
    out[blockIdx.x * kThreads + threadIdx.x] =
        values[threadIdx.x] + values[threadIdx.x ^ 1];
}

// Counts the threads of all blocks in out[0].
template <bool kSound>
__global__ void count(float *out) {
    if (kSound)
        atomicAdd(out, 1.0f);
    else if (threadIdx.x == 0)
        *out += float(kThreads);
}

// Hands tiles through one buffer, from the lower half of the block to the
// upper. Arriving: how many threads the barriers count.
template <int kArriving, bool kReleaseEarly>
__global__ void ring(float *out) {
    __shared__ float tile[kThreads / 2];
    __shared__ Barrier ready;
    __shared__ Barrier filled;
    if (threadIdx.x == 0) {
        init(&ready, kArriving);
        init(&filled, kArriving);
    }
    __syncthreads();
    const unsigned half = kThreads / 2;
    if (threadIdx.x < half) {
        for (int t = 0; t < kTiles; ++t) {
            ready.wait(ready.arrive());
            tile[threadIdx.x] = float(t * half + threadIdx.x);
            (void)filled.arrive();
        }
    } else {
        (void)ready.arrive();
        float sum = 0.0f;
        for (int t = 0; t < kTiles; ++t) {
            filled.wait(filled.arrive());
            if (kReleaseEarly && t + 1 < kTiles) (void)ready.arrive();
            sum += tile[threadIdx.x - half];
            if (!kReleaseEarly && t + 1 < kTiles) (void)ready.arrive();
        }
        out[blockIdx.x * half + threadIdx.x - half] = sum;
    }
}

// What goes wrong with bulk copies.
enum Fault {
    kNone,
    kNoHandBackFence,
    kNoHandBackBarrier,
    kNoFenceAfterInit,
    kNoBytes,
    kTooManyBytes,
    kUnaligned,
    kDoesNotWait,
    kPastInput
};
constexpr int kBulkElems = kThreads;

// Sums tiles that bulk copies bring through one buffer: out[i] becomes the sum
// of in[t * kBulkElems + i] over all tiles t.
template <Fault kFault>
__global__ void bulk(const float *in, float *out) {
    alignas(16) __shared__ float tile[kBulkElems];
    __shared__ Barrier filled;
    const bool isProducer = threadIdx.x == 0;
    const auto start = [&](int t) {
        constexpr int kOff = kFault == kNoBytes        ? -int(sizeof(tile))
                             : kFault == kTooManyBytes ? 16
                                                       : 0;
        const cuda::aligned_size_t<16> bytes(sizeof(tile));
        const int first =
            t * kBulkElems + (kFault == kUnaligned                      ? 1
                              : kFault == kPastInput && t + 1 == kTiles ? 4
                                                                        : 0);
        (void)cuda::device::barrier_arrive_tx(filled, 1, bytes + kOff);
        cuda::device::memcpy_async_tx(tile, in + first, bytes, filled);
    };
    if (isProducer) {
        init(&filled, 1);
        if (kFault != kNoFenceAfterInit)
            cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    __syncthreads();
    if (isProducer) start(0);
    float sum = 0.0f;
    for (int t = 0; t < kTiles; ++t) {
        if (kFault != kDoesNotWait) filled.wait_parity(t % 2);
        sum += tile[threadIdx.x];
        if (t + 1 == kTiles) break;
        if (kFault != kNoHandBackFence)
            cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        if (kFault != kNoHandBackBarrier) __syncthreads();
        if (isProducer) start(t + 1);
    }
    out[threadIdx.x] = sum;
}

// Waits for the parity of a phase that nobody completes.
__global__ void waitForNobody(float *out) {
    __shared__ Barrier never;
    if (threadIdx.x == 0) init(&never, kThreads + 1);
    __syncthreads();
    (void)never.arrive();
    never.wait_parity(false);
    *out = 1.0f;
}

// Waits without a wait for a flag that nobody sets.
__global__ void spin(float *out) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    while (*static_cast<volatile int *>(&flag) == 0) {
    }
    *out = 1.0f;
}

__global__ void divergentBranches(float *out) {
    if (threadIdx.x < kThreads / 2)
        __syncthreads();
    else
        __syncthreads();
    *out = 1.0f;
}

__global__ void divergentReturn(float *out) {
    if (threadIdx.x == 7) return;
    __syncthreads();
    *out = 1.0f;
}

// Stores one element too many of out[kBlocks * kThreads], or reads one too many
// of a shared array.
__global__ void pastGlobal(float *out) {
    out[blockIdx.x * kThreads + threadIdx.x + 1] = 1.0f;
}

__global__ void pastShared(float *out) {
    __shared__ float values[kThreads];
    values[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x + 1];
}

// Thread 3 stores nothing, but is read. g++ has another kind of name for the
// variable of each of these kernels.
#define UNINITIALISED(out)                            \
    __shared__ float values[kThreads];                \
    if (threadIdx.x != 3) values[threadIdx.x] = 1.0f; \
    __syncthreads();                                  \
    atomicAdd(out, values[threadIdx.x])

__global__ void uninitialised(float *out) { UNINITIALISED(out); }
static __global__ void uninitialisedStatic(float *out) { UNINITIALISED(out); }
namespace {
__global__ void uninitialisedUnnamed(float *out) { UNINITIALISED(out); }
}  // namespace
namespace named {
__global__ void uninitialised(float *out) { UNINITIALISED(out); }
template <int kFirst>
static __global__ void uninitialisedTemplate(float *out) {
    UNINITIALISED(out + kFirst);
}
}  // namespace named
const std::map<std::string, void (*)(float *)> kUninitialised = {
    {"uninitialised", uninitialised},
    {"uninitialised-static", uninitialisedStatic},
    {"uninitialised-unnamed", uninitialisedUnnamed},
    {"uninitialised-named", named::uninitialised},
    {"uninitialised-template", named::uninitialisedTemplate<0>}};

// Sums the lanes' ranks in every warp, and checks votes and the other shuffles.
__global__ void shuffles(float *out) {
    const unsigned lane = threadIdx.x % 32;
    int sum = int(lane);
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
    const int first = __shfl_sync(~0u, sum, 0);
    const int up = __shfl_up_sync(~0u, int(lane), 1);
    const int flipped = __shfl_xor_sync(~0u, int(lane), 5);
    const int inHalf = __shfl_down_sync(~0u, int(lane), 1, 16);
    const unsigned odd = __ballot_sync(~0u, lane % 2);
    bool right = first == 31 * 16 && up == (lane == 0 ? 0 : int(lane) - 1) &&
                 flipped == int(lane ^ 5) &&
                 inHalf == (lane % 16 == 15 ? int(lane) : int(lane) + 1) &&
                 odd == 0xaaaaaaaau && __any_sync(~0u, lane == 9) &&
                 !__all_sync(~0u, lane != 9) && __all_sync(~0u, lane < 32);
    // Half a warp by itself, and a mask with lanes that have left.
    if (lane < 16) right = right && __shfl_sync(0xffffu, int(lane), 3) == 3;
    if (lane < 16) return;
    right = right && __shfl_sync(~0u, int(lane), 20) == 20;
    out[blockIdx.x * kThreads + threadIdx.x] = right ? 1.0f : 0.0f;
}

__device__ unsigned ticket;

// The last block to finish adds up what all blocks stored.
template <bool kSound>
__global__ void lastBlock(float *out, float *partials) {
    if (threadIdx.x != 0) return;
    partials[blockIdx.x] = float(blockIdx.x + 1);
    if (kSound) __threadfence();
    const bool last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
    if (!last) return;
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partials[b];
    *out = sum;
}

// Every thread hands a number to the thread before it and raises a flag. The
// fence belongs between the two.
template <bool kSound>
__global__ void message(float *out) {
    __shared__ float number[kThreads];
    __shared__ int flag[kThreads];
    flag[threadIdx.x] = 0;
    __syncthreads();
    if (!kSound) __threadfence_block();
    number[threadIdx.x] = float(threadIdx.x);
    if (kSound) __threadfence_block();
    atomicExch(&flag[threadIdx.x], 1);
    const unsigned next = (threadIdx.x + 1) % kThreads;
    while (atomicAdd(&flag[next], 0) == 0) {
    }
    __threadfence_block();
    out[blockIdx.x * kThreads + threadIdx.x] =
        number[threadIdx.x] + number[next];
}

// Stores every thread's place in a grid of three dimensions.
__global__ void dimensions(float *out) {
    const unsigned block =
        (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread =
        (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        float(block * 1000 + thread);
}

// The cases with bulk copies, by name.
struct BulkCase {
    const char *name;
    void (*kernel)(const float *in, float *out);
};
constexpr BulkCase kBulkCases[] = {
    {"bulk", bulk<kNone>},
    {"bulk-no-fence", bulk<kNoHandBackFence>},
    {"bulk-no-barrier", bulk<kNoHandBackBarrier>},
    {"bulk-no-first-fence", bulk<kNoFenceAfterInit>},
    {"bulk-no-bytes", bulk<kNoBytes>},
    {"bulk-too-many-bytes", bulk<kTooManyBytes>},
    {"bulk-unaligned", bulk<kUnaligned>},
    {"bulk-does-not-wait", bulk<kDoesNotWait>},
    {"bulk-past-input", bulk<kPastInput>}};

constexpr int kElems = kBlocks * kThreads;
constexpr size_t kBytes = kElems * sizeof(float);
float *d_out;
float *d_partials;
float *d_in;
float out[kElems];

// Whether each of out[0, n), brought from the device, is want(i).
template <typename Want>
bool holds(int n, Want want) {
    cudaMemcpy(out, d_out, kBytes, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) {
        if (out[i] == float(want(i))) continue;
        std::fprintf(stderr, "FAILED: %d: got %g, want %g\n", i, out[i],
                     float(want(i)));
        return false;
    }
    return true;
}

int neighbours(int i) { return i % kThreads + (i + 1) % kThreads; }
int warpNeighbours(int i) { return i % kThreads + (i % kThreads ^ 1); }
int bulkSum(int i) {
    return kTiles * i + kBulkElems * kTiles * (kTiles - 1) / 2;
}
int ringSum(int i) {
    const int half = kThreads / 2;
    return half * kTiles * (kTiles - 1) / 2 + kTiles * (i % half);
}

// Whether an event's time is NaN once both were recorded, and refused before.
bool timeIsNan() {
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    float ms = 0.0f;
    bool right = cudaEventElapsedTime(&ms, start, stop) != cudaSuccess;
    cudaEventRecord(start);
    cudaEventRecord(stop);
    right = right && cudaEventElapsedTime(&ms, start, stop) == cudaSuccess &&
            std::isnan(ms);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return right;
}

// Counts its calls, in a static variable of its own, and launches.
int countLaunches() {
    static int launches = 0;
    count<true><<<1, kThreads>>>(d_out);
    return ++launches;
}

// Runs the case of this name; returns whether its answer was right.
bool runCase(const std::string &name) {
    if (name == "neighbour") {
        neighbour<true><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, neighbours);
    }
    if (name == "race") {
        neighbour<false><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, neighbours);
    }
    if (name == "warp-neighbour") {
        warpNeighbour<true><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, warpNeighbours);
    }
    if (name == "warp-race") {
        warpNeighbour<false><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, warpNeighbours);
    }
    if (name == "count") {
        count<true><<<kBlocks, kThreads>>>(d_out);
        return holds(1, [](int) { return kElems; });
    }
    if (name == "block-race") {
        count<false><<<kBlocks, kThreads>>>(d_out);
        return holds(1, [](int) { return kElems; });
    }
    if (name == "ring") {
        ring<kThreads, false><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems / 2, ringSum);
    }
    if (name == "ring-early") {
        ring<kThreads, true><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems / 2, ringSum);
    }
    for (const BulkCase &bulkCase : kBulkCases)
        if (name == bulkCase.name) {
            const auto kernel = bulkCase.kernel;
            kernel<<<1, kThreads>>>(d_in, d_out);
            return holds(kBulkElems, bulkSum);
        }
    if (name == "shuffles") {
        shuffles<<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, [](int i) { return i % 32 >= 16; });
    }
    if (name == "message") {
        message<true><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, neighbours);
    }
    if (name == "fence-too-early") {
        message<false><<<kBlocks, kThreads>>>(d_out);
        return holds(kElems, neighbours);
    }
    if (name == "last-block") {
        lastBlock<true><<<kBlocks, kThreads>>>(d_out, d_partials);
        return holds(1, [](int) { return kBlocks * (kBlocks + 1) / 2; });
    }
    if (name == "no-fence") {
        lastBlock<false><<<kBlocks, kThreads>>>(d_out, d_partials);
        return holds(1, [](int) { return kBlocks * (kBlocks + 1) / 2; });
    }
    if (name == "dimensions") {
        dimensions<<<dim3(2, 1, 2), dim3(4, 3, 5)>>>(d_out);
        return holds(240, [](int i) { return i / 60 * 1000 + i % 60; });
    }
    const auto uninitialisedCase = kUninitialised.find(name);
    if (uninitialisedCase != kUninitialised.end()) {
        const auto kernel = uninitialisedCase->second;
        kernel<<<1, kThreads>>>(d_out);
        return holds(1, [](int) { return kThreads - 1; });
    }
    if (name == "ring-deadlock") {
        ring<kThreads + 1, false><<<kBlocks, kThreads>>>(d_out);
    } else if (name == "parity-deadlock") {
        waitForNobody<<<kBlocks, kThreads>>>(d_out);
    } else if (name == "spin") {
        spin<<<kBlocks, kThreads>>>(d_out);
    } else if (name == "divergent-branches") {
        divergentBranches<<<kBlocks, kThreads>>>(d_out);
    } else if (name == "divergent-return") {
        divergentReturn<<<kBlocks, kThreads>>>(d_out);
    } else if (name == "past-global") {
        pastGlobal<<<kBlocks, kThreads>>>(d_out);
    } else if (name == "past-shared") {
        pastShared<<<1, kThreads>>>(d_out);
    } else if (name == "fresh-memory") {
        cudaMemcpy(out, d_partials, kBlocks * sizeof(float),
                   cudaMemcpyDeviceToHost);
        return std::isnan(out[0]) && std::isnan(out[kBlocks - 1]);
    } else if (name == "bad-launch") {
        neighbour<true><<<kBlocks, 2048>>>(d_out);
        return cudaGetLastError() == cudaErrorInvalidConfiguration &&
               cudaGetLastError() == cudaSuccess;
    } else if (name == "copy-direction") {
        return cudaMemcpy(out, d_out, kBytes, cudaMemcpyHostToDevice) !=
               cudaSuccess;
    } else if (name == "copy-size") {
        return cudaMemcpy(out, d_out, kBytes + 1, cudaMemcpyDeviceToHost) !=
               cudaSuccess;
    } else if (name == "time") {
        return timeIsNan();
    } else if (name == "host-static") {
        return countLaunches() == 1 && countLaunches() == 2;
    } else if (name == "leak") {
        cudaMalloc(&d_out, kBytes);
        return true;
    }
    std::fprintf(stderr, "planted_faults: \"%s\" is no case, or had no fault\n",
                 name.c_str());
    return false;
}

int main(int argc, char **argv) {
    cudaMalloc(&d_out, kBytes);
    cudaMalloc(&d_partials, kBlocks * sizeof(float));
    cudaMalloc(&d_in, kTiles * kBulkElems * sizeof(float));
    float in[kTiles * kBulkElems];
    for (int i = 0; i < kTiles * kBulkElems; ++i) in[i] = float(i);
    cudaMemcpy(d_in, in, sizeof(in), cudaMemcpyHostToDevice);
    cudaMemset(d_out, 0, kBytes);
    const bool right = runCase(argc > 1 ? argv[1] : "");
    cudaFree(d_in);
    cudaFree(d_partials);
    cudaFree(d_out);
    return right ? 0 : 1;
}
