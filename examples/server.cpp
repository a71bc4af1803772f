// SPDX-License-Identifier: BSL-1.0
// A TCP server that runs a group of workers for each of its clients.
//   server [port]        0: any free port
//
// A client sends the line `primes LIMIT SECONDS` and gets what its workers print, and why they
// failed if they did, at once. When it hangs up, or its time is over, its workers are stopped. When
// the server ends, all workers are stopped.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

using asio::ip::tcp;
using namespace std::chrono_literals;

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

asio::awaitable<void> work(tcp::socket& client, job asked) {
    auto group = co_await cohort::spawn(
        cohort::function<count_primes>(asked.limit),
        cohort::options(workers).time_limit(asked.seconds * 1s).stdout_to(cohort::lines()));
    co_await say(client, fmt::format("{} workers\n", group.size()));
    // A client that reads slowly loses the oldest lines; no worker waits for it.
    for (;;) {
        const auto line = co_await group.output(1s);
        if (line.ended())
            break;
        std::string text = "still at work\n";  // a client that has gone answers with a reset
        if (line)
            text = fmt::format("worker {}: {}\n", line->index, line->text);
        co_await say(client, std::move(text));
    }
    co_await group.join();  // throws if a worker has failed, or its time was up
    long primes = 0;
    for (const auto& worker : group.outcomes())
        primes += worker.result<long>();
    co_await say(client, fmt::format("{} primes\n", primes));
}

// Ends when the client has gone. The end of what it sends does not mean that: it may have closed
// its sending side only, and wait for the answer.
asio::awaitable<void> hang_up(tcp::socket& client) {
    char ignored[64];
    asio::error_code error;
    while (!error)
        co_await client.async_read_some(asio::buffer(ignored),
                                        asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof)
        co_await client.async_wait(tcp::socket::wait_error,
                                   asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<void> serve(tcp::socket client) {
    std::string line;
    co_await asio::async_read_until(client, asio::dynamic_buffer(line, 64), '\n',
                                    asio::use_awaitable);
    const auto asked = parse(line);
    if (!asked)
        co_return co_await say(client, "please send: primes LIMIT SECONDS\n");

    // The first operation to end cancels the other. Cancelled work drops its group, whose workers
    // are then stopped in the background.
    std::string failure;
    try {
        co_await cohort::first_of(work(client, *asked), hang_up(client));
        co_return;
    } catch (const cohort::group_timed_out&) {
        failure = fmt::format("not done within {}s\n", asked->seconds);
    } catch (const std::exception& error) {
        failure = fmt::format("failed: {}\n", error.what());
    }
    co_await say(client, failure);
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
