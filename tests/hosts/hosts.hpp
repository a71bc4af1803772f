// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "custom_executor.hpp"
#include "guard.hpp"
#include "reporter.hpp"
#include "watchdog.hpp"

#include <cohort/cohort.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/system_executor.hpp>
#include <asio/thread_pool.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

// The hosts that a group can live on. Each runs from its construction on, on threads of its own, so
// that a case only waits.
namespace cohort::test {

/// A host, whatever its kind. The kinds add get_executor(), of their own type.
class host {
public:
    host() = default;
    host(const host&) = delete;
    host& operator=(const host&) = delete;
    virtual ~host() = default;

    virtual asio::any_io_executor executor() = 0;
    /// True on a thread that runs what was given to executor().
    virtual bool here() const = 0;
    /// Returns when the host has no more work: at once, if nobody promised any.
    virtual void finish() = 0;
    /// False: finish() says nothing, as this host counts no work.
    virtual bool tracks_work() const { return true; }
};

/// An io_context whose threads wait where Asio waits: in epoll, or in io_uring.
template <int Threads>
class context_host : public host {
public:
    context_host() : awake_(io_, asio::steady_timer::time_point::max()) {
        awake_.async_wait([](asio::error_code) {});
        for (int i = 0; i < Threads; ++i)
            threads_.emplace_back([this] { io_.run(); });
    }
    ~context_host() override { finish(); }

    auto get_executor() { return io_.get_executor(); }
    asio::any_io_executor executor() override { return get_executor(); }
    bool here() const override {
        return const_cast<asio::io_context&>(io_).get_executor().running_in_this_thread();
    }
    void finish() override {
        asio::post(io_, [this] { awake_.cancel(); });
        for (auto& thread : threads_)
            if (thread.joinable())
                thread.join();
    }

private:
    asio::io_context io_{Threads};
    asio::steady_timer awake_;
    std::vector<std::thread> threads_;
};
using one_thread = context_host<1>;
using four_threads = context_host<4>;

class pool_host : public host {
public:
    auto get_executor() { return pool_.get_executor(); }
    asio::any_io_executor executor() override { return get_executor(); }
    bool here() const override {
        return const_cast<asio::thread_pool&>(pool_).get_executor().running_in_this_thread();
    }
    void finish() override { pool_.join(); }

private:
    asio::thread_pool pool_{3};
};

/// A strand of another host.
template <class Below>
class strand_of : public host {
public:
    auto get_executor() { return strand_; }
    asio::any_io_executor executor() override { return strand_; }
    bool here() const override { return strand_.running_in_this_thread(); }
    void finish() override { below_.finish(); }

private:
    Below below_;
    asio::strand<decltype(below_.get_executor())> strand_{below_.get_executor()};
};

class system_host : public host {
public:
    auto get_executor() { return asio::system_executor(); }
    asio::any_io_executor executor() override { return get_executor(); }
    bool here() const override { return std::this_thread::get_id() != home_; }
    void finish() override {}
    bool tracks_work() const override { return false; }

private:
    std::thread::id home_ = std::this_thread::get_id();
};

class custom_host : public host {
public:
    auto get_executor() { return context_.get_executor(); }
    asio::any_io_executor executor() override { return get_executor(); }
    bool here() const override { return context_.running_in_this_thread(); }
    void finish() override { context_.join(); }

private:
    custom_context context_;
};

/// A manual_executor that a loop of poll(2) runs.
class manual_host : public host {
public:
    ~manual_host() override {
        asio::post(loop_, [this] { ends_ = true; });
        thread_.join();
    }

    auto get_executor() { return loop_.get_executor(); }
    asio::any_io_executor executor() override { return get_executor(); }
    bool here() const override { return std::this_thread::get_id() == thread_.get_id(); }
    void finish() override {}
    bool tracks_work() const override { return false; }

private:
    void run() {
        pollfd watched{loop_.fd(), POLLIN, 0};
        while (!ends_)
            if (::poll(&watched, 1, -1) > 0)
                loop_.run_ready();
    }

    cohort::manual_executor loop_;
    bool ends_ = false;
    std::thread thread_{[this] { run(); }};
};

#ifdef COHORT_TEST_FEW_HOSTS
#define COHORT_TEST_HOSTS                                                                          \
    cohort::test::one_thread, cohort::test::strand_of<cohort::test::pool_host>,                    \
        cohort::test::custom_host
#else
#define COHORT_TEST_HOSTS                                                                          \
    cohort::test::one_thread, cohort::test::four_threads, cohort::test::pool_host,                 \
        cohort::test::strand_of<cohort::test::four_threads>,                                       \
        cohort::test::strand_of<cohort::test::pool_host>, cohort::test::system_host,               \
        cohort::test::custom_host, cohort::test::manual_host
#endif

/// Why Asio's way to wait does not work on this machine; empty where it does.
inline const std::string& why_no_io_context() {
    static const std::string reason = []() -> std::string {
        try {
            asio::io_context io;
            const asio::steady_timer timer(io);
            return {};
        } catch (const std::exception& error) {
            return std::string("Asio cannot wait here: ") + error.what();
        }
    }();
    return reason;
}

/// Runs a check of one host in a case of its own: guarded against leaks and hangs.
template <class Host>
void on(void (*check)(host&)) {
    if (!why_no_io_context().empty())
        return skip(why_no_io_context());
    const leak_guard guard;
    const watchdog bounded;
    Host each;
    check(each);
    each.finish();
}

}  // namespace cohort::test

TYPE_TO_STRING_AS("an io_context with one thread", cohort::test::one_thread);
TYPE_TO_STRING_AS("an io_context with four threads", cohort::test::four_threads);
TYPE_TO_STRING_AS("a thread_pool", cohort::test::pool_host);
TYPE_TO_STRING_AS("a strand of an io_context", cohort::test::strand_of<cohort::test::four_threads>);
TYPE_TO_STRING_AS("a strand of a thread_pool", cohort::test::strand_of<cohort::test::pool_host>);
TYPE_TO_STRING_AS("the system_executor", cohort::test::system_host);
TYPE_TO_STRING_AS("a custom executor", cohort::test::custom_host);
TYPE_TO_STRING_AS("a manual_executor", cohort::test::manual_host);
