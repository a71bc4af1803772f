// SPDX-License-Identifier: BSL-1.0
#include "host.hpp"

#include "filter.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace faults {

namespace {

/// Each worker writes a byte there, so that a false success is detected.
constexpr int proof_number = 7;

int write_proof(int index) {
    // Twice, because the fault of the trial may hit the first write.
    for (int i = 0; i < 2; ++i)
        if (::write(proof_number, "x", 1) == 1)
            return 40 + index;
    return -1;
}

cohort::start_method method_of(std::string_view what) {
    if (what == "fork")
        return cohort::start_method::fork;
    return what == "forkserver" ? cohort::start_method::forkserver : cohort::start_method::spawn;
}

class group_runner {
public:
    explicit group_runner(std::string_view what)
        : what_(what), options_(cohort::options(workers).start_method(method_of(what))) {
        if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) == 0)
            options_.fd(pipe_[1], proof_number);
        if (what_ == "streams")
            options_.stdout_to(cohort::capture())
                .stderr_to(cohort::lines())
                .stdin_from(cohort::bytes("given"));
    }
    group_runner(const group_runner&) = delete;
    group_runner& operator=(const group_runner&) = delete;
    ~group_runner() {
        ::close(pipe_[0]);
        ::close(pipe_[1]);
    }

    /// Runs a group. @return its result, as in host.hpp
    std::string run() { return asio::co_spawn(pool_, start_and_join(), asio::use_future).get(); }

    /// @return `result`, or what is wrong if `result` is a false success
    std::string check(std::string result) const try {
        if (result != "ok")
            return result;
        std::array<char, 16> proofs;
        const auto count = ::read(pipe_[0], proofs.data(), proofs.size());
        if (count != workers)
            return fmt::format("wrong\tjoin() says true, and {} workers ran", count);
        for (const auto& outcome : outcomes_)
            if (const auto wrong = wrong_in(outcome); !wrong.empty())
                return fmt::format("wrong\tworker {} has {}", outcome.index, wrong);
        return result;
    } catch (const cohort::result_error& e) {
        return fmt::format("wrong\tjoin() says true, and {}", e.what());
    }

private:
    bool starts_commands() const { return what_ == "command" || what_ == "streams"; }

    std::string wrong_in(const cohort::outcome& outcome) const {
        if (!starts_commands())
            return outcome.result<int>() == 40 + outcome.index ? "" : "another result";
        // What is missing must have been reported.
        if (what_ == "streams" && outcome.out.text() != "given" && outcome.note().empty())
            return "lost what it has printed";
        return "";
    }

    asio::awaitable<std::string> start_and_join() try {
        cohort::group group;
        if (starts_commands())
            group = co_await cohort::spawn(command_, options_);
        else
            group = co_await cohort::spawn(function_, options_);
        const bool is_true = co_await group.join();
        outcomes_ = group.outcomes();
        co_return is_true ? std::string("ok") : std::string("wrong\tjoin() says false");
    } catch (const cohort::spawn_error& e) {
        co_return fmt::format("spawn_error\t{}\t{}\t{}\t{}", e.stage(), e.error_index(),
                              e.code().value(), e.what());
    } catch (const cohort::process_exception& e) {
        co_return fmt::format("failed\t{}\t{}", e.error_index(), e.what());
    } catch (const std::exception& e) {
        co_return fmt::format("foreign\t{}: {}", typeid(e).name(), e.what());
    }

    const std::string what_;
    // Not an io_context, because that has descriptors whose faults are not the library's.
    asio::thread_pool pool_{1};
    std::array<int, 2> pipe_{-1, -1};
    cohort::options options_;
    const decltype(cohort::function<write_proof>()) function_ = cohort::function<write_proof>();
    cohort::command command_{"/bin/sh", "-c",
                             fmt::format("printf x >&{}; cat; echo told >&2", proof_number)};
    std::vector<cohort::outcome> outcomes_;
};

void send_message(std::string_view text) {
    ::send(channel_number, text.data(), text.size(), MSG_NOSIGNAL);
}

bool await_go() {
    char go = 0;
    return ::recv(channel_number, &go, 1, 0) == 1;
}

}  // namespace

int host_main(std::string_view what, bool is_warm) {
    ::fcntl(channel_number, F_SETFD, FD_CLOEXEC);
    group_runner groups(what);
    if (is_warm)
        if (const auto result = groups.check(groups.run()); result != "ok") {
            send_message("before\t" + result);
            return 1;
        }
    if (const int error = install_filter()) {
        send_message(fmt::format("refused\t{}", error));
        return 1;
    }
    const auto result = groups.run();
    send_message(first_group_ended);
    if (!await_go())
        return 1;
    send_message(groups.check(result));
    group_runner others(what);  // with a pipe of its own for the proofs
    send_message(others.check(others.run()));
    return await_go() ? 0 : 1;
}

}  // namespace faults
