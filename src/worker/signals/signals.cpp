// SPDX-License-Identifier: BSL-1.0
#include "worker/signals/signals.hpp"

#include "base/sys/threads.hpp"
#include "protocol/registry/registry.hpp"
#include "protocol/trace/names.hpp"
#include "protocol/trace/stack.hpp"

#include <cohort/worker.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <stop_token>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

sigset_t set_of(int signo) noexcept {
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signo);
    return only;
}

}  // namespace

void set_default(int signo) noexcept {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signo, &action, nullptr);
}

void end_by(int signo) noexcept {
    set_default(signo);
    const auto only = set_of(signo);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signo);
}

void take_back(int signo) noexcept {
    const auto only = set_of(signo);
    const timespec at_once{};
    ::sigtimedwait(&only, nullptr, &at_once);
}

namespace {

/// Shared by the stop signal's handler, the thread that acts on the signal, and the callers that
/// want a token or set a hook. Leaked.
struct watch {
    explicit watch(int stop_signal) : signal(stop_signal), owner(::getpid()) {
        ::sem_init(&arrived, 0, 0);
    }

    const int signal;
    const pid_t owner;
    sem_t arrived;
    std::mutex mutex;  // guards the members below
    std::stop_source source;
    bool token_given = false;
    std::function<void(afterwards)> hook;
};

constinit std::atomic<watch*> current_watch{nullptr};
constinit std::mutex starting;
constinit std::mutex reporting;  // held while the worker writes its failure, before it ends
constinit std::atomic<bool> came_while_reporting{false};
constinit std::atomic<pid_t> handler_owner{0};  // in any other process the signal acts at once
constinit std::atomic<bool> forgone{false};     // true: another signal is ending the worker

extern "C" void cohort_stop_signal_held(int signo) {
    if (handler_owner == ::getpid())
        came_while_reporting = true;
    else
        end_by(signo);
}

/// Whether the action of a signal is exactly this handler.
bool acts_by(int signo, void (*handler)(int)) noexcept {
    struct sigaction action {};
    return ::sigaction(signo, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
           action.sa_handler == handler;
}

void act_by(int signo, void (*handler)(int)) noexcept {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    ::sigaction(signo, &action, nullptr);
}

/// Async-signal-safe calls only.
extern "C" void cohort_stop_signal_arrived(int signo) {
    const int saved = errno;
    watch* const w = current_watch.load(std::memory_order_acquire);
    if (w != nullptr && w->owner == ::getpid()) {
        ::sem_post(&w->arrived);
    } else {  // a forked copy of the worker has no thread that waits: take the default action
        end_by(signo);
    }
    errno = saved;
}

void act_on_signals(watch& w) {
    for (;;) {
        while (::sem_wait(&w.arrived) != 0 && errno == EINTR) {
        }
        w.source.request_stop();
        std::unique_lock lock(w.mutex);
        // Decided once. A token that is asked for while the hook runs comes too late, because the
        // worker's completion handlers are not called any more.
        const auto then = w.token_given ? afterwards::goes_on : afterwards::ends_by_signal;
        if (const auto hook = std::exchange(w.hook, nullptr)) {
            lock.unlock();
            hook(then);
            lock.lock();
        }
        lock.unlock();
        if (then == afterwards::ends_by_signal && !forgone) {
            const std::lock_guard held(reporting);
            end_by(w.signal);
        }
    }
}

void install_handler(int signo) noexcept {
    if (acts_by(signo, SIG_DFL) || acts_by(signo, &cohort_stop_signal_held))
        act_by(signo, &cohort_stop_signal_arrived);
}

/// The watch of this worker, started at the first call; null outside a worker and in a forked copy
/// of one.
watch* started_watch() {
    const auto* order = protocol::current_order();
    if (order == nullptr)
        return nullptr;
    const std::lock_guard lock(starting);
    watch* w = current_watch.load(std::memory_order_acquire);
    if (w == nullptr) {
        w = new watch(order->stop_signal);
        // Before the handler is installed, because without the thread it would swallow the signal.
        base::start_thread([w] { act_on_signals(*w); });
        current_watch.store(w, std::memory_order_release);
        install_handler(order->stop_signal);
    }
    return w->owner == ::getpid() ? w : nullptr;
}

}  // namespace

void forget_stop_signal() noexcept {
    current_watch.store(nullptr, std::memory_order_release);
    forgone = false;
    for (auto* mutex : {&starting, &reporting})
        new (mutex) std::mutex;  // in a copy, a thread that was not copied may have held it
}

stop_signal_hold::stop_signal_hold() noexcept : signal_(protocol::current_order()->stop_signal) {
    reporting.lock();
    came_while_reporting = false;
    handler_owner = ::getpid();
    if (acts_by(signal_, SIG_DFL))
        act_by(signal_, &cohort_stop_signal_held);
}

stop_signal_hold::~stop_signal_hold() {
    if (acts_by(signal_, &cohort_stop_signal_held))
        set_default(signal_);
    if (came_while_reporting)
        ::kill(::getpid(), signal_);
    reporting.unlock();
}

void forgo_stop_signal() noexcept {
    forgone = true;
    if (const auto* order = protocol::current_order(); acts_by(order->stop_signal, SIG_DFL))
        act_by(order->stop_signal, SIG_IGN);
}

void on_stop_signal(std::function<void(afterwards)> stop_own_groups) {
    if (watch* const w = started_watch()) {
        const std::lock_guard lock(w->mutex);
        w->hook = std::move(stop_own_groups);
    }
}

}  // namespace cohort::worker

namespace cohort::this_worker {

std::stop_token stop_token() {
    worker::watch* const w = worker::started_watch();
    if (w == nullptr)
        return {};
    const std::lock_guard lock(w->mutex);
    w->token_given = true;
    return w->source.get_token();
}

}  // namespace cohort::this_worker

// After report_stacks() all of this runs in signal handlers: no allocation, no lock.
namespace cohort::worker {
namespace {

constexpr std::size_t most_threads = 64;
constexpr std::chrono::nanoseconds longest_stacks_timeout = std::chrono::milliseconds(200);

struct thread_stack {
    std::atomic<pid_t> id;  // the thread that is asked; 0: none
    std::atomic<bool> reported;
    protocol::raw_stack stack;
};
constinit std::array<thread_stack, most_threads> threads{};
constinit std::atomic_flag asked;
constinit base::futex answers{0};
constinit protocol::raw_json::memory stacks_memory{};
constinit int answer_pipe = -1;
constinit dev_t pipe_device = 0;
constinit ino_t pipe_inode = 0;
constinit int asking_signal = 0;
constinit std::chrono::nanoseconds stacks_timeout{};  // how long threads have to answer
constinit std::array<char, 4096> status_text{};
constinit pid_t owner = 0;
constinit pthread_t main_thread{};
constinit const void* on_first_stack = nullptr;

pid_t own_id() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

/// Whether a thread has blocked the signal, and so will not answer. (proc_pid_status(5), SigBlk)
bool is_deaf(pid_t thread) noexcept {
    constexpr std::string_view directory = "/proc/self/task/";
    constexpr std::string_view name = "\nSigBlk:\t";
    std::array<char, 64> path{};
    directory.copy(path.data(), directory.size());
    auto* end = std::to_chars(path.data() + directory.size(), path.data() + 40, thread).ptr;
    std::strcpy(end, "/status");
    const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? 0 : ::read(file, status_text.data(), status_text.size());
    if (file >= 0)
        ::close(file);
    const std::string_view text(status_text.data(),
                                static_cast<std::size_t>(length < 0 ? 0 : length));
    const auto at = text.find(name);
    std::uint64_t blocked = 0;
    if (at != text.npos)
        std::from_chars(text.data() + at + name.size(), text.data() + text.size(), blocked, 16);
    return (blocked >> (asking_signal - 1) & 1) != 0;
}

/// Lists the other threads that can answer. @return how many
std::uint32_t list_others() noexcept {
    const int directory = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return 0;
    alignas(dirent64) std::array<char, 2048> buffer;
    std::uint32_t count = 0;
    for (long n = 0; (n = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size())) > 0;)
        for (long at = 0; at < n;) {
            const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
            at += entry->d_reclen;
            pid_t id = 0;
            std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), id);
            if (id > 0 && id != own_id() && count + 1 < most_threads && !is_deaf(id))
                threads[++count].id.store(id, std::memory_order_relaxed);
        }
    ::close(directory);
    return count;
}

void await_answers(std::uint32_t wanted) noexcept {
    const auto deadline = base::deadline_in(stacks_timeout);
    for (std::uint32_t came = 0; (came = answers) < wanted;)
        if (!base::wait_on(answers, came, deadline))
            return;
}

void write_all() noexcept {
    struct stat now {};
    if (::fstat(answer_pipe, &now) != 0 || now.st_dev != pipe_device || now.st_ino != pipe_inode)
        return;  // the program has closed the pipe
    protocol::raw_json json(stacks_memory, answer_pipe, -1);
    json.text("{\"threads\":[");
    bool first = true;
    for (const auto& thread : threads) {
        if (!thread.reported.load(std::memory_order_acquire))
            continue;
        json.text(first ? "{\"id\":" : ",{\"id\":").number(thread.id.load());
        json.text(",\"frames\":").frames(thread.stack.calls()).text("}");
        first = false;
    }
    json.text("]}\n").flush();
    take_back(SIGPIPE);  // pending if nobody reads the pipe any more
}

/// An address on this thread's own stack. For all threads but the first, the C library keeps its
/// record of the thread on that stack, and pthread_self() is the record's address.
const void* on_own_stack() noexcept {
    const auto self = ::pthread_self();
    return self == main_thread ? on_first_stack : reinterpret_cast<const void*>(self);
}

void report_own(thread_stack& into, const void* context) noexcept {
    protocol::capture_interrupted(into.stack, context, on_own_stack());
    into.reported.store(true, std::memory_order_release);
}

void answer_for_all(const void* context) noexcept {
    threads[0].id.store(own_id(), std::memory_order_relaxed);
    const auto others = list_others();
    std::uint32_t reached = 0;
    for (std::uint32_t i = 1; i <= others; ++i)
        if (::syscall(SYS_tgkill, owner, threads[i].id.load(), asking_signal) == 0)
            ++reached;
    report_own(threads[0], context);
    await_answers(reached);
    write_all();
}

extern "C" void cohort_stacks_wanted(int, siginfo_t*, void* context) {
    const int saved = errno;
    if (::getpid() == owner) {
        if (!asked.test_and_set()) {
            answer_for_all(context);
        } else {
            for (auto& thread : threads)
                if (thread.id.load(std::memory_order_relaxed) == own_id() &&
                    !thread.reported.load()) {
                    report_own(thread, context);
                    answers.fetch_add(1, std::memory_order_release);
                    base::wake(answers);
                }
        }
    }
    errno = saved;
}

}  // namespace

void report_stacks(int pipe, int signo, std::chrono::nanoseconds grace_period) noexcept {
    ::fcntl(pipe, F_SETFD, FD_CLOEXEC);
    struct sigaction action {};
    struct stat now {};
    if (::sigaction(signo, nullptr, &action) != 0 || action.sa_handler != SIG_DFL ||
        ::fstat(pipe, &now) != 0)
        return;
    answer_pipe = pipe;
    pipe_device = now.st_dev;
    pipe_inode = now.st_ino;
    asking_signal = signo;
    stacks_timeout = std::min(longest_stacks_timeout, grace_period / 4);
    owner = ::getpid();
    main_thread = ::pthread_self();
    on_first_stack = __builtin_frame_address(0);
    asked.clear();
    answers.store(0);
    for (auto& thread : threads) {
        thread.id.store(0);
        thread.reported.store(false);
    }
    action = {};
    action.sa_sigaction = &cohort_stacks_wanted;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigaddset(&action.sa_mask, SIGPIPE);
    ::sigaction(signo, &action, nullptr);
}

}  // namespace cohort::worker
