// SPDX-License-Identifier: MIT
//
// Day 26, part two: how many addresses make it fast?
//
// In atomics.cu the slow way has every thread add to one address. How many
// addresses does it take until atomic adds are fast, and does it matter where
// they lie? The same 2^22 adds, spread over k addresses, k from 1 to 16384:
//
//   adjacent    addAdjacent: neighbouring lanes to neighbouring floats
//   apart       addApart: the same, with 128 bytes from a float to the next
//   warp        addByWarp: a whole warp to one float, and the next warp to the
//               next float, 128 bytes on
//   int         addAdjacent on ints
//   shared      addShared: neighbouring lanes to neighbouring floats in shared
//               memory, k of them in every block
//   shared_int  addShared on ints
//
// Held equal: the grid, the threads, the adds a thread makes, and the launch.
// The only variable is the address that an add goes to, and between float and
// int the type of what stands there. In the shared columns it is the memory,
// too: a block fetches its totals before its adds and returns them after.
//
// One launch adds +2 everywhere, the next two -1 each, and so on, each to what
// the one before it left. Totals so stay integers of at most 2^24, which a
// float holds exactly in any order, and a lost add leaves its address wrong.
// The timed launches together add something, so that launches that did nothing
// would show. The blind spot: a lost +2 and two lost -1 at one address cancel
// out.
//
// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o contention contention.cu
// Run:   ./contention
// Exit:  0 every check held; 1 a check or a CUDA call failed.
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver 580.159.04,
// CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may be published
// is evidence/contention/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

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

// What launch number run adds everywhere.
constexpr int valueOf(int run) { return run % 3 == 0 ? 2 : -1; }
static_assert(kSamples * kTimedRuns % 3 != 0,
              "+2 and -1 would cancel: timed launches that add nothing would "
              "pass");

// Adds a launch, and the grid that makes them: as many a thread, each time a
// grid further on. Unsigned 32-bit numbers hold all of it.
constexpr unsigned kAdds = 4194304;
constexpr unsigned kThreadsPerBlock = 256;
constexpr unsigned kBlocks = 1024;
constexpr unsigned kThreads = kBlocks * kThreadsPerBlock;
static_assert(kAdds % kThreads == 0,
              "some threads would make one add more than others");
static_assert(kAdds <= (1u << 24) / 4,
              "totals would round: the check would test float precision");

// How many addresses the adds are spread over: k, in global memory and, up to
// one a thread, in every block's shared memory.
constexpr unsigned kAddresses[] = {1, 4, 16, 64, 256, 1024, 4096, 16384};
constexpr int kNumAddresses = int(std::size(kAddresses));
constexpr unsigned kMaxAddresses = 16384;
constexpr unsigned kMaxSharedAddresses = 256;
constexpr bool goesUpByFours() {
    for (int a = 1; a < kNumAddresses; ++a)
        if (kAddresses[a] != 4 * kAddresses[a - 1]) return false;
    return kAddresses[0] == 1 && kAddresses[kNumAddresses - 1] == kMaxAddresses;
}
static_assert(goesUpByFours(),
              "i & (k - 1) is i mod k for powers of two alone, and the knee "
              "compares each k with four times as many");
static_assert(kAdds % (32 * kMaxAddresses) == 0,
              "the adds would not spread evenly over the addresses");
static_assert(kMaxSharedAddresses <= kThreadsPerBlock &&
                  kThreadsPerBlock % kMaxSharedAddresses == 0,
              "a block has a thread for each of its addresses, or drops some");

// Elements of 4 bytes from an address to the next, where they are 128 bytes
// apart: the length of a cache line.
constexpr unsigned kApart = 32;
static_assert(kApart >= 1 && kApart <= 1024,
              "kApart must be 1 to 1024: 0 would make one address of all, and "
              "more would fill the memory with gaps");

// The counters of every regime fit in here.
constexpr size_t kElems = std::max(size_t(kMaxAddresses) * kApart,
                                   size_t(kBlocks) * kMaxSharedAddresses);
static_assert(sizeof(int) == sizeof(float), "ints and floats take turns in it");

// Where a curve of the tables has its knee. If adds only ever wait for others
// at their address, 4 times the addresses bring a gain of 4; if they never do,
// none. A gain of 2 is halfway between, as factors go, but it is also just what
// a step brings that doubles the slices at work, so the line is drawn a little
// below that.
constexpr float kKneeGain = 1.9f;

// What the tables are labelled with: k, then the regimes.
constexpr int kNumRegimes = 6;
constexpr const char *kColumns[1 + kNumRegimes] = {
    "k", "adjacent", "apart", "warp", "int", "shared", "shared_int"};

// Does nothing; what a launch of it takes is the floor under every time here.
__global__ void emptyKernel() {}

// Add i goes to element i mod k. One thread makes every kThreads-th add, and
// the lanes of a warp add to neighbouring elements.
// The adds are made in the L2 cache. It has slices, which work side by side,
// and each address belongs to one of them. A slice adds in passes: one pass
// goes to one sector, 8 neighbouring elements, and adds to each of them once at
// most. So the 32 adds of a warp take 32 passes at k = 1, 8 at k = 4, and 4
// from k = 16 on. The busiest slice decides how long that takes up to k = 256;
// beyond, other things come on top, the launch among them. On an H200:
//   1, 4     One sector. Every pass waits until the one before it has added,
//            and a float takes longer to add than an int.
//   16       Two sectors take turns. A float still waits for the add before it,
//            an int does not: there is a pass a cycle, the most a slice makes.
//   64       The elements still lie in one slice, which has as many passes as
//            before. A pass a cycle is the limit for floats too, and ints have
//            gained nothing.
//   256 up   The elements lie in several slices: the busiest has half of the
//            passes at 256, an eighth at 1024, a 32nd at 4096. At 16384 every
//            slice has some, the busiest still a 64th.
// At k = 1 all lanes meet at one address, but it comes from k and the thread's
// index, so the compiler does not know. Where it does, as with counters[0], it
// makes one add of a warp's ints, which it may not do with floats, and the
// columns would compare one add with 32.
// No barrier. Launch: kBlocks blocks of kThreadsPerBlock threads.
// snippet: add-adjacent
template <typename T>
__global__ void addAdjacent(T *counters, unsigned k, T value) {
    const unsigned thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
    for (unsigned i = thread; i < kAdds; i += kThreads)
        atomicAdd(&counters[i & (k - 1)], value);
}
// end snippet

// The same, but every address has a line of 128 bytes to itself. Now a few of
// them lie in several slices already, but no two share a sector: the 32 adds of
// a warp take 32 passes at every k. Set beside neighbours, the busiest slice
// has more passes at k = 4 and 16, fewer at 64 and 256, as many at 1024, and
// more again beyond. And each pass is a request of its own, where neighbours
// make up to 4 passes of one: from k = 64 on, the busiest slice takes a request
// in nearly every cycle. From 4096 on all slices have about as many passes as
// the busiest, so more addresses gain little.
// No barrier. Launch: kBlocks blocks of kThreadsPerBlock threads.
// snippet: add-apart
__global__ void addApart(float *counters, unsigned k, float value) {
    const unsigned thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
    for (unsigned i = thread; i < kAdds; i += kThreads)
        atomicAdd(&counters[(i & (k - 1)) * kApart], value);
}
// end snippet

// Add i goes to address i / 32 mod k: the 32 adds that a warp makes at a time
// meet at one address whatever k is. Input whose neighbours belong together
// adds like this. For the slices it is the same work as addApart's, 32 passes a
// warp, as many of them in the busiest slice, and up to k = 256 it takes about
// as long: it makes little difference whether lanes meet or warps. Beyond, it
// takes longer. More requests come to the busiest slice than in addApart, which
// need not be all of it.
// No barrier. Launch: kBlocks blocks of kThreadsPerBlock threads.
// snippet: add-by-warp
__global__ void addByWarp(float *counters, unsigned k, float value) {
    const unsigned thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
    for (unsigned i = thread; i < kAdds; i += kThreads)
        atomicAdd(&counters[(i / 32 & (k - 1)) * kApart], value);
}
// end snippet

// Add i goes to element i mod k of its block's own k elements. Only threads of
// one block can meet at an address, and all blocks together have kBlocks * k of
// them: k = 1 here stands beside k = 1024 in global memory.
// A float atomicAdd is a loop here, as in atomics.cu: load, add, store by
// compare-and-swap, and again if another came between. At k = 256 every thread
// has an address to itself, and the 32 adds of a warp take one attempt; at
// k = 1 they take over a hundred. The time falls with their number. An int
// atomicAdd is one instruction, in which lanes that meet at an address take
// turns: 32 at k = 1, 8 at k = 4, 2 at k = 16. That is soon too fast to be seen
// above the launch.
// The elements come from global memory and return to it, k a block, by plain
// loads and stores, so that totals last from launch to launch and no add is
// global. The first barrier keeps the adds from running ahead of the loads, the
// second one the stores from running ahead of the adds; all threads reach both.
// Launch: kBlocks blocks of kThreadsPerBlock threads, k up to
// kMaxSharedAddresses.
// snippet: add-shared
template <typename T>
__global__ void addShared(T *counters, unsigned k, T value) {
    __shared__ T blockCounters[kMaxSharedAddresses];
    T *mine = counters + blockIdx.x * k;
    if (threadIdx.x < k) blockCounters[threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    const unsigned thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
    for (unsigned i = thread; i < kAdds; i += kThreads)
        atomicAdd(&blockCounters[i & (k - 1)], value);
    __syncthreads();
    if (threadIdx.x < k) mine[threadIdx.x] = blockCounters[threadIdx.x];
}
// end snippet

// A column of the tables: a kernel, where its addresses are, and how many k
// it can take. copies is how many sets of k addresses there are: one, or one a
// block.
template <typename T>
struct Regime {
    int column;
    void (*kernel)(T *counters, unsigned k, T value);
    unsigned apart;
    unsigned copies;
    unsigned maxAddresses;
};
constexpr Regime<float> kFloatRegimes[] = {
    {1, addAdjacent<float>, 1, 1, kMaxAddresses},
    {2, addApart, kApart, 1, kMaxAddresses},
    {3, addByWarp, kApart, 1, kMaxAddresses},
    {5, addShared<float>, 1, kBlocks, kMaxSharedAddresses}};
constexpr Regime<int> kIntRegimes[] = {
    {4, addAdjacent<int>, 1, 1, kMaxAddresses},
    {6, addShared<int>, 1, kBlocks, kMaxSharedAddresses}};

// The reference: what element j of a regime's counters holds after launches
// whose values sum to sum. The adds spread evenly over the addresses, and
// between these nothing is added.
template <typename T>
T counterCpu(const Regime<T> &regime, unsigned k, unsigned sum, size_t j) {
    const size_t addresses = size_t(k) * regime.copies;
    const bool isAddress =
        j % regime.apart == 0 && j / regime.apart < addresses;
    return isAddress ? T(sum * (kAdds / addresses)) : T(0);
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

// A time of one launch of kAdds adds, in nanoseconds an add.
double nsAnAdd(float ms) { return ms * 1e6 / kAdds; }

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

// Whether got is what the reference says, element for element; says on stderr
// how many are not, and which is the first.
template <typename T>
bool checkCounters(const Regime<T> &regime, unsigned k, unsigned sum,
                   const std::vector<T> &got) {
    size_t wrong = 0;
    size_t first = 0;
    for (size_t j = got.size(); j-- > 0;) {
        if (got[j] == counterCpu(regime, k, sum, j)) continue;
        ++wrong;
        first = j;
    }
    if (wrong == 0) return true;
    std::fprintf(stderr,
                 "FAILED: %s with k = %u: %zu of %zu elements wrong, the first "
                 "at %zu: got %.9g, want %.9g\n",
                 kColumns[regime.column], k, wrong, got.size(), first,
                 double(got[first]), double(counterCpu(regime, k, sum, first)));
    return false;
}

// Times a regime at one k. Returns whether every element of d_counters was
// right after one launch before the timing and after all that were timed.
template <typename T>
bool timeAdds(const Regime<T> &regime, unsigned k, T *d_counters,
              Timing *time) {
    const auto kernel = regime.kernel;
    const auto launch = [=](int run) {
        kernel<<<kBlocks, kThreadsPerBlock>>>(d_counters, k, T(valueOf(run)));
    };
    std::vector<T> got(kElems);
    const size_t bytes = kElems * sizeof(T);
    CUDA_CHECK(cudaMemset(d_counters, 0, bytes));
    launch(0);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(
        cudaMemcpy(got.data(), d_counters, bytes, cudaMemcpyDeviceToHost));
    if (!checkCounters(regime, k, valueOf(0), got)) return false;

    *time = timeKernel(launch);
    CUDA_CHECK(
        cudaMemcpy(got.data(), d_counters, bytes, cudaMemcpyDeviceToHost));
    int sum = valueOf(0);
    for (int run = 0; run < kLaunches; ++run) sum += valueOf(run);
    return checkCounters(regime, k, sum, got);
}

// What came of one regime at one k.
struct Result {
    bool measured = false;
    bool ok = false;
    Timing time = {};
};
using Results = Result[kNumRegimes][kNumAddresses];

// Times a regime at every k it can take. Returns how many failed a check.
template <typename T>
int timeRegime(const Regime<T> &regime, void *d_counters, Results &results) {
    int failures = 0;
    for (int a = 0; a < kNumAddresses; ++a) {
        if (kAddresses[a] > regime.maxAddresses) break;
        Result &result = results[regime.column - 1][a];
        result.measured = true;
        result.ok = timeAdds(regime, kAddresses[a],
                             static_cast<T *>(d_counters), &result.time);
        failures += !result.ok;
    }
    return failures;
}

// Prints a row for each k, with what cell(regime, a) makes of each regime.
template <typename Cell>
void printTable(const Results &results, Cell cell) {
    printLabels(kColumns);
    for (int a = 0; a < kNumAddresses; ++a) {
        printCell(kColumns[0], std::to_string(kAddresses[a]));
        for (int r = 0; r < kNumRegimes; ++r)
            printCell(kColumns[1 + r],
                      results[r][a].measured ? cell(results[r], a) : "-");
        std::printf("\n");
    }
}

// The knee of a regime: the smallest k from which on, at every step that was
// measured, 4 times the addresses make an add less than kKneeGain times faster.
// From which on, because a curve can be flat for a step and then fall again:
// new addresses may lie in a slice that is busy already, as from 16 to 64 ints.
// "-" if the last step still gains more. A knee is marked if the step behind it
// ends near the floor: there it may be the launch that ends the gain, not the
// addresses.
std::string knee(const Result (&regime)[kNumAddresses], float floorMs) {
    int last = 0;
    while (last + 1 < kNumAddresses && regime[last + 1].measured) ++last;
    for (int a = 0; a <= last; ++a)
        if (!regime[a].ok) return "failed";
    int a = last;
    while (a > 0 &&
           regime[a - 1].time.median < kKneeGain * regime[a].time.median)
        --a;
    if (a == last) return "-";
    return figure("%.0f", kAddresses[a], true,
                  nearFloor(regime[a + 1].time.median, floorMs));
}

// Prints the tables and the knees.
void report(const Results &results, float floorMs) {
    // Table ns: rows kAddresses, columns kColumns.
    std::printf("\n== ns: nanoseconds an add, over k addresses ==\n");
    std::printf("adds: %u\n", kAdds);
    printTable(results, [=](const Result *regime, int a) {
        const float ms = regime[a].time.median;
        return figure("%.5f", nsAnAdd(ms), regime[a].ok,
                      nearFloor(ms, floorMs));
    });
    // Table faster: rows kAddresses, columns kColumns.
    std::printf("\n== faster: times faster than over one address ==\n");
    printTable(results, [=](const Result *regime, int a) {
        const float one = regime[0].time.median;
        const float ms = regime[a].time.median;
        return figure("%.2f", one / ms, regime[0].ok && regime[a].ok,
                      nearFloor(std::min(one, ms), floorMs));
    });
    // Table spread: rows kAddresses, columns kColumns.
    std::printf("\n== spread: of the samples, in percent of the median ==\n");
    printTable(results, [](const Result *regime, int a) {
        return figure("%.1f", spreadPercent(regime[a].time), regime[a].ok);
    });
    std::printf(
        "\n== knee: the k from which on 4 times the addresses gain less ==\n");
    std::printf("gain_below: %.2f\n", kKneeGain);
    for (int r = 0; r < kNumRegimes; ++r)
        std::printf("%s: %s\n", kColumns[1 + r],
                    knee(results[r], floorMs).c_str());
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
    std::printf("Day 26, part two: how many addresses make it fast?\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);

    void *d_counters = nullptr;
    CUDA_CHECK(cudaMalloc(&d_counters, kElems * sizeof(float)));

    const Timing floor = timeKernel([](int) { emptyKernel<<<1, 1>>>(); });
    std::printf("\n== floor: an empty kernel, launched the same way ==\n");
    std::printf("launches: %d\n", kLaunches);
    std::printf("floor_ms: %.4f\n", floor.median);
    std::printf("floor_ns_an_add: %.5f\n", nsAnAdd(floor.median));
    std::printf("spread_%%: %.1f\n", spreadPercent(floor));
    std::printf("marked_*: within twice the launch floor, do not compare\n");

    Results results;
    int failures = 0;
    for (const Regime<float> &regime : kFloatRegimes)
        failures += timeRegime(regime, d_counters, results);
    for (const Regime<int> &regime : kIntRegimes)
        failures += timeRegime(regime, d_counters, results);
    report(results, floor.median);

    CUDA_CHECK(cudaFree(d_counters));
    if (failures == 0) std::printf("\nAll checks passed.\n");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "The results could not be written to stdout.\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
