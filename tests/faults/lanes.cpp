// SPDX-License-Identifier: BSL-1.0
#include "lanes.hpp"

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

/// The directory, the cgroup and the conditions that a process needs to try hosts.
class workplace {
public:
    explicit workplace(std::chrono::milliseconds bound)
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

void print_failure(const row& tried, const finding& found, const std::string& printed) {
    fmt::print("[failed] {}: {}\n    alone: faults --only='{}'\n{}", tried.name(), found.wrong,
               tried.name(), printed);
    std::fflush(stdout);
}

void try_row(const row& tried, const usual_course& usual, const workplace& at, tally& into) {
    const auto found = try_host(tried.kind, tried.what, usual.descriptors, at.where());
    if (std::getenv("COHORT_FAULTS_VERBOSE") != nullptr)
        fmt::print("{}: {}{}\n", tried.name(), found.happened ? "" : "unreached, ", found.first);
    if (!found.wrong.empty()) {
        ++into.failed;
        print_failure(tried, found, at.printed());
    } else {
        ++(found.happened ? into.passed : into.unreached);
    }
}

tally work_through_share(const std::vector<row>& rows,
                         const std::map<std::string, usual_course>& usual,
                         std::chrono::milliseconds bound, int lane, int lanes) {
    const workplace at(bound);
    tally result;
    for (auto i = static_cast<std::size_t>(lane); i < rows.size();
         i += static_cast<std::size_t>(lanes))
        try_row(rows[i], usual.at(rows[i].kind.name()), at, result);
    return result;
}

/// A process that works through its share of the rows.
class lane {
public:
    template <class Work>
    explicit lane(Work work) {
        std::array<int, 2> pipe{};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0 || (pid_ = ::fork()) < 0)
            throw std::runtime_error("no process for a lane");
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
            fmt::print("[failed] a process of the judge's ended early\n");
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

tally work_through(const std::vector<row>& rows, const std::map<std::string, usual_course>& usual,
                   std::chrono::milliseconds bound, int lanes) {
    std::fflush(stdout);
    std::vector<lane> all;
    for (int i = 0; i < lanes; ++i)
        all.emplace_back([&, i] { return work_through_share(rows, usual, bound, i, lanes); });
    tally total;
    for (auto& one : all) {
        const auto part = one.finish();
        total.passed += part.passed;
        total.failed += part.failed;
        total.unreached += part.unreached;
    }
    return total;
}

std::map<std::string, usual_course> usual_courses(const std::vector<form>& kinds,
                                                  std::chrono::milliseconds bound,
                                                  std::string& refused) {
    const workplace at(bound);
    std::map<std::string, usual_course> all;
    for (const auto& kind : kinds) {
        auto found = try_host(kind, std::nullopt, {}, at.where());
        refused = found.refused;
        if (!refused.empty())
            return {};
        if (!found.wrong.empty())
            throw std::runtime_error(
                fmt::format("{} without a fault: {}\n{}", kind.name(), found.wrong, at.printed()));
        all[kind.name()] = {std::move(found.counts), std::move(found.descriptors)};
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    return all;
}

}  // namespace faults
