// SPDX-License-Identifier: BSL-1.0
// Prints one line for each test case that is skipped or fails and one at the end, for tests/run,
// because doctest can neither skip a case that has begun nor count such cases.
#include "reporter.hpp"

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <mutex>

namespace cohort::test {

namespace {

struct current_state {
    std::mutex mutex;  // the watchdog's thread asks for the name
    std::string name;
    bool skipped = false;
};

current_state& current() {
    static auto* const state = new current_state;
    return *state;
}

class counting_reporter : public doctest::IReporter {
public:
    explicit counting_reporter(const doctest::ContextOptions& options) : options_(options) {}

    void test_case_start(const doctest::TestCaseData& test) override {
        const std::lock_guard lock(current().mutex);
        current().name = test.m_name;
        current().skipped = false;
    }
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
        const std::lock_guard lock(current().mutex);
        const char* how = "passed";
        if (stats.failure_flags != 0) {
            how = "failed";
            ++failed_;
            std::printf("[failed] %s\n", current().name.c_str());
            std::fflush(stdout);
        } else if (current().skipped) {
            how = "skipped";
            ++skipped_;
        } else {
            ++passed_;
        }
        note_case(current().name.c_str(), stats.seconds, how);
        current().name.clear();
    }
    void test_run_end(const doctest::TestRunStats&) override {
        if (options_.count || options_.list_test_cases || options_.help || options_.version)
            return;
        std::printf("[cases] %d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
        std::fflush(stdout);
    }

    void report_query(const doctest::QueryData& listed) override {
        take_listed_cases(listed);
    }
    void test_run_start() override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}

private:
    const doctest::ContextOptions& options_;
    int passed_ = 0;
    int failed_ = 0;
    int skipped_ = 0;
};

REGISTER_LISTENER("cohort_cases", 1, counting_reporter);

}  // namespace

void skip(const std::string& reason) {
    const std::lock_guard lock(current().mutex);
    current().skipped = true;
    std::printf("[skipped] %s: %s\n", current().name.c_str(), reason.c_str());
    std::fflush(stdout);
}

std::string current_case() {
    const std::lock_guard lock(current().mutex);
    return current().name;
}

}  // namespace cohort::test
