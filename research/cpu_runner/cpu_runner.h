// SPDX-License-Identifier: MIT
//
// Lets g++ compile a lesson and run its kernels on the CPU. Force-included
// (g++ -include) in front of a lesson whose launches were rewritten by
// launches.sed; cpu_runner.cc is linked beside it. For tests and for readers
// without a GPU; build.sh is the one place with the compiler's flags.
//
// What it cannot show:
// - Time, in any form: event times are NaN, and every figure made from one is.
// - Coalescing, bank conflicts, caches, occupancy, registers, launch limits
//   other than 1024 threads a block: a kernel that is slow looks like any
//   other.
// - The hardware's barriers: cuda::barrier is libcu++'s own host version.
// - Blocks at the same time. Blocks run one after another, so a block that
//   waits for another never ends here, and two blocks that race show only
//   where ThreadSanitizer sees them, and to it only if they are neighbours in
//   the order in which blocks run.
// - A weak memory model. Memory is the CPU's; an ordering that is missing shows
//   as a wrong answer only if a schedule brings it out, or to ThreadSanitizer.
// - Host pointers used in a kernel, device pointers used on the host.
// - Threads of a warp in lockstep, and everything that relies on it.
// - A host that does not wait: a launch returns when its kernel has ended, so a
//   missing synchronisation on the host does not show.
// - Contraction: nvcc makes one instruction, which rounds once, of a * b + c
//   unless told otherwise; here it rounds twice. fmaf rounds once in both.
// - An ordering that cuda::barrier does not promise: to ThreadSanitizer,
//   whoever arrives or waits there has seen what came before all arrivals until
//   then, also where their phase is not the one it waits for.
// - A thread that computes for long by itself: a block is called deadlocked if,
//   while its threads run a million basic blocks each, none of them ends or
//   passes __syncthreads, and nothing in shared memory changes.
// - The asynchronous proxy, other than to ThreadSanitizer: a thread's access
//   that no proxy fence of its own follows races there with a later bulk copy.
//
// A schedule decides who runs next. CPU_RUNNER_SCHEDULE is `forward` (lowest
// thread first, the default), `reverse`, or a number, which seeds a random one:
// blocks and threads in a shuffled order, some warps and threads slowed, and
// stops at random basic blocks.

#ifndef CPU_RUNNER_H
#define CPU_RUNNER_H

// The standard headers come first: __noinline__, defined below, is a name that
// they use themselves.
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <cuda/barrier>
#include <cuda/ptx>

#undef __shared__
// The tag becomes part of the name, by which shared.ld brings them together.
#define __shared__ static __attribute__((abi_tag("cpu_shared")))
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __noinline__
#define __noinline__ __attribute__((noinline))
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))

// The built-in variables of the thread that runs; the runner sets them.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
constexpr int warpSize = 32;

namespace cpuRunner {

// The lanes' values in a warp-wide operation; lanes outside its mask hold ~0.
using Lanes = std::array<uint64_t, 32>;

// Runs call(arguments) once a thread for every block of the grid. An impossible
// configuration sets the error that cudaGetLastError returns. kernel is the
// address of the function, to name it in a report.
void runGrid(const void *kernel, dim3 grid, dim3 block, void (*call)(void *),
             void *arguments);

// Waits until every thread of the block is here; line is the caller's. Ends the
// program with a report if they wait at different lines, or some have left.
void syncBlock(int line);

// Waits until all threads of the warp that mask names are here, hands in value
// and returns everybody's. ordered: memory is ordered, too, which only
// __syncwarp promises. kind names the operation; all must make the same.
Lanes syncWarp(const char *kind, unsigned mask, uint64_t value, bool ordered);

// The calling thread's lane.
unsigned lane();

// Called after every atomic and at every fence: for ThreadSanitizer, an atomic
// behind a fence publishes what came before the fence, and a fence behind an
// atomic sees what that atomic's address published.
void noteAtomic(const void *address);
void noteFence();

// Makes arrivals on a barrier.
using Arrive = void (*)(void *barrier, ptrdiff_t arrivals);

// Adds bytes to those that the barrier's phase waits for, and makes so many
// arrivals once all of them have landed.
void expectBytes(void *barrier, ptrdiff_t bytes, ptrdiff_t arrivals,
                 Arrive arrive);

// A bulk copy, read now. It lands later, in pieces, when the schedule says so,
// and only then its bytes count on the barrier. Ends the program with a report
// if the hardware would refuse it, or if it has not landed when its block ends.
void copyLate(void *to, const void *from, size_t bytes, void *barrier,
              Arrive arrive);

// What the calling thread has read and written comes before bulk copies that
// are started from now on.
void noteProxyFence();

// One launch: kernel(kernel)(grid, block)(arguments...).
template <typename... P>
struct Launch {
    void (*kernel)(P...);
    dim3 grid;
    dim3 block;
    void operator()(P... arguments) const {
        auto thread = [&] { kernel(arguments...); };
        runGrid(
            reinterpret_cast<const void *>(kernel), grid, block,
            [](void *t) { (*static_cast<decltype(thread) *>(t))(); }, &thread);
    }
};

template <typename... P>
struct Kernel {
    void (*kernel)(P...);
    Launch<P...> operator()(dim3 grid, dim3 block) const {
        return {kernel, grid, block};
    }
};

template <typename... P>
Kernel<P...> kernel(void (*function)(P...)) {
    return {function};
}

// A value of at most eight bytes as the bits that travel between lanes.
template <typename T>
uint64_t toBits(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "no lane holds so much");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
T fromBits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

// The value that lane source hands in, where source lies in the caller's part
// of width lanes; otherwise the caller's own.
template <typename T>
T shuffle(unsigned mask, T value, int source, int width) {
    const int first = int(lane()) / width * width;
    const Lanes all = syncWarp("a shuffle", mask, toBits(value), false);
    const bool inside = source >= first && source < first + width;
    return fromBits<T>(all[inside ? source : lane()]);
}

// The lanes of mask whose predicate holds.
inline unsigned vote(unsigned mask, bool predicate) {
    const Lanes all = syncWarp("a vote", mask, predicate, false);
    unsigned holds = 0;
    for (int i = 0; i < 32; ++i) holds |= unsigned(all[i] == 1) << i;
    return holds;
}

// Replaces *address by change(*address) in one step that orders nothing else;
// returns what it was. Nobody stops between the step and its note: whoever saw
// the new value would miss what it publishes.
template <typename T, typename Change>
__attribute__((noinline, no_sanitize_coverage)) T atomicChange(T *address,
                                                               Change change) {
    T old, next;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do {
        next = change(old);
    } while (!__atomic_compare_exchange(address, &old, &next, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    noteAtomic(address);
    return old;
}

// The type of a parameter that its argument does not decide.
template <typename T>
struct Same {
    using Type = T;
};
template <typename T>
using SameAs = typename Same<T>::Type;

}  // namespace cpuRunner

// Barriers and fences.
inline void __syncthreads(int line = __builtin_LINE()) {
    cpuRunner::syncBlock(line);
}
inline void __syncwarp(unsigned mask = ~0u) {
    cpuRunner::syncWarp("__syncwarp", mask, 0, true);
}
inline void __threadfence() { cpuRunner::noteFence(); }
inline void __threadfence_block() { cpuRunner::noteFence(); }

// Shuffles and votes.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
    const int first = int(cpuRunner::lane()) / width * width;
    return cpuRunner::shuffle(mask, value, first + source % width, width);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
    return cpuRunner::shuffle(mask, value, int(cpuRunner::lane() + by), width);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
    return cpuRunner::shuffle(mask, value, int(cpuRunner::lane()) - int(by),
                              width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = warpSize) {
    return cpuRunner::shuffle(mask, value, int(cpuRunner::lane()) ^ with,
                              width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return cpuRunner::vote(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
    return cpuRunner::vote(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
    return cpuRunner::vote(mask, predicate == 0) == 0;
}

// Atomics: relaxed, as on a GPU.
template <typename T>
T atomicAdd(T *address, cpuRunner::SameAs<T> value) {
    return cpuRunner::atomicChange(address, [=](T old) { return old + value; });
}
template <typename T>
T atomicMin(T *address, cpuRunner::SameAs<T> value) {
    return cpuRunner::atomicChange(
        address, [=](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicMax(T *address, cpuRunner::SameAs<T> value) {
    return cpuRunner::atomicChange(
        address, [=](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicExch(T *address, cpuRunner::SameAs<T> value) {
    return cpuRunner::atomicChange(address, [=](T) { return value; });
}
template <typename T>
T atomicCAS(T *address, cpuRunner::SameAs<T> expected,
            cpuRunner::SameAs<T> value) {
    return cpuRunner::atomicChange(
        address, [=](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned *address, unsigned limit) {
    return cpuRunner::atomicChange(
        address, [=](unsigned old) { return old >= limit ? 0 : old + 1; });
}

inline unsigned __float_as_uint(float value) {
    return unsigned(cpuRunner::toBits(value));
}

// Loads and stores with a hint: the hint says nothing to a CPU.
template <typename T>
T __ldg(const T *address) {
    return *address;
}
template <typename T>
T __ldcs(const T *address) {
    return *address;
}
template <typename T>
T __ldcg(const T *address) {
    return *address;
}
template <typename T>
void __stcs(T *address, cpuRunner::SameAs<T> value) {
    *address = value;
}
template <typename T>
void __stcg(T *address, cpuRunner::SameAs<T> value) {
    *address = value;
}

namespace cpuRunner {
inline void arriveOn(void *barrier, ptrdiff_t arrivals) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    (void)static_cast<Barrier *>(barrier)->arrive(arrivals);
}
}  // namespace cpuRunner

// How many blocks of a kernel an SM holds at once; what they need is not asked.
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel *,
                                                          int, size_t) {
    *blocks = 2;
    return cudaSuccess;
}

// Bulk copies, which libcu++ has for the GPU alone.
namespace cuda {
namespace ptx {
inline void fence_proxy_async(space_shared_t) { cpuRunner::noteProxyFence(); }
}  // namespace ptx
namespace device {
// The token that this returns on a GPU nobody has asked for yet.
inline void barrier_arrive_tx(barrier<thread_scope_block> &b,
                              ptrdiff_t arrivals, ptrdiff_t bytes) {
    cpuRunner::expectBytes(&b, bytes, arrivals, cpuRunner::arriveOn);
}
template <typename T, size_t kAlignment>
void memcpy_async_tx(T *to, const T *from, aligned_size_t<kAlignment> bytes,
                     barrier<thread_scope_block> &b) {
    cpuRunner::copyLate(to, from, bytes, &b, cpuRunner::arriveOn);
}
}  // namespace device
}  // namespace cuda

#endif  // CPU_RUNNER_H
