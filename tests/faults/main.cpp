// SPDX-License-Identifier: BSL-1.0
// A table of faults: each system call of a start fails once, at its first, its second and its last
// occurrence. The group then starts as without the fault, or a typed error says what failed;
// nothing is left, and the next group of the same process starts. This process, the test, runs
// each row in a new process, a host.
//   faults                     the table; COHORT_TEST_LONG=1: every occurrence, with every error
//   faults --list              its rows
//   faults --only=ROW          only the rows whose names begin so
//                              COHORT_FAULTS_VERBOSE=1: prints the result of each group
//   faults --bound=SECONDS     the longest time for a host; default: 60
//   faults host KIND WARMTH    a host, as the test starts it
#include "filter.hpp"
#include "host.hpp"
#include "parallel_rows.hpp"

#include <cohort/worker.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/prctl.h>

namespace {

using namespace faults;

struct arguments {
    std::string only;
    std::chrono::seconds bound{60};
    bool lists = false;
};

arguments parse_arguments(int argc, char** argv) {
    arguments asked;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("--only="))
            asked.only = word.substr(7);
        else if (word.starts_with("--bound="))
            asked.bound = std::chrono::seconds(std::atoi(argv[i] + 8));
        else if (word == "--list")
            asked.lists = true;
    }
    return asked;
}

std::vector<start_kind> start_kinds_of(const arguments& asked) {
    auto kinds = all_start_kinds();
    std::erase_if(kinds, [&](const start_kind& kind) {
        const auto name = kind.name();
        return !name.starts_with(asked.only) && !asked.only.starts_with(name);
    });
    return kinds;
}

/// A row that is given by its whole name need not be in the table.
std::vector<row> rows_of(const std::vector<start_kind>& kinds,
                         const std::map<std::string, baseline>& baselines, const arguments& asked) {
    const auto how_many = std::getenv("COHORT_TEST_LONG") ? extent::all : extent::some;
    std::vector<row> rows;
    for (const auto& kind : kinds)
        for (auto& one : rows_for(kind, baselines.at(kind.name()).counts, how_many))
            if (one.name().starts_with(asked.only))
                rows.push_back(std::move(one));
    if (rows.empty())
        rows.push_back(row_named(asked.only));
    return rows;
}

int run_table(const arguments& asked) {
    const auto begin = std::chrono::steady_clock::now();
    std::string refused;
    const auto kinds = start_kinds_of(asked);
    const auto baselines = measure_baselines(kinds, asked.bound, refused);
    if (!refused.empty()) {
        fmt::print("[skipped] faults: seccomp cannot notify here (error {})\n", refused);
        fmt::print("[cases] 0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    const auto rows = rows_of(kinds, baselines, asked);
    if (asked.lists) {
        for (const auto& one : rows)
            fmt::print("{}\n", one.name());
        return 0;
    }
    const auto result = run_rows(rows, baselines, asked.bound, asked.only.empty() ? 2 : 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("[faults] {} rows, {} of them not reached; {:.1f} s\n", rows.size(),
               result.unreached, took.count());
    fmt::print("[cases] {} passed, {} failed, 0 skipped\n", result.passed, result.failed);
    return result.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    ::prctl(is_loaded, 0, 0, 0, 0);
    cohort::worker_main(argc, argv);
    if (argc == 4 && std::string_view(argv[1]) == "host")
        return host_main(argv[2], std::string_view(argv[3]) == "warm");
    return run_table(parse_arguments(argc, argv));
} catch (const std::exception& e) {
    fmt::print("[failed] faults: {}\n[cases] 0 passed, 1 failed, 0 skipped\n", e.what());
    return 1;
}
