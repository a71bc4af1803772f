// SPDX-License-Identifier: BSL-1.0
// A TCP server that runs a group of workers for each of its clients.
//   server [port]        0: any free port
//
// A client sends the line `primes LIMIT SECONDS` and gets what its workers print, and why they
// failed if they did. When it hangs up, or its time is over, its workers are stopped. When the
// server ends, all workers are stopped.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

using asio::ip::tcp;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

constexpr int workers = 2;

bool is_prime(long n) {
    for (long d = 2; d * d <= n; ++d)
        if (n % d == 0)
            return false;
    return n > 1;
}

// Runs in every worker, on its share of the blocks of a thousand numbers.
long count_primes(int index, long limit) {
    const long tenth = limit / 10 + 1;
    long found = 0;
    for (long n = 0; n < limit; ++n) {
        if (n / 1000 % workers == index && is_prime(n))
            ++found;
        if (n % tenth == tenth - 1) {
            fmt::print("{} primes among {}\n", found, n);
            std::fflush(stdout);  // a pipe: the C library would keep the line
        }
    }
    return found;
}

struct job {
    long limit = 0;
    long seconds = 0;
};

std::optional<job> parse(const std::string& line) {
    job asked;
    std::istringstream words(line);
    std::string verb;
    if (words >> verb >> asked.limit >> asked.seconds && verb == "primes" && asked.seconds >= 0)
        return asked;
    return std::nullopt;
}

asio::awaitable<void> say(tcp::socket& client, std::string text) {
    co_await asio::async_write(client, asio::buffer(text), asio::use_awaitable);
}

asio::awaitable<void> work(tcp::socket& client, long limit) {
    auto group = co_await cohort::spawn(cohort::function<count_primes>(limit),
                                        cohort::options(workers).stdout_to(cohort::lines()));
    co_await say(client, fmt::format("{} workers\n", group.size()));
    // A client that reads slowly loses the oldest lines; no worker waits for it.
    while (const auto line = co_await group.output())
        co_await say(client, fmt::format("worker {}: {}\n", line->index, line->text));
    co_await group.join();  // throws if a worker has failed
    long primes = 0;
    for (const auto& worker : group.outcomes())
        primes += worker.result<long>();
    co_await say(client, fmt::format("{} primes\n", primes));
}

// What has failed in the work; empty if nothing has. Asio's || takes only success for an end: after
// an exception of the work it would wait on, for the client or for the deadline.
asio::awaitable<std::string> failure_of(asio::awaitable<void> work) {
    try {
        co_await std::move(work);
    } catch (const std::exception& error) {
        co_return error.what();
    }
    co_return "";
}

asio::awaitable<void> hang_up(tcp::socket& client) {
    char ignored[64];
    asio::error_code error;
    while (!error)
        co_await client.async_read_some(asio::buffer(ignored),
                                        asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<void> serve(tcp::socket client) {
    std::string line;
    co_await asio::async_read_until(client, asio::dynamic_buffer(line, 64), '\n',
                                    asio::use_awaitable);
    const auto asked = parse(line);
    if (!asked)
        co_return co_await say(client, "please send: primes LIMIT SECONDS\n");

    // The first operation to end cancels the others. Cancelled work drops its group, whose workers
    // are then stopped in the background.
    asio::steady_timer deadline(client.get_executor(), asked->seconds * 1s);
    const auto first = co_await (failure_of(work(client, asked->limit)) || hang_up(client) ||
                                 deadline.async_wait(asio::use_awaitable));
    if (first.index() == 2)
        co_await say(client, fmt::format("not done within {}s\n", asked->seconds));
    else if (first.index() == 0 && !std::get<0>(first).empty())
        co_await say(client, fmt::format("failed: {}\n", std::get<0>(first)));
}

asio::awaitable<void> listen(tcp::acceptor& acceptor) {
    for (;;) {
        auto client = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), serve(std::move(client)),
                       [](std::exception_ptr error) {
                           try {
                               if (error)
                                   std::rethrow_exception(error);
                           } catch (const std::exception& e) {
                               fmt::print(stderr, "a client's job ended: {}\n", e.what());
                           }
                       });
    }
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 7777);

    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), port});
    fmt::print("listening at port {}\n", acceptor.local_endpoint().port());
    std::fflush(stdout);
    asio::co_spawn(io, listen(acceptor), asio::detached);

    // main does not wait for clients: groups that still run are stopped and reaped at its end.
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&io](asio::error_code, int) { io.stop(); });
    io.run();
}
