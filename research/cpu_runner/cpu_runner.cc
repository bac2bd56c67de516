// SPDX-License-Identifier: MIT
//
// Runs CUDA kernels on the CPU, one block after another; cpu_runner.h says what
// that can show and what it cannot. This file is compiled once, without any
// sanitizer, and linked to every build: a sanitizer then sees the lesson's
// accesses alone, and its calls below exist only where it is linked.
//
// A block's threads are fibers: stacks of their own inside one thread of the
// operating system. A fiber leaves at a barrier, in every wait, at a basic
// block when the schedule says so, and at its end; the scheduler then picks
// another.

#include "cpu_runner.h"

#include <map>

#include <execinfo.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

extern "C" {
// The memory that holds every __shared__ variable (shared.ld).
extern char cpu_shared_begin[], cpu_shared_end[];
// Where the program is loaded.
extern char __executable_start[];

// What AddressSanitizer and ThreadSanitizer want to know of fibers and memory.
#define WEAK __attribute__((weak))
WEAK void __sanitizer_start_switch_fiber(void **, const void *, size_t);
WEAK void __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
WEAK void *__tsan_get_current_fiber();
WEAK void *__tsan_create_fiber(unsigned);
WEAK void __tsan_switch_to_fiber(void *, unsigned);
WEAK void __tsan_acquire(void *);
WEAK void __tsan_release(void *);
WEAK void __tsan_java_init(void *, size_t);
WEAK void __tsan_java_alloc(void *, size_t);
WEAK void __tsan_java_free(void *, size_t);

// A sanitizer's first report ends the program as a failed check does.
const char *__asan_default_options() { return "detect_leaks=0:exitcode=1"; }
const char *__tsan_default_options() {
    return "halt_on_error=1:exitcode=1:atexit_sleep_ms=0";
}
}

namespace {

constexpr int kMaxThreads = 1024;
constexpr int kWarp = 32;
// Bytes of one fiber's stack.
constexpr size_t kStackBytes = 256 << 10;
// Basic blocks to the next stop where the schedule asks for none: a thread that
// spins without a wait must let the others run all the same.
constexpr int64_t kFewStops = 1 << 11;
constexpr int64_t kNoStop = INT64_MAX;
// Rounds, in each of which every thread has a turn, from one shuffle to the
// next, and from one look at what has changed to the next. A block in which
// nothing changes for kChecksToCalm looks is no longer slowed or stopped, and
// is called deadlocked after kChecksToDeadlock: by then every thread has had
// turns enough for a million basic blocks.
constexpr int kRoundsPerShuffle = 4;
constexpr int kRoundsPerCheck = 64;
constexpr int kChecksToCalm = 8;
constexpr int kChecksToDeadlock = 20;
constexpr int kMaxFrames = 16;
// For ThreadSanitizer: a switch between fibers orders nothing.
constexpr unsigned kNoOrder = 1;

// ThreadSanitizer's memory of who came before whom, one per thing that orders.
using Edge = uint64_t;

enum class State { kReady, kAtBlockBarrier, kAtWarp, kEnded };

struct alignas(64) Thread {
    State state = State::kEnded;
    bool begun;
    bool slow;
    bool polls;  // Left in a wait, which may not be over yet.
    int rank;
    uint3 index;
    // The fiber: where it goes on, its stack, what sanitizers call it.
    void *jump[5];
    bool started = false;
    char *stack = nullptr;
    void *fakeStack = nullptr;
    void *tsanFiber = nullptr;
    ucontext_t start;
    // What it waits for: the line of its block barrier; or its warp operation,
    // the lanes that take part, and what each handed in.
    int line;
    const char *kind;
    unsigned mask;
    cpuRunner::Lanes lanes;
    // For fences: whether one came before, and the last atomic's address. For
    // ThreadSanitizer, a fiber that has seen what came before the last fence,
    // and nothing of what came behind it.
    bool fenced;
    const void *lastAtomic;
    Edge fence;
    void *atFence = nullptr;
    // Where it waits, for a deadlock's report.
    void *frames[kMaxFrames];
    int numFrames = 0;
};

// The edges of a block stand in the shared section, to be forgotten with it;
// two of each, used in turn, so that who leaves a barrier late learns nothing
// of what happened behind it.
alignas(64) __attribute__((section("cpu_shared"))) Edge gBlockEdges[2];
__attribute__((section("cpu_shared"))) Edge gWarpEdges[kMaxThreads / kWarp][2];
Edge gLaunchEdge;
Edge gEndEdge;

// The schedule. Not random: forward or reverse.
bool gReverse = false;
bool gRandom = false;
uint64_t gRandomState;

// The launch and the block that run. Two sets of fibers take turns, so that
// ThreadSanitizer does not take one block's threads for the next block's.
Thread gSets[2][kMaxThreads];
Thread *gThreads = gSets[0];
Thread *gCurrent = nullptr;
const void *gKernel;
void (*gCall)(void *);
void *gArguments;
int gNumThreads;
int gNumReady;
int gNumEnded;
int gNumAtBarrier;
int gFirstAtBarrier;
unsigned gBarriersDone;
unsigned gWarpsDone[kMaxThreads / kWarp];
int64_t gMeanStop;
int64_t gUntilStop = kNoStop;
bool gReporting = false;

// Pieces of bulk copies that have not landed, and turns of threads until they
// may. Plain arrays: of other memory ThreadSanitizer would ask who owns it.
struct Copy {
    char *to;
    const char *from;
    size_t bytes;
    void *barrier;
    unsigned turns;
};
constexpr int kMaxCopies = 4096;
Copy gCopies[kMaxCopies];
int gNumCopies;
// What a barrier's phase waits for besides arrivals, and the arrivals that are
// held back until it has come.
struct Transaction {
    void *barrier;
    ptrdiff_t bytes;
    ptrdiff_t arrivals;
    cpuRunner::Arrive arrive;
};
constexpr int kMaxTransactions = 64;
Transaction gTransactions[kMaxTransactions];
int gNumTransactions;
// For ThreadSanitizer the copies are made by a thread of their own, which has
// seen of the others what came before their proxy fences.
__attribute__((section("cpu_shared"))) Edge gProxyEdge;
void *gEngines[2];

// The scheduler's own stack, to return to.
void *gHostJump[5];
void *gHostFakeStack;
const void *gHostStack;
size_t gHostStackBytes;
void *gHostTsanFiber;

void acquire(Edge *edge) {
    if (__tsan_acquire) __tsan_acquire(edge);
}

void release(Edge *edge) {
    if (__tsan_release) __tsan_release(edge);
}

// A random number: splitmix64, by Sebastiano Vigna, in the public domain.
uint64_t randomBits() {
    uint64_t z = gRandomState += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

template <typename T>
void shuffleOrder(std::vector<T> *order) {
    for (size_t i = order->size(); i > 1; --i)
        std::swap((*order)[i - 1], (*order)[(randomBits() >> 32) * i >> 32]);
}

// Tells sanitizers that the next instructions run on another stack.
void announceSwitch(void **fakeStack, const void *stack, size_t bytes,
                    void *tsanFiber) {
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(fakeStack, stack, bytes);
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(tsanFiber, kNoOrder);
}

// The compiler wants its longjmp in another function than its setjmp.
__attribute__((noinline, noreturn)) void jumpTo(void **where) {
    __builtin_longjmp(where, 1);
}

// Runs thread until it leaves; called on the scheduler's stack.
__attribute__((noinline)) void resume(Thread *thread) {
    gCurrent = thread;
    threadIdx = thread->index;
    gUntilStop = gMeanStop == kFewStops
                     ? kFewStops
                     : int64_t(1 + randomBits() % uint64_t(2 * gMeanStop));
    thread->begun = true;
    thread->polls = false;
    announceSwitch(&gHostFakeStack, thread->stack, kStackBytes,
                   thread->tsanFiber);
    if (__builtin_setjmp(gHostJump) == 0) {
        if (thread->started) jumpTo(thread->jump);
        thread->started = true;
        setcontext(&thread->start);
    }
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(gHostFakeStack, nullptr, nullptr);
    gUntilStop = kNoStop;
    gCurrent = nullptr;
}

// Goes back to the scheduler; returns when the thread has its next turn.
__attribute__((noinline)) void leave() {
    Thread *thread = gCurrent;
    do {
        announceSwitch(&thread->fakeStack, gHostStack, gHostStackBytes,
                       gHostTsanFiber);
        if (__builtin_setjmp(thread->jump) == 0) jumpTo(gHostJump);
        if (__sanitizer_finish_switch_fiber)
            __sanitizer_finish_switch_fiber(thread->fakeStack, &gHostStack,
                                            &gHostStackBytes);
        if (gReporting)
            thread->numFrames = backtrace(thread->frames, kMaxFrames);
    } while (gReporting);
}

// The running thread stops being ready; another may be made so again.
void stand(State state) {
    gCurrent->state = state;
    --gNumReady;
}

void makeReady(Thread *thread) {
    thread->state = State::kReady;
    ++gNumReady;
}

// Lets the lanes that wait like waiter go on, with each other's values, if all
// lanes of the mask wait likewise or have ended.
void releaseWarp(Thread *waiter) {
    const int warp = waiter->rank / kWarp;
    Thread *first = &gThreads[warp * kWarp];
    const int lanes = std::min(kWarp, gNumThreads - warp * kWarp);
    cpuRunner::Lanes all;
    all.fill(~uint64_t(0));
    for (int i = 0; i < lanes; ++i) {
        const Thread &t = first[i];
        if (!(waiter->mask >> i & 1) || t.state == State::kEnded) continue;
        if (t.state != State::kAtWarp || t.mask != waiter->mask ||
            t.kind != waiter->kind)
            return;
        all[i] = t.lanes[i];
    }
    const unsigned mask = waiter->mask;
    for (int i = 0; i < lanes; ++i)
        if ((mask >> i & 1) && first[i].state == State::kAtWarp) {
            first[i].lanes = all;
            makeReady(&first[i]);
        }
    ++gWarpsDone[warp];
}

// What a fiber runs: the kernel, once for every block it serves.
void fiberMain() {
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(nullptr, &gHostStack, &gHostStackBytes);
    for (;;) {
        acquire(&gLaunchEdge);
        gCall(gArguments);
        release(&gEndEdge);
        stand(State::kEnded);
        ++gNumEnded;
        // Whoever waits for this thread in its warp waits no longer.
        const int warp = gCurrent->rank / kWarp;
        for (int i = warp * kWarp;
             i < std::min(gNumThreads, (warp + 1) * kWarp); ++i)
            if (gThreads[i].state == State::kAtWarp) releaseWarp(&gThreads[i]);
        leave();
    }
}

void createFiber(Thread *thread) {
    void *stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) {
        std::perror("cpu_runner: no memory for the stack of a thread");
        _exit(1);
    }
    thread->stack = static_cast<char *>(stack);
    getcontext(&thread->start);
    thread->start.uc_stack.ss_sp = stack;
    // Tops at one place in a page would compete for the same lines of the
    // cache.
    thread->start.uc_stack.ss_size = kStackBytes - thread->rank % 64 * 64;
    thread->start.uc_link = nullptr;
    makecontext(&thread->start, fiberMain, 0);
    if (__tsan_create_fiber) thread->tsanFiber = __tsan_create_fiber(0);
}

// The source lines of addresses, as `file:line` in a .cu file; empty where
// there is none. Of inlined code it is the innermost line in such a file.
std::map<void *, std::string> sourceLines(const std::vector<void *> &addresses,
                                          bool functions) {
    std::map<void *, std::string> lines;
    char self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return lines;
    setenv("CPU_RUNNER_SELF", self, 1);
    std::string command = "addr2line -s -C -i -a ";
    command += functions ? "-f " : "";
    command += "-e \"$CPU_RUNNER_SELF\"";
    for (void *address : addresses) {
        char text[32];
        std::snprintf(text, sizeof(text), " %#tx",
                      static_cast<char *>(address) - __executable_start);
        command += text;
    }
    FILE *pipe = popen(command.c_str(), "r");
    if (!pipe) return lines;
    char text[4096];
    void *address = nullptr;
    while (std::fgets(text, sizeof(text), pipe)) {
        const std::string line(text,
                               std::strcspn(text, functions ? "(\n" : " \n"));
        if (line.compare(0, 2, "0x") == 0)
            address =
                std::strtoull(line.c_str(), nullptr, 16) + __executable_start;
        else if (lines[address].empty() &&
                 (functions || line.find(".cu:") != std::string::npos))
            lines[address] = line;
    }
    pclose(pipe);
    return lines;
}

// Ends the program, saying in which kernel and block, and what is wrong.
[[noreturn]] void fail(const std::string &what) {
    void *kernel = const_cast<void *>(gKernel);
    std::string name = sourceLines({kernel}, true)[kernel];
    name.erase(0, name.compare(0, 5, "void ") == 0 ? 5 : 0);
    if (name.empty()) name = "a kernel";
    std::fflush(stdout);
    std::fprintf(stderr, "cpu_runner: %s, block %u: %s\n", name.c_str(),
                 blockIdx.x, what.c_str());
    _exit(1);
}

std::string threads(int count) {
    return std::to_string(count) + (count == 1 ? " thread" : " threads");
}

// Reports a block in which nobody can move.
[[noreturn]] void failDeadlock() {
    if (gNumAtBarrier > 0 && gNumAtBarrier + gNumEnded == gNumThreads) {
        fail("divergent barrier: " + threads(gNumAtBarrier) +
             " at __syncthreads in line " +
             std::to_string(gThreads[gFirstAtBarrier].line) + ", " +
             threads(gNumEnded) + " at the end of the kernel");
    }
    gReporting = true;
    std::vector<void *> addresses;
    for (int i = 0; i < gNumThreads; ++i) {
        Thread *t = &gThreads[i];
        if (t->state == State::kEnded || !t->begun) continue;
        resume(t);
        // A frame's address is that behind the call; the line is the call's.
        for (int f = 0; f < t->numFrames; ++f) {
            t->frames[f] = static_cast<char *>(t->frames[f]) - 1;
            addresses.push_back(t->frames[f]);
        }
    }
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()),
                    addresses.end());
    auto lines = sourceLines(addresses, false);
    std::map<std::string, int> waiting;
    for (int i = 0; i < gNumThreads; ++i) {
        Thread *t = &gThreads[i];
        if (t->state == State::kEnded) continue;
        std::string line = "a line unknown";
        for (int f = t->numFrames - 1; t->begun && f >= 0; --f)
            if (!lines[t->frames[f]].empty()) line = lines[t->frames[f]];
        ++waiting[line];
    }
    std::string what = "deadlock: ";
    for (const auto &place : waiting)
        what += threads(place.second) + " at " + place.first + ", ";
    fail(what + threads(gNumEnded) + " at the end of the kernel");
}

// Poisons shared memory, and makes ThreadSanitizer forget the block before.
// Written by hand: a sanitizer would check memset against its red zones.
void resetShared() {
    for (char *p = cpu_shared_begin; p < cpu_shared_end; p += 8)
        *reinterpret_cast<volatile uint64_t *>(p) = ~uint64_t(0);
    if (!__tsan_java_init) return;
    const size_t bytes = cpu_shared_end - cpu_shared_begin;
    static bool known = false;
    if (!known) __tsan_java_init(cpu_shared_begin, bytes);
    if (known) __tsan_java_free(cpu_shared_begin, bytes);
    __tsan_java_alloc(cpu_shared_begin, bytes);
    known = true;
}

// A number that changes when something changes that other threads can see.
uint64_t fingerprint() {
    uint64_t hash = uint64_t(gNumEnded) << 32 | uint64_t(gNumReady);
    for (const char *p = cpu_shared_begin; p < cpu_shared_end; p += 8)
        hash = (hash ^ *reinterpret_cast<const uint64_t *>(p)) *
                   0x9e3779b97f4a7c15 +
               (hash >> 29);
    return hash + gBarriersDone;
}

// The transaction of a barrier, made on first use.
Transaction *transactionOf(void *barrier) {
    int i = 0;
    while (i < gNumTransactions && gTransactions[i].barrier != barrier) ++i;
    if (i == kMaxTransactions)
        fail("bulk copies on more barriers than the runner has room for");
    if (i == gNumTransactions)
        gTransactions[gNumTransactions++] = {barrier, 0, 0, nullptr};
    return &gTransactions[i];
}

// Makes the arrivals that a barrier has held back, if all bytes have landed.
void settle(Transaction *t) {
    if (t->bytes == 0 && t->arrivals > 0)
        t->arrive(t->barrier, std::exchange(t->arrivals, 0));
}

// Tells ThreadSanitizer that what follows is done by the engine that makes bulk
// copies, each block's its own, until self goes on. Nobody stops in between.
int64_t gStopOfSelf;
void beginEngine() {
    gStopOfSelf = std::exchange(gUntilStop, kNoStop);
    if (__tsan_switch_to_fiber)
        __tsan_switch_to_fiber(gEngines[gThreads == gSets[1]], kNoOrder);
}

void endEngine(void *self) {
    gUntilStop = gStopOfSelf;
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(self, kNoOrder);
}

// Lets a copy land; called on the scheduler's stack.
void land(const Copy &copy) {
    beginEngine();
    std::memcpy(copy.to, copy.from, copy.bytes);
    Transaction *t = transactionOf(copy.barrier);
    t->bytes -= ptrdiff_t(copy.bytes);
    settle(t);
    release(&gEndEdge);
    endEngine(gHostTsanFiber);
}

// Lets the copies land whose time has come.
void landCopies() {
    for (int i = 0; i < gNumCopies;) {
        if (gCopies[i].turns > 0) {
            --gCopies[i++].turns;
            continue;
        }
        const Copy copy = gCopies[i];
        gCopies[i] = gCopies[--gNumCopies];
        land(copy);
    }
}

// Runs one block to its end.
void runBlock() {
    resetShared();
    gBarriersDone = 0;
    gNumCopies = gNumTransactions = 0;
    std::fill(std::begin(gWarpsDone), std::end(gWarpsDone), 0);
    gNumReady = gNumEnded = gNumAtBarrier = 0;
    gMeanStop = kFewStops;
    if (gRandom && randomBits() % 8) gMeanStop = int64_t(2) << randomBits() % 9;
    uint32_t slowWarps = uint32_t(randomBits() & randomBits());
    std::vector<int> order(gNumThreads);
    for (int i = 0; i < gNumThreads; ++i) {
        order[i] = gReverse ? gNumThreads - 1 - i : i;
        Thread *t = &gThreads[i];
        t->rank = i;
        t->index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                    i / blockDim.x / blockDim.y};
        t->begun = t->fenced = t->polls = false;
        t->lastAtomic = nullptr;
        t->slow = gRandom &&
                  ((slowWarps >> (i / kWarp) & 1) || randomBits() % 64 == 0);
        if (!t->stack) createFiber(t);
        makeReady(t);
    }

    uint64_t last = 0;
    int still = 0;
    for (int round = 1; gNumEnded < gNumThreads; ++round) {
        if (gRandom && round % kRoundsPerShuffle == 1) shuffleOrder(&order);
        for (int i : order) {
            landCopies();
            Thread *t = &gThreads[i];
            if (t->state != State::kReady) continue;
            if (gRandom && randomBits() % (t->slow ? 16 : t->polls ? 4 : 1))
                continue;
            resume(t);
        }
        if (gNumReady == 0 && gNumEnded < gNumThreads) failDeadlock();
        if (round % kRoundsPerCheck != 0) continue;
        const uint64_t now = fingerprint();
        still = now == last ? still + 1 : 0;
        last = now;
        if (still == kChecksToDeadlock) failDeadlock();
        if (still < kChecksToCalm) continue;
        gMeanStop = kFewStops;
        for (int i : order) gThreads[i].slow = false;
    }
    if (gNumCopies > 0)
        fail("the kernel ended before its bulk copies had landed");
}

// The device that the runtime calls describe.
constexpr const char *kDeviceName = "CPU (no GPU: answers only)";
constexpr int kCapabilityMajor = 9;
constexpr int kMultiprocessors = 2;
constexpr size_t kDeviceBytes = size_t(1) << 30;
cudaError_t gLastError = cudaSuccess;
std::map<char *, size_t> gAllocations;
size_t gAllocated = 0;
int gEvents = 0;

cudaError_t setError(cudaError_t error) { return gLastError = error; }

// Where a range of memory lies; kNeither: it leaves the allocation it begins
// in.
enum class Where { kHost, kDevice, kNeither };
Where where(const void *pointer, size_t bytes) {
    char *begin = static_cast<char *>(const_cast<void *>(pointer));
    auto next = gAllocations.upper_bound(begin);
    const bool runsInto =
        next != gAllocations.end() && next->first < begin + bytes;
    if (next == gAllocations.begin() ||
        begin >= std::prev(next)->first + std::prev(next)->second)
        return runsInto ? Where::kNeither : Where::kHost;
    const auto &allocation = *std::prev(next);
    return begin + bytes <= allocation.first + allocation.second
               ? Where::kDevice
               : Where::kNeither;
}

// A lesson frees what it allocated, also after a failed check.
struct AtExit {
    ~AtExit() {
        if (gAllocations.empty() && gEvents == 0) return;
        std::fflush(stdout);
        std::fprintf(stderr,
                     "cpu_runner: not freed at the end: %zu allocations, %d "
                     "events\n",
                     gAllocations.size(), gEvents);
        _exit(1);
    }
} gAtExit;

// Reads the schedule, and says in the first line what kind of output follows.
__attribute__((constructor)) void begin() {
    const char *schedule = std::getenv("CPU_RUNNER_SCHEDULE");
    if (!schedule || !*schedule) schedule = "forward";
    char *end;
    gRandomState = std::strtoull(schedule, &end, 10);
    gReverse = std::strcmp(schedule, "reverse") == 0;
    gRandom = end != schedule && *end == '\0';
    if (!gRandom && !gReverse && std::strcmp(schedule, "forward") != 0) {
        std::fprintf(stderr,
                     "cpu_runner: CPU_RUNNER_SCHEDULE is \"%s\": set it to "
                     "forward, reverse or a number.\n",
                     schedule);
        _exit(1);
    }
    std::printf(
        "These are the CPU's answers: no time is measured, and nothing of it "
        "may be published.\n"
        "nan stands where a time would; sizes are reduced, whatever the labels "
        "say.\n");
    // The first backtrace loads a library, for which a fiber has no room.
    void *frame;
    backtrace(&frame, 1);
}

}  // namespace

namespace cpuRunner {

unsigned lane() { return gCurrent->rank % kWarp; }

void syncBlock(int line) {
    Thread *me = gCurrent;
    if (gNumAtBarrier == 0) gFirstAtBarrier = me->rank;
    const int firstLine =
        gNumAtBarrier == 0 ? line : gThreads[gFirstAtBarrier].line;
    if (line != firstLine)
        fail("divergent barrier: thread " + std::to_string(gFirstAtBarrier) +
             " at __syncthreads in line " + std::to_string(firstLine) +
             ", thread " + std::to_string(me->rank) + " in line " +
             std::to_string(line));
    Edge *edge = &gBlockEdges[gBarriersDone % 2];
    release(edge);
    me->line = line;
    stand(State::kAtBlockBarrier);
    if (++gNumAtBarrier == gNumThreads) {
        for (int i = 0; i < gNumThreads; ++i) makeReady(&gThreads[i]);
        gNumAtBarrier = 0;
        ++gBarriersDone;
    }
    leave();
    acquire(edge);
}

Lanes syncWarp(const char *kind, unsigned mask, uint64_t value, bool ordered) {
    Thread *me = gCurrent;
    if (!(mask >> lane() & 1))
        fail("thread " + std::to_string(me->rank) + " calls " + kind +
             " with a mask that leaves it out");
    Edge *edges = gWarpEdges[me->rank / kWarp];
    Edge *edge = &edges[gWarpsDone[me->rank / kWarp] % 2];
    if (ordered) release(edge);
    me->kind = kind;
    me->mask = mask;
    me->lanes[lane()] = value;
    stand(State::kAtWarp);
    releaseWarp(me);
    leave();
    if (ordered) acquire(edge);
    return me->lanes;
}

void noteAtomic(const void *address) {
    Thread *me = gCurrent;
    if (!me) return;
    if (me->fenced && __tsan_switch_to_fiber) {
        __tsan_switch_to_fiber(me->atFence, kNoOrder);
        release(static_cast<Edge *>(const_cast<void *>(address)));
        __tsan_switch_to_fiber(me->tsanFiber, kNoOrder);
    }
    me->lastAtomic = address;
}

void noteFence() {
    Thread *me = gCurrent;
    if (me->lastAtomic)
        acquire(static_cast<Edge *>(const_cast<void *>(me->lastAtomic)));
    me->fenced = true;
    if (!__tsan_switch_to_fiber) return;
    if (!me->atFence) me->atFence = __tsan_create_fiber(0);
    release(&me->fence);
    __tsan_switch_to_fiber(me->atFence, kNoOrder);
    acquire(&me->fence);
    __tsan_switch_to_fiber(me->tsanFiber, kNoOrder);
}

void expectBytes(void *barrier, ptrdiff_t bytes, ptrdiff_t arrivals,
                 Arrive arrive) {
    constexpr ptrdiff_t kMaxBytes = (1 << 20) - 1;
    if (bytes < 0 || bytes > kMaxBytes)
        fail("barrier_arrive_tx expects " + std::to_string(bytes) +
             " bytes, where a barrier counts up to " +
             std::to_string(kMaxBytes));
    Transaction *t = transactionOf(barrier);
    t->bytes += bytes;
    t->arrivals += arrivals;
    t->arrive = arrive;
    settle(t);
}

void copyLate(void *to, const void *from, size_t bytes, void *barrier,
              Arrive arrive) {
    constexpr size_t kUnit = 16;
    constexpr unsigned kLateTurns = 8;
    char *begin = static_cast<char *>(to);
    if (reinterpret_cast<uintptr_t>(to) % kUnit != 0 ||
        reinterpret_cast<uintptr_t>(from) % kUnit != 0 || bytes % kUnit != 0)
        fail("a bulk copy of " + std::to_string(bytes) +
             " bytes: addresses and size must be multiples of 16");
    if (begin < cpu_shared_begin || begin + bytes > cpu_shared_end)
        fail("a bulk copy to where no shared memory is");
    beginEngine();
    acquire(&gLaunchEdge);
    acquire(&gProxyEdge);
    // A look at the barrier: ThreadSanitizer may have forgotten who made it by
    // the time that the copy lands.
    arrive(barrier, 0);
    endEngine(gCurrent->tsanFiber);
    for (size_t first = 0; first < bytes;) {
        size_t size = bytes;
        unsigned turns = gReverse ? 0 : kLateTurns * unsigned(gNumThreads) - 1;
        if (gRandom) {
            size = kUnit * (1 + randomBits() % ((bytes - first) / kUnit));
            turns = unsigned(randomBits() % (1u << randomBits() % 11));
        }
        if (gNumCopies == kMaxCopies)
            fail("more bulk copies at a time than the runner has room for");
        gCopies[gNumCopies++] = {begin + first,
                                 static_cast<const char *>(from) + first, size,
                                 barrier, turns};
        first += size;
    }
}

void noteProxyFence() { release(&gProxyEdge); }

void runGrid(const void *kernel, dim3 grid, dim3 block, void (*call)(void *),
             void *arguments) {
    const uint64_t threads = uint64_t(block.x) * block.y * block.z;
    const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (threads == 0 || threads > kMaxThreads || blocks == 0 ||
        blocks > INT_MAX) {
        setError(cudaErrorInvalidConfiguration);
        return;
    }
    gKernel = kernel;
    gCall = call;
    gArguments = arguments;
    gridDim = grid;
    blockDim = block;
    gNumThreads = int(threads);
    if (__tsan_get_current_fiber) gHostTsanFiber = __tsan_get_current_fiber();
    // Not by a thread of a block: who creates a fiber comes before it.
    for (void *&engine : gEngines)
        if (__tsan_create_fiber && !engine) engine = __tsan_create_fiber(0);
    std::vector<unsigned> order(blocks);
    std::iota(order.begin(), order.end(), 0u);
    if (gReverse) std::reverse(order.begin(), order.end());
    if (gRandom) shuffleOrder(&order);
    release(&gLaunchEdge);
    for (unsigned b : order) {
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        gThreads = gSets[gThreads == gSets[0]];
        runBlock();
    }
    acquire(&gEndEdge);
}

}  // namespace cpuRunner

// Called by the compiler in front of every basic block of the lesson.
extern "C" void __sanitizer_cov_trace_pc() {
    if (--gUntilStop == 0) leave();
}

// What g++ calls around the constructor of a static variable. In a kernel the
// variable is shared, and CUDA runs no constructor for it.
extern "C" int __cxa_guard_acquire(char *done) noexcept {
    return gCurrent == nullptr && !*done;
}

extern "C" void __cxa_guard_release(char *done) noexcept { *done = 1; }
extern "C" void __cxa_guard_abort(char *) noexcept {}

// What libcu++ calls in every wait of a host barrier.
extern "C" int sched_yield() noexcept {
    if (!gCurrent) return 0;
    gCurrent->polls = true;
    leave();
    return 0;
}

extern "C" int nanosleep(const timespec *, timespec *) { return sched_yield(); }

// The clock by which libcu++ decides how to wait stands still in a kernel: a
// seed must run the same schedule every time.
extern "C" int clock_gettime(clockid_t clock, timespec *time) noexcept {
    if (!gCurrent) return int(syscall(SYS_clock_gettime, clock, time));
    *time = {};
    return 0;
}

// The runtime calls that lessons make. Any other does not link.

const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define NAME(error) \
    case error:     \
        return #error;
        NAME(cudaSuccess)
        NAME(cudaErrorInvalidValue)
        NAME(cudaErrorMemoryAllocation)
        NAME(cudaErrorInvalidConfiguration)
        NAME(cudaErrorInvalidResourceHandle)
        default:
            return "an error that the CPU runner does not know";
    }
}

const char *cudaGetErrorString(cudaError_t error) {
    return cudaGetErrorName(error);
}

cudaError_t cudaPeekAtLastError() { return gLastError; }

cudaError_t cudaGetLastError() {
    return std::exchange(gLastError, cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() { return gLastError; }

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    if (device != 0) return setError(cudaErrorInvalidValue);
    std::memset(properties, 0, sizeof(*properties));
    std::strcpy(properties->name, kDeviceName);
    properties->major = kCapabilityMajor;
    properties->minor = 0;
    properties->multiProcessorCount = kMultiprocessors;
    properties->totalGlobalMem = kDeviceBytes;
    properties->warpSize = kWarp;
    properties->maxThreadsPerBlock = kMaxThreads;
    return cudaSuccess;
}

// The clock is no figure of this machine: one kHz.
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device) {
    if (device != 0 || attribute != cudaDevAttrClockRate)
        return setError(cudaErrorInvalidValue);
    *value = 1;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *total = kDeviceBytes;
    *free = kDeviceBytes - gAllocated;
    return cudaSuccess;
}

// Device memory begins as NaNs, so that what nobody stored does not pass.
cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    constexpr size_t kAlignment = 256;
    if (bytes > kDeviceBytes - gAllocated ||
        posix_memalign(pointer, kAlignment, bytes) != 0)
        return setError(cudaErrorMemoryAllocation);
    std::memset(*pointer, 0xff, bytes);
    gAllocations[static_cast<char *>(*pointer)] = bytes;
    gAllocated += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    if (!pointer) return cudaSuccess;
    const auto found = gAllocations.find(static_cast<char *>(pointer));
    if (found == gAllocations.end()) return setError(cudaErrorInvalidValue);
    gAllocated -= found->second;
    gAllocations.erase(found);
    std::free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
    if (where(pointer, bytes) != Where::kDevice)
        return setError(cudaErrorInvalidValue);
    std::memset(pointer, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind) {
    const bool toDevice =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool fromDevice =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (where(to, bytes) != (toDevice ? Where::kDevice : Where::kHost) ||
        where(from, bytes) != (fromDevice ? Where::kDevice : Where::kHost))
        return setError(cudaErrorInvalidValue);
    std::memmove(to, from, bytes);
    return cudaSuccess;
}

// An event holds whether it was recorded.
cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = reinterpret_cast<cudaEvent_t>(new bool(false));
    ++gEvents;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    *reinterpret_cast<bool *>(event) = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) { return gLastError; }

// NaN, so that no time can be taken for a measurement.
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start,
                                 cudaEvent_t stop) {
    *ms = NAN;
    if (*reinterpret_cast<bool *>(start) && *reinterpret_cast<bool *>(stop))
        return cudaSuccess;
    return setError(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete reinterpret_cast<bool *>(event);
    --gEvents;
    return cudaSuccess;
}
