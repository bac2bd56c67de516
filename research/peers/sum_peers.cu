// SPDX-License-Identifier: MIT
//
// The last rung of atomics/sum_ladder.cu beside the libraries
//
// Is the lesson's fastest sum as fast as the ones that people use? One sum of n
// floats, from 2^12 to 2^28, by four contenders:
//
//   last    sumLastBlock, the lesson's own code: this file includes the lesson
//   cub     cub::DeviceReduce::Sum
//   thrust  thrust::reduce
//   read    readOnly, which reads and does nothing else: the limit
//
// Held equal: the buffer, the process, and the moment: the contenders take
// turns, sample by sample, and who begins changes from sample to sample. None
// of them needs a zeroed total, so no reset is timed and every total holds a
// NaN before it is written. The timed data is ones, and every timed answer is
// checked bit for bit: past 2^24, where a float cannot count in ones, each
// contender adds whole tiles of at least 1024 ones, whose sum stays exact.
//
// A sample is the mean of kNodes launches, recorded in a CUDA graph and
// replayed, so that the host's part in a launch is out of it. Warm: all nodes
// sum the same elements, which stay in L2 as far as they fit. Cold: each node
// sums elements of its own place, and other data is read between two replays.
// thrust::reduce returns its answer to the host and cannot be recorded, so a
// table of its own compares calls that do: launch, copy back, wait.
//
// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o sum_peers sum_peers.cu
// Run:   ./sum_peers
// Exit:  0 every check held; 1 a check or a CUDA call failed.

#include <chrono>
#include <vector>

#include <cub/device/device_reduce.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>

#define main sumLadderMain
#include "../../atomics/sum_ladder.cu"
#undef main

// Launches a graph, and samples of each contender.
constexpr int kNodes = 20;
constexpr int kReplays = 31;
static_assert(kNodes <= kLaunches, "the lesson's totals would not suffice");

// Elements a sum. The buffer holds the largest.
constexpr int kNumPeerSizes = 17;
constexpr size_t kPeerSizes[kNumPeerSizes] = {
    4096,     8192,     16384,    32768,     65536,    131072,
    262144,   524288,   1048576,  2097152,   4194304,  8388608,
    16777216, 33554432, 67108864, 134217728, 268435456};
constexpr size_t kBufferElems = 268435456;
static_assert(kPeerSizes[kNumPeerSizes - 1] == kBufferElems,
              "the buffer would be shorter or longer than the largest sum");

// Places of the cold sums lie at least this far apart, and this much other data
// is read to empty the L2: several times as much as one holds.
constexpr size_t kPlaceElems = 4194304;
constexpr size_t kOtherElems = 134217728;

// The contenders of the graphs, and of the calls.
constexpr int kLastPeer = 0;
constexpr int kCubPeer = 1;
constexpr int kThirdPeer = 2;
constexpr int kNumPeers = 3;
constexpr const char *kGraphPeers[kNumPeers] = {"last", "cub", "read"};
constexpr const char *kCallPeers[kNumPeers] = {"last", "cub", "thrust"};

// What the tables are labelled with.
constexpr const char *kGraphColumns[] = {
    "n",       "last_us", "last_min", "last_max", "cub_us",
    "cub_min", "cub_max", "read_us",  "read_min", "read_max"};
constexpr const char *kCallColumns[] = {
    "n",       "last_us", "last_min",  "last_max",   "cub_us",
    "cub_min", "cub_max", "thrust_us", "thrust_min", "thrust_max"};
constexpr const char *kDistinctColumns[] = {"n", "last", "cub", "thrust"};
constexpr const char *kRatioColumns[] = {"n",
                                         "warm_cub/last",
                                         "warm_ranges",
                                         "warm_limit_%",
                                         "cold_cub/last",
                                         "cold_ranges",
                                         "cold_limit_%",
                                         "call_cub/last",
                                         "call_thrust/last"};

// What the contenders share: the lesson's buffers, CUB's scratch memory, other
// data, and the stream of all graphs.
struct Bench {
    Buffers b;
    void *scratch;
    size_t scratchBytes;
    float *other;
    cudaStream_t stream;
};

// The samples of one size: microseconds, and whether each answer was right.
struct Row {
    Timing times[kNumPeers];
    bool ok[kNumPeers];
};

// Launches one sum of in[0, n) on a stream, by the lesson, by CUB, or by the
// kernel that only reads.
void launchPeer(int peer, const Bench &bench, const float *in, float *d_total,
                size_t n, cudaStream_t stream) {
    const Buffers &b = bench.b;
    if (peer == kLastPeer) {
        const unsigned blocks = gridOf(kLast, n, b.maxBlocks);
        sumLastBlock<<<blocks, kThreadsPerBlock, 0, stream>>>(
            in, d_total, n, b.partials, b.ticket);
    } else if (peer == kCubPeer) {
        size_t bytes = bench.scratchBytes;
        CUDA_CHECK(cub::DeviceReduce::Sum(bench.scratch, bytes, in, d_total, n,
                                          stream));
    } else {
        const unsigned blocks = gridOf(kLimit, n, b.maxBlocks);
        readOnly<<<blocks, kThreadsPerBlock, 0, stream>>>(in, d_total, n);
    }
}

// Records launch(node), kNodes times, to be replayed.
template <typename Launch>
cudaGraphExec_t record(const Bench &bench, Launch launch) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_CHECK(
        cudaStreamBeginCapture(bench.stream, cudaStreamCaptureModeThreadLocal));
    for (int node = 0; node < kNodes; ++node) launch(node);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaStreamEndCapture(bench.stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    return exec;
}

// Replays a graph once; returns the microseconds of one of its nodes.
float replay(const Bench &bench, cudaGraphExec_t exec) {
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start, bench.stream));
    CUDA_CHECK(cudaGraphLaunch(exec, bench.stream));
    CUDA_CHECK(cudaEventRecord(stop, bench.stream));
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

// Makes what a sum writes a NaN, or zero where only a NaN is ever written.
void prepare(const Bench &bench, int value) {
    const Buffers &b = bench.b;
    CUDA_CHECK(
        cudaMemsetAsync(b.totals, value, kNodes * sizeof(float), bench.stream));
    CUDA_CHECK(cudaMemsetAsync(b.partials, 0xFF, b.maxBlocks * sizeof(float),
                               bench.stream));
}

// Replays the graphs of all contenders in turn, kReplays times after one to
// warm up, and checks every total of every replay.
Row sample(const Bench &bench, size_t n, bool cold) {
    const size_t step = std::max(n, kPlaceElems);
    cudaGraphExec_t graphs[kNumPeers];
    for (int peer = 0; peer < kNumPeers; ++peer)
        graphs[peer] = record(bench, [&](int node) {
            const size_t place = cold ? node * step % kBufferElems : 0;
            launchPeer(peer, bench, bench.b.in + place, bench.b.totals + node,
                       n, bench.stream);
        });
    Row row;
    std::fill(row.ok, row.ok + kNumPeers, true);
    std::vector<float> samples[kNumPeers];
    for (int turn = -1; turn < kReplays; ++turn) {
        for (int k = 0; k < kNumPeers; ++k) {
            const int peer = (turn + 1 + k) % kNumPeers;
            const bool reads = peer == kThirdPeer;
            prepare(bench, reads ? 0 : 0xFF);
            if (cold)
                launchPeer(kThirdPeer, bench, bench.other, bench.b.totals,
                           kOtherElems, bench.stream);
            const float us = replay(bench, graphs[peer]);
            if (turn >= 0) samples[peer].push_back(us);
            float totals[kNodes];
            CUDA_CHECK(cudaMemcpy(totals, bench.b.totals, sizeof(totals),
                                  cudaMemcpyDeviceToHost));
            // Ones have no NaN among them: the limit must have found none.
            const float want = reads ? 0.0f : float(n);
            for (float total : totals)
                row.ok[peer] = row.ok[peer] &&
                               checkExact(kGraphPeers[peer], n, total, want);
        }
    }
    for (int peer = 0; peer < kNumPeers; ++peer) {
        row.times[peer] = summary(samples[peer]);
        CUDA_CHECK(cudaGraphExecDestroy(graphs[peer]));
    }
    return row;
}

// One sum of b.in[0, n) that is brought back to the host.
float call(int peer, const Bench &bench, size_t n) {
    const Buffers &b = bench.b;
    if (peer == kThirdPeer) {
        const thrust::device_ptr<float> first(b.in);
        return thrust::reduce(thrust::device, first, first + n, 0.0f);
    }
    launchPeer(peer, bench, b.in, b.totals, n, nullptr);
    CUDA_CHECK(cudaGetLastError());
    float total;
    CUDA_CHECK(
        cudaMemcpy(&total, b.totals, sizeof(total), cudaMemcpyDeviceToHost));
    return total;
}

// Times such calls on the host's clock, all contenders in turn, and checks
// every answer.
Row sampleCalls(const Bench &bench, size_t n) {
    Row row;
    std::fill(row.ok, row.ok + kNumPeers, true);
    std::vector<float> samples[kNumPeers];
    for (int turn = -1; turn < kReplays; ++turn) {
        for (int k = 0; k < kNumPeers; ++k) {
            const int peer = (turn + 1 + k) % kNumPeers;
            poison(bench.b);
            CUDA_CHECK(cudaDeviceSynchronize());
            const auto start = std::chrono::steady_clock::now();
            const float total = call(peer, bench, n);
            const std::chrono::duration<float, std::micro> us =
                std::chrono::steady_clock::now() - start;
            if (turn >= 0) samples[peer].push_back(us.count());
            row.ok[peer] = checkExact(kCallPeers[peer], n, total, float(n)) &&
                           row.ok[peer];
        }
    }
    for (int peer = 0; peer < kNumPeers; ++peer)
        row.times[peer] = summary(samples[peer]);
    return row;
}

// Prints a row of medians and ranges. Returns how many contenders failed.
template <int kColumns>
int printRow(const char *const (&labels)[kColumns], size_t n, const Row &row) {
    int c = 0;
    int failures = 0;
    printCell(labels[c++], std::to_string(n));
    for (int peer = 0; peer < kNumPeers; ++peer) {
        const Timing &t = row.times[peer];
        for (float us : {t.median, t.min, t.max})
            printCell(labels[c++], figure("%.4f", us, row.ok[peer]));
        failures += !row.ok[peer];
    }
    std::printf("\n");
    return failures;
}

// Times every size, warm or cold, and prints the table's rows. Returns how many
// contenders failed, over all sizes.
int sweepGraphs(const Bench &bench, bool cold, Row (&rows)[kNumPeerSizes]) {
    printLabels(kGraphColumns);
    int failures = 0;
    for (int s = 0; s < kNumPeerSizes; ++s) {
        rows[s] = sample(bench, kPeerSizes[s], cold);
        failures += printRow(kGraphColumns, kPeerSizes[s], rows[s]);
    }
    return failures;
}

// The same for the calls.
int sweepCalls(const Bench &bench, Row (&rows)[kNumPeerSizes]) {
    // Table call: rows kPeerSizes, columns kCallColumns.
    std::printf("\n== call: a sum brought back to the host, us a call ==\n");
    printLabels(kCallColumns);
    int failures = 0;
    for (int s = 0; s < kNumPeerSizes; ++s) {
        rows[s] = sampleCalls(bench, kPeerSizes[s]);
        failures += printRow(kCallColumns, kPeerSizes[s], rows[s]);
    }
    return failures;
}

// Counts the different answers of kDetRuns calls on values that round, and
// prints the table. Returns how many contenders were far from the reference.
int countAnswers(const Bench &bench) {
    fillInexact<<<blocksOf(kBufferElems), kThreadsPerBlock>>>(bench.b.in,
                                                              kBufferElems);
    CUDA_CHECK(cudaGetLastError());
    // Table distinct: rows kPeerSizes, columns kDistinctColumns.
    std::printf("\n== distinct: answers of values that round ==\n");
    std::printf("runs: %d\n", kDetRuns);
    printLabels(kDistinctColumns);
    int failures = 0;
    for (size_t n : kPeerSizes) {
        const double want = inexactSum(n);
        const double tolerance =
            4 * std::ldexp(1.0, -23) * std::sqrt(double(n)) * want;
        printCell(kDistinctColumns[0], std::to_string(n));
        for (int peer = 0; peer < kNumPeers; ++peer) {
            float totals[kDetRuns];
            bool ok = true;
            for (float &total : totals) {
                poison(bench.b);
                total = call(peer, bench, n);
                ok = checkNear(kCallPeers[peer], n, total, want, tolerance) &&
                     ok;
            }
            printCell(kDistinctColumns[1 + peer],
                      figure("%.0f", distinctResults(totals, kDetRuns), ok));
            failures += !ok;
        }
        std::printf("\n");
    }
    return failures;
}

// How the ranges of two contenders lie: the first is faster in every sample,
// slower in every sample, or they overlap.
const char *ranges(const Timing &t, const Timing &rival) {
    if (t.max < rival.min) return "faster";
    return rival.max < t.min ? "slower" : "overlap";
}

// Prints how the lesson's rung compares: the rivals' medians over its own, how
// its range lies to CUB's, and percent of the limit.
void printRatios(const Row (&warm)[kNumPeerSizes],
                 const Row (&cold)[kNumPeerSizes],
                 const Row (&calls)[kNumPeerSizes]) {
    // Table ratios: rows kPeerSizes, columns kRatioColumns.
    std::printf("\n== ratios: above 1, the last rung is faster ==\n");
    printLabels(kRatioColumns);
    const auto ratio = [](const char *format, double factor, const Row &row,
                          int peer) {
        return figure(
            format,
            factor * row.times[peer].median / row.times[kLastPeer].median,
            row.ok[peer] && row.ok[kLastPeer]);
    };
    for (int s = 0; s < kNumPeerSizes; ++s) {
        int c = 0;
        printCell(kRatioColumns[c++], std::to_string(kPeerSizes[s]));
        for (const Row *row : {&warm[s], &cold[s]}) {
            printCell(kRatioColumns[c++], ratio("%.3f", 1, *row, kCubPeer));
            printCell(kRatioColumns[c++],
                      ranges(row->times[kLastPeer], row->times[kCubPeer]));
            printCell(kRatioColumns[c++], ratio("%.2f", 100, *row, kThirdPeer));
        }
        printCell(kRatioColumns[c++], ratio("%.3f", 1, calls[s], kCubPeer));
        printCell(kRatioColumns[c++], ratio("%.3f", 1, calls[s], kThirdPeer));
        std::printf("\n");
    }
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
    if (cudaGetLastError() != cudaSuccess) {
        std::fprintf(stderr,
                     "This program has no code for the %s (compute capability "
                     "%d.%d): build it with nvcc -arch=native.\n",
                     device.name, device.major, device.minor);
        return EXIT_FAILURE;
    }
    std::printf("The last rung of sum_ladder beside CUB and thrust\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);
    std::printf("cub: %d.%d.%d\n", CUB_MAJOR_VERSION, CUB_MINOR_VERSION,
                CUB_SUBMINOR_VERSION);

    Bench bench = {};
    Buffers &b = bench.b;
    b.room = kBufferElems;
    b.maxBlocks = kBlocksPerSm * device.multiProcessorCount;
    CUDA_CHECK(cudaMalloc(&b.in, kBufferElems * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.totals, kLaunches * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.partials, b.maxBlocks * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&b.ticket, sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&bench.other, kOtherElems * sizeof(float)));
    CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bench.scratchBytes, b.in,
                                      b.totals, kBufferElems));
    CUDA_CHECK(cudaMalloc(&bench.scratch, bench.scratchBytes));
    CUDA_CHECK(cudaMemset(b.ticket, 0, sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(bench.other, 0, kOtherElems * sizeof(float)));
    fillOnes(b, kBufferElems);
    CUDA_CHECK(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaDeviceSynchronize());

    const cudaGraphExec_t empty =
        record(bench, [&](int) { emptyKernel<<<1, 1, 0, bench.stream>>>(); });
    std::vector<float> samples;
    for (int turn = 0; turn < kReplays; ++turn)
        samples.push_back(replay(bench, empty));
    CUDA_CHECK(cudaGraphExecDestroy(empty));
    const Timing floor = summary(samples);
    std::printf("\n== floor: an empty kernel in the same kind of graph ==\n");
    std::printf("launches: %d\n", kNodes);
    std::printf("samples: %d\n", kReplays);
    std::printf("floor_us: %.4f\n", floor.median);
    std::printf("floor_min: %.4f\n", floor.min);
    std::printf("floor_max: %.4f\n", floor.max);

    // Rows of tables that are needed again for the ratios.
    static Row warm[kNumPeerSizes];
    static Row cold[kNumPeerSizes];
    static Row calls[kNumPeerSizes];
    // Table warm: rows kPeerSizes, columns kGraphColumns.
    std::printf("\n== warm: the same elements again and again, us a sum ==\n");
    int failures = sweepGraphs(bench, false, warm);
    // Table cold: rows kPeerSizes, columns kGraphColumns.
    std::printf("\n== cold: other elements each time, us a sum ==\n");
    failures += sweepGraphs(bench, true, cold);
    failures += sweepCalls(bench, calls);
    failures += countAnswers(bench);
    printRatios(warm, cold, calls);

    CUDA_CHECK(cudaStreamDestroy(bench.stream));
    CUDA_CHECK(cudaFree(bench.scratch));
    CUDA_CHECK(cudaFree(bench.other));
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
