// SPDX-License-Identifier: BSL-1.0
// Measures what it costs a parent to pass the lines of its workers on.
#include "tee.hpp"

#include "asio_ticker.hpp"
#include "cpu.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

/// While it lives, standard output is /dev/null.
class silence {
public:
    silence() : kept_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
        const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (kept_ < 0 || null < 0 || ::dup2(null, STDOUT_FILENO) < 0)
            throw std::system_error(errno, std::system_category(), "/dev/null");
        ::close(null);
    }
    ~silence() {
        ::dup2(kept_, STDOUT_FILENO);
        ::close(kept_);
    }
    silence(const silence&) = delete;
    silence& operator=(const silence&) = delete;

private:
    int kept_;
};

template <class Sink>
asio::awaitable<void> with_sink(const tee_job& todo, Sink sink) {
    auto report = co_await cohort::run(
        cohort::command(todo.program, todo.bytes_of_one()).stdout_to(sink), todo.workers);
    for (const auto& each : report.outcomes)
        if (!each.note().empty())
            throw std::runtime_error(each.note());
}

run_tee find_tee(const std::string& name) {
    static const std::map<std::string, run_tee> peers = {{"console", tee_by_console},
                                                         {"file", tee_by_file},
                                                         {"splice", tee_by_splice},
                                                         {"boost", tee_by_boost}};
    const auto found = peers.find(name);
    if (found == peers.end())
        throw std::invalid_argument("no such peer: " + name);
    return found->second;
}

}  // namespace

void tee_by_console(const tee_job& todo) {
    run_beside(nullptr, with_sink(todo, cohort::console()));
}

void tee_by_file(const tee_job& todo) {
    auto sink = cohort::file("/dev/./null");  // by its usual name it is a stream that is discarded
    sink.tagged();
    run_beside(nullptr, with_sink(todo, sink));
}

void check_bytes(const tee_job& todo, long long seen) {
    constexpr long long write_size = 4096;
    const long long of_one = (todo.bytes / todo.workers + write_size - 1) / write_size * write_size;
    if (todo.bytes != 0 && seen != of_one * todo.workers)
        throw std::runtime_error(
            fmt::format("{} bytes came through, {} were written", seen, of_one * todo.workers));
}

void tee(const arguments& words) {
    const tee_job todo{words.text("program"), words.number("workers"), words.number("bytes")};
    const run_tee run = find_tee(words.text("peer"));
    const double cpu = cpu_us(RUSAGE_SELF);
    const double cpu_workers = cpu_us(RUSAGE_CHILDREN);
    const auto begun = std::chrono::steady_clock::now();
    {
        const silence while_it_runs;
        run(todo);
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    fmt::print("{{\"cpu_s\": {}, \"workers_s\": {}, \"wall_s\": {}, \"mb_s\": {}}}\n",
               (cpu_us(RUSAGE_SELF) - cpu) / 1e6, (cpu_us(RUSAGE_CHILDREN) - cpu_workers) / 1e6,
               wall.count(), todo.bytes / wall.count() / 1e6);
}

}  // namespace bench
