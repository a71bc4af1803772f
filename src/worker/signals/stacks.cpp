// SPDX-License-Identifier: BSL-1.0
#include "worker/signals/stacks.hpp"

#include "base/sys/threads.hpp"
#include "protocol/trace/names.hpp"
#include "protocol/trace/stack.hpp"
#include "worker/signals/signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
