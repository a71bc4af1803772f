// SPDX-License-Identifier: BSL-1.0
#include "cases.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cohort::test {

namespace {

struct shard {
    unsigned number = 1;  // from 1
    unsigned count = 1;
};

shard asked_shard(const char* asked) {
    shard found;
    if (asked != nullptr && (std::sscanf(asked, "%u/%u", &found.number, &found.count) != 2 ||
                             found.number < 1 || found.number > found.count))
        throw std::invalid_argument("COHORT_TEST_SHARD: not as 2/6: " + std::string(asked));
    return found;
}

bool is_selecting = false;

std::set<std::string> lines_of(const char* path) {
    std::ifstream file(path);
    if (!file)
        throw std::invalid_argument("COHORT_TEST_LEFT_OUT: cannot be read: " + std::string(path));
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.insert(line);
    return lines;
}

std::atomic<std::uint64_t>* reached_bits() {
    static auto* const bits = []() -> std::atomic<std::uint64_t>* {
        const char* const path = std::getenv("COHORT_TEST_REACHED");
        const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return nullptr;
        void* const page =
            ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return page == MAP_FAILED ? nullptr : static_cast<std::atomic<std::uint64_t>*>(page);
    }();
    return bits;
}

double processor_seconds() {
    double sum = 0;
    for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        ::getrusage(whose, &used);
        for (const auto& part : {used.ru_utime, used.ru_stime})
            sum += static_cast<double>(part.tv_sec) + static_cast<double>(part.tv_usec) / 1e6;
    }
    return sum;
}

}  // namespace

extern "C" void (*__start_cohort_cases[])();  // by the linker
extern "C" void (*__stop_cohort_cases[])();

void register_cases() {
    for (auto* each = __start_cohort_cases; each != __stop_cohort_cases; ++each)
        (*each)();
    if (std::getenv("COHORT_TEST_SHARD") == nullptr &&
        std::getenv("COHORT_TEST_LEFT_OUT") == nullptr)
        return;
    // doctest gives its cases to reporters only, so the one of this program is asked for them.
    const char* const arguments[] = {"", "--list-test-cases", "--reporters=none"};
    doctest::Context listing(3, arguments);
    is_selecting = true;
    listing.run();
    is_selecting = false;
}

void take_listed_cases(const doctest::QueryData& listed) {
    if (!is_selecting)
        return;
    const auto wanted = asked_shard(std::getenv("COHORT_TEST_SHARD"));
    const char* const path = std::getenv("COHORT_TEST_LEFT_OUT");
    const auto left_out = path == nullptr ? std::set<std::string>() : lines_of(path);
    unsigned place = 0;
    for (unsigned i = 0; i < listed.num_data; ++i) {
        // doctest has no other way to leave out cases that no pattern names.
        auto& one = const_cast<doctest::TestCaseData&>(*listed.data[i]);
        if (left_out.contains(one.m_name))
            one.m_skip = true;
        else
            one.m_skip = place++ % wanted.count != wanted.number - 1;
    }
}

void note_case(const char* title, double seconds, const char* how) {
    auto* const bits = reached_bits();
    if (bits == nullptr)
        return;
    const auto reached = bits->exchange(0);
    static double before = 0;
    const double used = processor_seconds() - std::exchange(before, processor_seconds());
    static auto* const file =
        std::fopen((std::getenv("COHORT_TEST_REACHED") + std::string(".cases")).c_str(), "we");
    if (file == nullptr)
        return;
    std::fprintf(file, "%llx\t%.3f\t%.3f\t%s\t%s\n",
                 static_cast<unsigned long long>(reached), seconds, used, how, title);
    std::fflush(file);
}

}  // namespace cohort::test
