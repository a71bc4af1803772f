// SPDX-License-Identifier: BSL-1.0
// The life of a process that is an agent.
#include "base/sys/descriptors.hpp"
#include "hosts/agent/agent.hpp"
#include "hosts/agent/end_signals.hpp"
#include "hosts/launchers/slurm.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/registry/mark.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace cohort::multihost {
namespace {

/// Longer than any ladder: each group goes its own.
constexpr auto longest_ladder = std::chrono::hours(24 * 365);
constexpr int could_not_begin = 1;
/// Below PIPE_BUF: a pipe that has room takes so much at once.
constexpr std::size_t most_last_words = 3'000;

/// Says why, if standard error takes it: a launcher that is cut off reads no more.
[[noreturn]] void end_with(const std::string& why) noexcept {
    const auto line = "cohort agent: " + why.substr(0, most_last_words) + "\n";
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(could_not_begin);
}

/// Takes the link away from the numbers 0 and 1, so that nothing that a library reads or prints is
/// part of it.
base::unique_fd take_stream(int number) {
    std::error_code error;
    auto taken = base::duplicate(number, error);
    if (!taken)
        end_with("it has no standard " + std::string(number == 0 ? "input" : "output") + ": " +
                 error.message());
    return taken;
}

void replace_streams() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (::fcntl(STDERR_FILENO, F_GETFD) < 0)
        ::dup2(nothing, STDERR_FILENO);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    if (nothing > STDERR_FILENO)
        ::close(nothing);
}

/// What the launcher was given as a worker of the origin's is not this process', nor is what Slurm
/// has told its step.
void forget_launcher() {
    for (const char* name : {"COHORT_INDEX", "COHORT_SIZE", "COHORT_ATTEMPT", "COHORT_ERROR_FILE",
                             "TORCHELASTIC_ERROR_FILE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK",
                             "WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"})
        ::unsetenv(name);
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry)
        all.emplace_back(*entry);
    for (const auto& change : slurm_scrub(all))
        ::unsetenv(change.name.c_str());
}

loop::runtime& start_runtime() {
    auto& runtime = loop::runtime::for_spawn();
    output::start_output(runtime);
    return runtime;
}

/// Returns when all is over.
void live() {
    auto in = take_stream(STDIN_FILENO);
    auto out = take_stream(STDOUT_FILENO);
    replace_streams();
    ::fcntl(out.get(), F_SETFL, ::fcntl(out.get(), F_GETFL) | O_NONBLOCK);
    forget_launcher();
    auto end_signals = catch_end_signals();
    auto& runtime = start_runtime();
    const auto self = std::make_shared<agent>(runtime, std::move(in), std::move(out));
    const auto how = self->live(std::move(end_signals));
    runtime.stop_all_and_wait(longest_ladder);
    if (!how.says_bye)
        end_with(how.why);
    self->say_bye();
}

}  // namespace
}  // namespace cohort::multihost

void cohort::protocol::run_agent() noexcept {
    try {
        multihost::live();
    } catch (const std::exception& e) {
        multihost::end_with(e.what());
    }
    ::_exit(0);
}
