// SPDX-License-Identifier: BSL-1.0
#include "parallel_rows.hpp"

#include "own_cgroup.hpp"
#include "scratch.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace faults {

namespace {

/// The directory, the cgroup and the conditions that a process needs for trials.
class trial_setup {
public:
    explicit trial_setup(std::chrono::milliseconds bound)
        : where_{cgroup_.path(), directory_.file("output"), bound} {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    const conditions& where() const { return where_; }
    std::string printed() const { return cohort::test::read_file(where_.output); }

private:
    const cohort::test::scratch_directory directory_;
    const cohort::test::own_cgroup_of_test cgroup_{"faults"};
    const conditions where_;
};

void print_failure(const row& tried, const trial_result& found, const std::string& printed) {
    fmt::print("[failed] {}: {}\n    alone: faults --only='{}'\n{}", tried.name(), found.wrong,
               tried.name(), printed);
    std::fflush(stdout);
}

void run_row(const row& tried, const baseline& usual, const trial_setup& setup, tally& into) {
    const auto found = run_trial(tried.kind, tried.what, usual.descriptors, setup.where());
    if (std::getenv("COHORT_FAULTS_VERBOSE") != nullptr)
        fmt::print("{}: {}{}\n", tried.name(), found.happened ? "" : "unreached, ", found.first);
    if (!found.wrong.empty()) {
        ++into.failed;
        print_failure(tried, found, setup.printed());
    } else {
        ++(found.happened ? into.passed : into.unreached);
    }
}

tally run_share(const std::vector<row>& rows, const std::map<std::string, baseline>& baselines,
                std::chrono::milliseconds bound, int process, int processes) {
    const trial_setup setup(bound);
    tally result;
    for (auto i = static_cast<std::size_t>(process); i < rows.size();
         i += static_cast<std::size_t>(processes))
        run_row(rows[i], baselines.at(rows[i].kind.name()), setup, result);
    return result;
}

/// A process that runs its share of the rows.
class row_runner {
public:
    template <class Work>
    explicit row_runner(Work work) {
        std::array<int, 2> pipe{};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0 || (pid_ = ::fork()) < 0)
            throw std::runtime_error("no process for a share of the rows");
        if (pid_ == 0) {
            const tally result = work();
            ::_exit(::write(pipe[1], &result, sizeof result) == sizeof result ? 0 : 1);
        }
        ::close(pipe[1]);
        result_ = pipe[0];
    }
    /// Waits for the result. Call this once.
    tally finish() {
        tally result;
        if (::read(result_, &result, sizeof result) != sizeof result) {
            fmt::print("[failed] a process that runs a share of the rows ended early\n");
            result.failed = 1;
        }
        ::close(result_);
        ::waitpid(pid_, nullptr, 0);
        return result;
    }

private:
    pid_t pid_ = 0;
    int result_ = -1;
};

}  // namespace

tally run_rows(const std::vector<row>& rows, const std::map<std::string, baseline>& baselines,
               std::chrono::milliseconds bound, int processes) {
    std::fflush(stdout);
    std::vector<row_runner> all;
    for (int i = 0; i < processes; ++i)
        all.emplace_back([&, i] { return run_share(rows, baselines, bound, i, processes); });
    tally total;
    for (auto& one : all) {
        const auto part = one.finish();
        total.passed += part.passed;
        total.failed += part.failed;
        total.unreached += part.unreached;
    }
    return total;
}

std::map<std::string, baseline> measure_baselines(const std::vector<start_kind>& kinds,
                                                  std::chrono::milliseconds bound,
                                                  std::string& refused) {
    const trial_setup setup(bound);
    std::map<std::string, baseline> all;
    for (const auto& kind : kinds) {
        auto found = run_trial(kind, std::nullopt, {}, setup.where());
        refused = found.refused;
        if (!refused.empty())
            return {};
        if (!found.wrong.empty())
            throw std::runtime_error(fmt::format("{} without a fault: {}\n{}", kind.name(),
                                                 found.wrong, setup.printed()));
        all[kind.name()] = {std::move(found.counts), std::move(found.descriptors)};
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    return all;
}

}  // namespace faults
