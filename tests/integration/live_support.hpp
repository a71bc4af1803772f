// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"
#include "watchdog.hpp"

#include <cohort/cohort.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

// Helpers for the tests of live groups: workers that wait for a signal or a gate, and completions
// that a test can look at.
namespace cohort::test {

/// Says that it is ready, then lives until a signal ends it.
inline cohort::command sleeper() {
    return cohort::command("sh", "-c", "echo >&9; exec sleep 1000");
}
/// Like sleeper(), but SIGTERM does not end it.
inline cohort::command stubborn() {
    return cohort::command("sh", "-c", "trap '' TERM; echo >&9; exec sleep 1000");
}
/// Says that it is ready, and ends with `code` when the gate opens.
inline cohort::command gated(int code = 0) {
    return cohort::command("sh", "-c", "echo >&9; read line <&8; exit " + std::to_string(code));
}

/// Records how an operation completes.
template <class T>
class completed {
public:
    auto into() {
        return [this](std::exception_ptr error, T value) {
            ++calls_;
            error_ = std::move(error);
            value_.emplace(std::move(value));
        };
    }
    auto into(asio::cancellation_signal& by) {
        return asio::bind_cancellation_slot(by.slot(), into());
    }

    int calls() const noexcept { return calls_; }
    bool done() const noexcept { return calls_ > 0; }
    /// Completed once, without an error.
    bool well() const noexcept { return calls_ == 1 && !error_; }
    bool aborted() const { return calls_ == 1 && code() == asio::error::operation_aborted; }
    template <class Error>
    bool threw() const {
        try {
            if (error_)
                std::rethrow_exception(error_);
        } catch (const Error&) {
            return true;
        } catch (...) {
        }
        return false;
    }
    std::error_code code() const {
        try {
            if (error_)
                std::rethrow_exception(error_);
        } catch (const std::system_error& e) {
            return e.code();
        } catch (...) {
        }
        return {};
    }
    /// Its value, also beside an error.
    const T& value() const { return value_.value(); }
    /// @throws what the operation threw
    T take() {
        if (error_)
            std::rethrow_exception(error_);
        return std::move(value_.value());
    }

private:
    int calls_ = 0;
    std::exception_ptr error_;
    std::optional<T> value_;
};

/// Runs the context until it has no more work, under a watchdog.
inline void run_out(asio::io_context& context) {
    const watchdog guarded;
    context.restart();  // another context may have dropped the last work, which stops this one
    context.run();
    context.restart();
}

/// Starts workers with `ready` at 9, and returns when each of them is ready.
template <class Work>
cohort::group start_ready(asio::io_context& context, Work work, int count,
                          cohort::options how = 1) {
    ready up(context.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(context, std::move(work),
                        how.nprocs(count).fd(up.child_end(), ready::number), started.into());
    run_out(context);
    auto group = started.take();
    run_coroutine(context, up.wait(count));
    return group;
}

/// Starts workers that end when the gate opens.
inline cohort::group start_gated(asio::io_context& io, const gate& hold, int count) {
    return start_ready(io, gated(), count, cohort::options(1).fd(hold.child_end(), gate::number));
}

/// The processes of this case that are there now, one a line. Leaves out descriptors and files,
/// which may be closed later.
inline std::string processes_left(leak_guard& guard) {
    std::string left;
    std::istringstream all(guard.leftovers(std::chrono::milliseconds(0)));
    for (std::string line; std::getline(all, line);)
        if (line.find("descriptor: ") == line.npos && line.find("file: ") != 0)
            left += line + "\n";
    return left;
}

}  // namespace cohort::test
