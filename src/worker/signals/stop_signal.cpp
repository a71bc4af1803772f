// SPDX-License-Identifier: BSL-1.0
#include "worker/signals/stop_signal.hpp"

#include "base/sys/threads.hpp"
#include "protocol/registry/registry.hpp"
#include "worker/signals/signals.hpp"

#include <cohort/worker.hpp>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <stop_token>
#include <utility>

#include <csignal>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

namespace cohort::worker {
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
