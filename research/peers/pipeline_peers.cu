// SPDX-License-Identifier: MIT
//
// The bulk copies of barrier_pipeline/bulk_pipeline.cu beside the libraries
//
// Is the lesson's tile loop as fast as what people use for such work, and as
// the other ways to copy ahead? The work is the lesson's, kIters dependent
// fused multiply-adds on each of n floats, by six contenders:
//
//   bulk    pipelineBulk, the lesson's own code: this file includes the lesson
//   plain   pipelinePlain, the lesson's best kernel without shared memory
//   guide   cuda::pipeline shared by the block, two stages: the pattern of the
//           CUDA programming guide
//   own     cuda::pipeline of each thread's own, which copies what it will use
//   cub     cub::DeviceTransform
//   thrust  thrust::transform
//
// Held equal: the buffers, the process, and the moment: the contenders take
// turns, sample by sample, and who begins changes from sample to sample. Every
// output is poisoned before each sample and checked after it, bit for bit.
//
// A sample is the mean of kNodes launches, recorded in a CUDA graph and
// replayed, so that the host's part in a launch is out of it.
//
// Needs: compute capability 9.0 or newer, CUDA 12.5 or newer, C++17.
// Build:
//   nvcc -std=c++17 -O3 -arch=native -o pipeline_peers pipeline_peers.cu
// Run:   ./pipeline_peers
// Exit:  0 every check held; 1 a check or a CUDA call failed; 77 the GPU has
//        no bulk copies.

#include <vector>

#include <cooperative_groups.h>
#include <cub/device/device_transform.cuh>
#include <cuda/pipeline>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

#define main bulkPipelineMain
#include "../../barrier_pipeline/bulk_pipeline.cu"
#undef main

// Launches a graph, samples of each contender, and the rest before each, as in
// the lesson.
constexpr int kNodes = 10;
constexpr int kReplays = 15;
constexpr std::chrono::milliseconds kPeerPause(10);

// The guide's pattern: stages, float4s a stage, threads; blocks an SM.
constexpr int kGuideStages = 2;
constexpr int kGuideVectors = 512;
constexpr int kGuideThreads = 128;
constexpr int kGuideBlocksPerSm = 12;

// A pipeline a thread: float4s, threads, blocks an SM.
constexpr int kOwnVectors = 8;
constexpr int kOwnThreads = 64;
constexpr int kOwnBlocksPerSm = 16;

// The contenders, and what the tables are labelled with.
enum Peer { kBulkPeer, kPlainPeer, kGuide, kOwn, kCub, kThrust };
constexpr int kNumPeers = 6;
constexpr const char *kPeerNames[kNumPeers] = {"bulk", "plain", "guide",
                                               "own",  "cub",   "thrust"};
constexpr const char *kPeerRows[kNumSizes * kNumPeers] = {
    "bulk@4Mi",   "plain@4Mi",   "guide@4Mi",   "own@4Mi",     "cub@4Mi",
    "thrust@4Mi", "bulk@64Mi",   "plain@64Mi",  "guide@64Mi",  "own@64Mi",
    "cub@64Mi",   "thrust@64Mi", "bulk@256Mi",  "plain@256Mi", "guide@256Mi",
    "own@256Mi",  "cub@256Mi",   "thrust@256Mi"};
constexpr const char *kPeerColumns[] = {"peer@size", "us", "min_us", "max_us"};
constexpr int kNumRatioRows = 9;
constexpr const char *kRatioRows[kNumRatioRows] = {
    "8@4Mi",    "8@64Mi",  "8@256Mi",  "64@4Mi",   "64@64Mi",
    "64@256Mi", "256@4Mi", "256@64Mi", "256@256Mi"};
constexpr const char *kRatioColumns[] = {
    "iters@size", "plain/bulk",  "guide/bulk", "own/bulk",
    "cub/bulk",   "thrust/bulk", "best_rival", "ranges"};

// The work on one element, as a library takes it.
template <int kIters>
struct Chain {
    __host__ __device__ float operator()(float x) const {
        for (int i = 0; i < kIters; ++i) x = fmaf(x, kMul, kAdd);
        return x;
    }
};

// The pattern of the CUDA C++ Programming Guide 13.0, section "Multi-Stage
// Asynchronous Data Copies using cuda::pipeline": the block keeps copies of
// kGuideStages tiles under way, and computes the one that has come. Each
// operation on the pipeline is the whole block's; all threads reach it.
// Launch: kGuideThreads threads, at most as many blocks as tiles.
template <int kIters>
__global__ void __launch_bounds__(kGuideThreads, kGuideBlocksPerSm)
    pipelineGuide(const float4 *in, float4 *out, unsigned vectors) {
    constexpr int kTile = kGuideVectors;
    __shared__ float4 buffers[kGuideStages][kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__
        cuda::pipeline_shared_state<cuda::thread_scope_block, kGuideStages>
            state;
    const auto block = cooperative_groups::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    const unsigned tiles = numTiles(vectors, kTile);
    unsigned fetch = blockIdx.x;
    int fetchStage = 0;
    int stage = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (; fetch < tiles && fetch < tile + kGuideStages * gridDim.x;
             fetch += gridDim.x) {
            pipeline.producer_acquire();
            const cuda::aligned_size_t<16> bytes(
                tileCount(fetch, kTile, vectors) * sizeof(float4));
            cuda::memcpy_async(block, buffers[fetchStage], in + fetch * kTile,
                               bytes, pipeline);
            pipeline.producer_commit();
            fetchStage = (fetchStage + 1) % kGuideStages;
        }
        float4 x[kTile / kGuideThreads];
        pipeline.consumer_wait();
        takeTile<kGuideThreads>(buffers[stage], x);
        pipeline.consumer_release();
        fmaChains<kIters>(x);
        storeTile<kGuideThreads>(x, out + tile * kTile,
                                 tileCount(tile, kTile, vectors));
        stage = (stage + 1) % kGuideStages;
    }
}

// Every thread copies what it will compute itself into slots of its own, one
// chunk ahead, so nobody waits for anybody. As in pipelinePlain, one block is
// left with a ragged chunk. No barrier.
// Launch: kOwnThreads threads, any number of blocks.
template <int kIters>
__global__ void __launch_bounds__(kOwnThreads, kOwnBlocksPerSm)
    pipelineOwn(const float4 *in, float4 *out, unsigned vectors) {
    constexpr int kChunk = kOwnThreads * kOwnVectors;
    __shared__ float4 slots[kChunk];
    auto pipeline = cuda::make_pipeline();
    const unsigned stride = gridDim.x * kChunk;
    unsigned first = blockIdx.x * kChunk;
    bool isWhole = first + kChunk <= vectors;
    const auto fetch = [&] {
        pipeline.producer_acquire();
#pragma unroll
        for (int k = 0; k < kOwnVectors; ++k) {
            const int i = k * kOwnThreads + threadIdx.x;
            cuda::memcpy_async(&slots[i], in + first + i,
                               cuda::aligned_size_t<16>(sizeof(float4)),
                               pipeline);
        }
        pipeline.producer_commit();
    };
    if (isWhole) fetch();
    while (isWhole) {
        float4 x[kOwnVectors];
        pipeline.consumer_wait();
        takeTile<kOwnThreads>(slots, x);
        pipeline.consumer_release();
        float4 *const results = out + first;
        first += stride;
        isWhole = first + kChunk <= vectors;
        if (isWhole) fetch();
        fmaChains<kIters>(x);
        for (int k = 0; k < kOwnVectors; ++k)
            __stcs(results + k * kOwnThreads + threadIdx.x, x[k]);
    }
    for (unsigned i = first + threadIdx.x; i < vectors; i += kOwnThreads) {
        float4 x[1] = {in[i]};
        fmaChains<kIters>(x);
        out[i] = x[0];
    }
}

// Launches one contender on the first n elements.
template <int kIters>
void launchPeer(int peer, const Bench &b, size_t n, cudaStream_t stream) {
    const unsigned vectors = numVectors(n);
    const float4 *in = reinterpret_cast<const float4 *>(b.d_in);
    float4 *out = reinterpret_cast<float4 *>(b.d_out);
    const size_t sms = b.sms;
    unsigned grid;
    switch (peer) {
        case kBulkPeer:
            grid = gridOf<kIters>(kBulk, b, n);
            pipelineBulk<kIters>
                <<<grid, kBulkThreads, 0, stream>>>(in, out, vectors);
            break;
        case kPlainPeer:
            grid = gridOf<kIters>(kPlain, b, n);
            pipelinePlain<kIters>
                <<<grid, kPlainThreads, 0, stream>>>(in, out, vectors);
            break;
        case kGuide:
            grid = gridFor(vectors, kGuideVectors, sms * kGuideBlocksPerSm);
            pipelineGuide<kIters>
                <<<grid, kGuideThreads, 0, stream>>>(in, out, vectors);
            break;
        case kOwn:
            grid = gridFor(vectors, kOwnThreads * kOwnVectors,
                           sms * kOwnBlocksPerSm);
            pipelineOwn<kIters>
                <<<grid, kOwnThreads, 0, stream>>>(in, out, vectors);
            break;
        case kCub:
            CUDA_CHECK(cub::DeviceTransform::Transform(
                b.d_in, b.d_out, (long long)n, Chain<kIters>{}, stream));
            break;
        case kThrust:
            thrust::transform(thrust::cuda::par_nosync.on(stream), b.d_in,
                              b.d_in + n, b.d_out, Chain<kIters>{});
            break;
    }
}

// Records kNodes calls of launch(), to be replayed.
template <typename Launch>
cudaGraphExec_t record(cudaStream_t stream, Launch launch) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_CHECK(
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int node = 0; node < kNodes; ++node) launch();
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    return exec;
}

// Replays a graph once; returns the microseconds of one of its nodes.
float replay(cudaStream_t stream, cudaGraphExec_t exec) {
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start, stream));
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaEventRecord(stop, stream));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    return 1000 * ms / kNodes;
}

// Median, minimum and maximum of samples.
Timing summary(std::vector<float> samples) {
    std::sort(samples.begin(), samples.end());
    return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// The samples of one size and number of steps: microseconds, and whether every
// output was right. Left out: the size does not fit.
struct Samples {
    bool leftOut;
    Timing times[kNumPeers];
    bool ok[kNumPeers];
};

// Replays the graphs of all contenders in turn, kReplays times after one to
// warm up, and checks every output. rows are their labels.
template <int kIters>
Samples sample(const char *const *rows, const Bench &b, size_t n,
               cudaStream_t stream) {
    float want[kPeriod];
    pipelineCpu(want, kIters);
    cudaGraphExec_t graphs[kNumPeers];
    for (int peer = 0; peer < kNumPeers; ++peer)
        graphs[peer] =
            record(stream, [&] { launchPeer<kIters>(peer, b, n, stream); });
    Samples result = {};
    std::fill(result.ok, result.ok + kNumPeers, true);
    std::vector<float> samples[kNumPeers];
    for (int turn = -1; turn < kReplays; ++turn) {
        for (int k = 0; k < kNumPeers; ++k) {
            const int peer = (turn + 1 + k) % kNumPeers;
            CUDA_CHECK(cudaMemset(b.d_out, 0xFF, n * sizeof(float)));
            CUDA_CHECK(cudaDeviceSynchronize());
            std::this_thread::sleep_for(kPeerPause);
            const float us = replay(stream, graphs[peer]);
            if (turn >= 0) samples[peer].push_back(us);
            result.ok[peer] =
                checkOutput(rows[peer], kIters, b, want, n) && result.ok[peer];
        }
    }
    for (int peer = 0; peer < kNumPeers; ++peer) {
        result.times[peer] = summary(samples[peer]);
        CUDA_CHECK(cudaGraphExecDestroy(graphs[peer]));
    }
    return result;
}

// Times every size that fits and prints the table's rows. Returns how many
// contenders failed, over all sizes.
template <int kIters>
int sweepPeers(const Bench &b, cudaStream_t stream,
               Samples (&results)[kNumSizes]) {
    std::printf("iterations: %d\n", kIters);
    printLabels(kPeerColumns);
    int failures = 0;
    for (int s = 0; s < kNumSizes; ++s) {
        const char *const *rows = &kPeerRows[s * kNumPeers];
        Samples &result = results[s];
        result.leftOut = kSizes[s] > b.maxElems;
        if (!result.leftOut)
            result = sample<kIters>(rows, b, kSizes[s], stream);
        for (int peer = 0; peer < kNumPeers; ++peer) {
            const Timing &t = result.times[peer];
            int c = 0;
            printCell(kPeerColumns[c++], rows[peer]);
            for (float us : {t.median, t.min, t.max})
                printCell(
                    kPeerColumns[c++],
                    result.leftOut ? "-" : figure("%.2f", us, result.ok[peer]));
            std::printf("\n");
            failures += !result.leftOut && !result.ok[peer];
        }
    }
    return failures;
}

// How the ranges of two contenders lie: the first is faster in every sample,
// slower in every sample, or they overlap.
const char *ranges(const Timing &t, const Timing &rival) {
    if (t.max < rival.min) return "faster";
    return rival.max < t.min ? "slower" : "overlap";
}

// Prints how the bulk copies compare at one size and number of steps: every
// rival's median over their own, the best rival, and how the ranges lie to it.
void printRatios(const char *row, const Samples &samples) {
    int c = 0;
    printCell(kRatioColumns[c++], row);
    const Timing &bulk = samples.times[kBulkPeer];
    bool ok = samples.ok[kBulkPeer];
    int best = kPlainPeer;
    for (int peer = kPlainPeer; peer < kNumPeers; ++peer) {
        const Timing &t = samples.times[peer];
        printCell(kRatioColumns[c++],
                  samples.leftOut
                      ? "-"
                      : figure("%.3f", t.median / bulk.median,
                               samples.ok[kBulkPeer] && samples.ok[peer]));
        ok = ok && samples.ok[peer];
        if (t.median < samples.times[best].median) best = peer;
    }
    printCell(kRatioColumns[c++], ok ? kPeerNames[best] : "-");
    printCell(kRatioColumns[c++], ok ? ranges(bulk, samples.times[best]) : "-");
    std::printf("\n");
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
    std::printf("The bulk copies of bulk_pipeline beside CUB and thrust\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);
    std::printf("cub: %d.%d.%d\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION,
                CUB_SUBMINOR_VERSION);

    Bench b = {};
    b.sms = device.multiProcessorCount;
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
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    const cudaGraphExec_t empty =
        record(stream, [&] { emptyKernel<<<1, 1, 0, stream>>>(); });
    std::vector<float> samples;
    for (int turn = 0; turn < kReplays; ++turn)
        samples.push_back(replay(stream, empty));
    CUDA_CHECK(cudaGraphExecDestroy(empty));
    const Timing floor = summary(samples);
    std::printf("\n== floor: an empty kernel in the same kind of graph ==\n");
    std::printf("launches: %d\n", kNodes);
    std::printf("samples: %d\n", kReplays);
    std::printf("floor_us: %.4f\n", floor.median);
    std::printf("floor_min: %.4f\n", floor.min);
    std::printf("floor_max: %.4f\n", floor.max);

    int failures = !checkInput(b);
    if (failures == 0) {
        static Samples results[3][kNumSizes];
        // Table iters8: rows kPeerRows, columns kPeerColumns.
        std::printf("\n== iters8: memory sets the pace, us a launch ==\n");
        failures += sweepPeers<8>(b, stream, results[0]);
        // Table iters64: rows kPeerRows, columns kPeerColumns.
        std::printf("\n== iters64: both limits at once, us a launch ==\n");
        failures += sweepPeers<64>(b, stream, results[1]);
        // Table iters256: rows kPeerRows, columns kPeerColumns.
        std::printf(
            "\n== iters256: arithmetic sets the pace, us a launch ==\n");
        failures += sweepPeers<256>(b, stream, results[2]);
        // Table ratios: rows kRatioRows, columns kRatioColumns.
        std::printf("\n== ratios: above 1, the bulk copies are faster ==\n");
        printLabels(kRatioColumns);
        for (int row = 0; row < kNumRatioRows; ++row)
            printRatios(kRatioRows[row],
                        results[row / kNumSizes][row % kNumSizes]);
    }

    CUDA_CHECK(cudaStreamDestroy(stream));
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
