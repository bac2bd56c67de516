// SPDX-License-Identifier: MIT
//
// Day 26: atomics and contention, measured
//
// What does it cost when every thread adds to the same number, and what does
// it cost to avoid that? One sum of n floats, three ways:
//
//   sumGlobalAtomic  one atomicAdd an element, all to one global float
//   sumSharedAtomic  one atomicAdd an element to one shared float a block,
//                    then one global atomicAdd a block
//   sumTreeAtomic    the halving tree of day 24 in shared memory, then one
//                    global atomicAdd a block
//
// Held equal: one thread takes one element, and every kernel reads each
// element once, in the same coalesced order. The only variable is where the
// additions land.
//
// The sweep adds 1 + i % 3. No element is zero, so every lost element shows,
// and every add changes the sum: adding zero would leave what another thread's
// compare-and-swap expects, and spare it a second try. Neighbouring blocks
// differ, so a block that took another's elements shows too, unless that lies a
// multiple of three blocks away. Every partial sum is an integer of at most
// 2^24, which a float holds exactly, so the order of the adds cannot matter and
// the check is bitwise equality. The second part then adds values that do
// round, to show what the order does to a float sum (sum_ladder.cu makes such a
// sum repeatable).
//
// Needs: compute capability 7.5 or newer, CUDA 12.5 or newer, C++17.
// Build: nvcc -std=c++17 -O3 -arch=native -o atomics atomics.cu
// Run:   ./atomics
// Exit:  0 every check held; 1 a check or a CUDA call failed.
//
// Verified: run on an NVIDIA H200 (compute capability 9.0), driver 580.159.04,
// CUDA 13.0 (V13.0.88), on 2026-11-30. The only output that may be published
// is evidence/atomics/nvidia-h200-2026-11-30.txt.
// How that was decided: research/REVIEW-PROCESS.md

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// One element a thread; the tree needs a power of two.
constexpr int kThreadsPerBlock = 256;
static_assert(kThreadsPerBlock > 0 && kThreadsPerBlock <= 1024,
              "kThreadsPerBlock must be from 1 to 1024");
static_assert(
    (kThreadsPerBlock & (kThreadsPerBlock - 1)) == 0,
    "kThreadsPerBlock must be a power of two, or the tree drops some");

// Elements a sum, smallest first. The largest is also that of the second part.
constexpr int kNumSizes = 5;
constexpr size_t kSizes[kNumSizes] = {4096, 65536, 262144, 1048576, 4194304};
constexpr size_t kMaxElems = 4194304;
constexpr bool sizesRiseToMax() {
    for (int s = 1; s < kNumSizes; ++s)
        if (kSizes[s] <= kSizes[s - 1]) return false;
    return kSizes[kNumSizes - 1] == kMaxElems;
}
static_assert(sizesRiseToMax(), "a sum would read past the input");
static_assert(kMaxElems / kThreadsPerBlock < 0x7fffffff,
              "the grid would be larger than a launch can take");

// The sweep adds the integers 1 to 3; a float holds every sum of them exactly.
constexpr size_t kExactModulus = 3;
static_assert(kThreadsPerBlock % kExactModulus != 0,
              "all blocks would hold the same values, and a mix-up not show");
constexpr size_t kFloatIntegerLimit = size_t(1) << 24;
static_assert(kMaxElems * kExactModulus <= kFloatIntegerLimit,
              "partial sums would round: the check would test float precision");

// The second part adds 1.000 to 1.999, which round, this many times a kernel.
constexpr size_t kInexactModulus = 1000;
constexpr int kDetRuns = 20;
static_assert(kDetRuns <= kLaunches, "the slots would not suffice");

// What the tables are labelled with.
constexpr int kNumKernels = 3;
constexpr const char *kKernelNames[kNumKernels] = {"global", "shared", "tree"};
constexpr const char *kSweepColumns[] = {
    "n",           "global_ms", "shared_ms", "tree_ms", "global_GB/s",
    "shared_GB/s", "tree_GB/s", "fastest",   "spread_%"};
constexpr const char *kDetColumns[] = {"kernel", "distinct", "min", "max",
                                       "max-min"};

// Does nothing; what a launch of it takes is the floor under every time here.
__global__ void emptyKernel() {}

// One thread adds one element to the one total; total must start at zero.
// A warp reads 128 consecutive bytes and then adds 32 times to one address.
// Nobody uses the old value, so each add is a reduction (RED). Each goes to the
// L2 cache as a request of its own, and the cache performs those to one address
// one after another (seen on an H200). The compiler does not combine the adds
// of a warp: float addition may not be reordered. (It does combine int adds,
// into one a warp, where it can see that all go to one address.) No barrier.
// Launch: any block size, at least n threads in all.
// snippet: global-atomic
__global__ void sumGlobalAtomic(const float *in, float *total, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, in[i]);
}
// end snippet

// One thread adds one element to its block's sum; thread 0 adds that to total.
// Shared memory has no float add of its own: atomicAdd is a loop that loads
// the sum, adds, and stores by compare-and-swap if nobody came between, so
// the 32 lanes of a warp, and all warps of a block, retry until each got in.
// Why the first barrier, when the adds are atomic? atomicAdd is relaxed: it
// orders the accesses to one address that are atomic too, and publishes nothing
// else. The store of zero is a plain store, and without the barrier it could
// wipe out adds of warps that ran ahead. The second barrier keeps thread 0 from
// reading before the last add. Every thread reaches both: the guard is around
// the add alone. Launch: any block size, at least n threads in all.
// snippet: shared-atomic
__global__ void sumSharedAtomic(const float *in, float *total, size_t n) {
    __shared__ float blockSum;
    if (threadIdx.x == 0) blockSum = 0.0f;
    __syncthreads();
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&blockSum, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, blockSum);
}
// end snippet

// One thread stores one element; then half of the threads add the other
// half's, and so on down to one; thread 0 adds the block's sum to total.
// Neighbouring lanes touch neighbouring words, so no step has a bank conflict.
// A block makes one atomic add instead of one a thread. Threads past the end
// store zero, and every thread reaches every barrier: the guard is around the
// add alone. Launch: exactly kThreadsPerBlock threads a block.
// snippet: tree-atomic
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

using SumKernel = void (*)(const float *in, float *total, size_t n);
constexpr SumKernel kKernels[kNumKernels] = {sumGlobalAtomic, sumSharedAtomic,
                                             sumTreeAtomic};

// The reference: the sum of in[0, n) in double, with Kahan's compensation for
// what each addition rounds away. For the sweep's data it is exact.
double sumCpu(const float *in, size_t n) {
    double sum = 0.0;
    double lost = 0.0;
    for (size_t i = 0; i < n; ++i) {
        const double term = double(in[i]) - lost;
        const double next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
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

// The kernel that was fastest beyond doubt: its median lies below the minimum
// of every other and is not near the floor. "-" if there is none.
const char *fastest(const Timing (&times)[kNumKernels],
                    const bool (&ok)[kNumKernels], float floorMs) {
    for (int k = 0; k < kNumKernels; ++k) {
        bool wins = ok[k] && !nearFloor(times[k].median, floorMs);
        for (int rival = 0; rival < kNumKernels; ++rival)
            if (rival != k)
                wins = wins && ok[rival] && times[k].median < times[rival].min;
        if (wins) return kKernelNames[k];
    }
    return "-";
}

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

// Launches one sum of d_in[0, n) into *d_total, one thread an element.
void launchSum(SumKernel kernel, const float *d_in, float *d_total, size_t n) {
    const size_t blocks = (n + kThreadsPerBlock - 1) / kThreadsPerBlock;
    kernel<<<unsigned(blocks), kThreadsPerBlock>>>(d_in, d_total, n);
}

// Launches runs sums of d_in[0, n), each into a slot of its own that starts
// at zero, and brings them back in totals[runs].
void sumRepeatedly(SumKernel kernel, const float *d_in, float *d_slots,
                   size_t n, int runs, float *totals) {
    const size_t bytes = runs * sizeof(float);
    CUDA_CHECK(cudaMemset(d_slots, 0, bytes));
    for (int run = 0; run < runs; ++run)
        launchSum(kernel, d_in, d_slots + run, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(totals, d_slots, bytes, cudaMemcpyDeviceToHost));
}

// Times kernel k on d_in[0, n). Returns whether its answer was right before
// the timing and in every timed launch.
bool timeSum(int k, const float *d_in, float *d_slots, size_t n, float want,
             Timing *time) {
    float totals[kLaunches];
    sumRepeatedly(kKernels[k], d_in, d_slots, n, 1, totals);
    if (!checkExact(kKernelNames[k], n, totals[0], want)) return false;

    CUDA_CHECK(cudaMemset(d_slots, 0, sizeof(totals)));
    *time = timeKernel(
        [=](int run) { launchSum(kKernels[k], d_in, d_slots + run, n); });
    CUDA_CHECK(
        cudaMemcpy(totals, d_slots, sizeof(totals), cudaMemcpyDeviceToHost));
    for (float total : totals)
        if (!checkExact(kKernelNames[k], n, total, want)) return false;
    return true;
}

// Fills host and device with 1 + (i % modulus) * step.
void fill(std::vector<float> *h_in, float *d_in, size_t modulus, float step) {
    for (size_t i = 0; i < h_in->size(); ++i)
        (*h_in)[i] = 1.0f + (i % modulus) * step;
    CUDA_CHECK(cudaMemcpy(d_in, h_in->data(), h_in->size() * sizeof(float),
                          cudaMemcpyHostToDevice));
}

// Times every kernel at every size and prints the table. Returns how many
// kernels failed a check.
int sweep(const std::vector<float> &h_in, const float *d_in, float *d_slots,
          float floorMs) {
    // Table sweep: rows kSizes, columns kSweepColumns.
    std::printf("\n== sweep: one sum, three ways ==\n");
    printLabels(kSweepColumns);
    int failures = 0;
    for (size_t n : kSizes) {
        const float want = float(sumCpu(h_in.data(), n));
        Timing times[kNumKernels] = {};
        bool ok[kNumKernels];
        bool marked[kNumKernels];
        double spread = 0.0;
        int failed = 0;
        for (int k = 0; k < kNumKernels; ++k) {
            ok[k] = timeSum(k, d_in, d_slots, n, want, &times[k]);
            marked[k] = nearFloor(times[k].median, floorMs);
            spread = std::max(spreadPercent(times[k]), spread);
            failed += !ok[k];
        }

        int c = 0;
        printCell(kSweepColumns[c++], std::to_string(n));
        for (int k = 0; k < kNumKernels; ++k)
            printCell(kSweepColumns[c++],
                      figure("%.4f", times[k].median, ok[k], marked[k]));
        for (int k = 0; k < kNumKernels; ++k)
            printCell(
                kSweepColumns[c++],
                figure("%.2f", readGBs(n, times[k].median), ok[k], marked[k]));
        printCell(kSweepColumns[c++], fastest(times, ok, floorMs));
        printCell(kSweepColumns[c++], figure("%.1f", spread, failed == 0));
        std::printf("\n");
        failures += failed;
    }
    return failures;
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

// Prints how far kDetRuns answers of one kernel lie apart: a row of the table.
void reportSpread(const char *kernel, const float (&totals)[kDetRuns],
                  bool ok) {
    const float low = *std::min_element(totals, totals + kDetRuns);
    const float high = *std::max_element(totals, totals + kDetRuns);
    printCell(kDetColumns[0], kernel);
    printCell(kDetColumns[1],
              figure("%.0f", distinctResults(totals, kDetRuns), ok));
    printCell(kDetColumns[2], figure("%.9g", low, ok));
    printCell(kDetColumns[3], figure("%.9g", high, ok));
    printCell(kDetColumns[4], figure("%.9g", high - low, ok));
    std::printf("\n");
}

// Sums values that round, kDetRuns times a kernel, and prints how the answers
// differ. Each answer is checked; how many there are is only reported.
// Returns how many kernels failed the check.
int determinism(const std::vector<float> &h_in, const float *d_in,
                float *d_slots) {
    const size_t n = h_in.size();
    const double reference = sumCpu(h_in.data(), n);
    // Added in an order that has nothing to do with their size, the errors of n
    // adds mostly cancel and grow like the square root of n. Four units of
    // 2^-23 times that leave room for such an order; sorted values would exceed
    // it. It is also thousands of elements wide, which is printed: the sweep is
    // there to see the loss of a single one.
    const double relative = 4 * std::ldexp(1.0, -23) * std::sqrt(double(n));
    std::printf(
        "\n== determinism: the same sum again, of values that round ==\n");
    std::printf("n: %zu\n", n);
    std::printf("runs: %d\n", kDetRuns);
    std::printf("reference: %.9g\n", reference);
    std::printf("tolerance: %.9g\n", relative * reference);
    std::printf("tolerance_elements: %.0f\n", relative * n);
    std::printf("tolerance_blocks: %.0f\n", relative * n / kThreadsPerBlock);
    // Table determinism: rows kKernelNames, columns kDetColumns.
    printLabels(kDetColumns);
    int failures = 0;
    for (int k = 0; k < kNumKernels; ++k) {
        float totals[kDetRuns];
        sumRepeatedly(kKernels[k], d_in, d_slots, n, kDetRuns, totals);
        bool ok = true;
        for (float total : totals)
            ok = ok && checkNear(kKernelNames[k], n, total, reference,
                                 relative * reference);
        reportSpread(kKernelNames[k], totals, ok);
        failures += !ok;
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
    std::printf("Day 26: atomics and contention, measured\n");
    std::printf("\n== device: what this ran on ==\n");
    std::printf("gpu: %s\n", device.name);
    std::printf("compute_capability: %d.%d\n", device.major, device.minor);
    std::printf("sms: %d\n", device.multiProcessorCount);

    float *d_in = nullptr;
    float *d_slots = nullptr;
    CUDA_CHECK(cudaMalloc(&d_in, kMaxElems * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_slots, kLaunches * sizeof(float)));
    std::vector<float> h_in(kMaxElems);

    const Timing floor = timeKernel([](int) { emptyKernel<<<1, 1>>>(); });
    std::printf("\n== floor: an empty kernel, launched the same way ==\n");
    std::printf("launches: %d\n", kLaunches);
    std::printf("floor_ms: %.4f\n", floor.median);
    std::printf("spread_%%: %.1f\n", spreadPercent(floor));
    std::printf("marked_*: within twice the launch floor, do not compare\n");

    fill(&h_in, d_in, kExactModulus, 1.0f);
    int failures = sweep(h_in, d_in, d_slots, floor.median);
    fill(&h_in, d_in, kInexactModulus, 0.001f);
    failures += determinism(h_in, d_in, d_slots);

    CUDA_CHECK(cudaFree(d_slots));
    CUDA_CHECK(cudaFree(d_in));
    if (failures == 0) std::printf("\nAll checks passed.\n");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "The results could not be written to stdout.\n");
        return EXIT_FAILURE;
    }
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
