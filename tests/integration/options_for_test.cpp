// SPDX-License-Identifier: BSL-1.0
// Settings of single workers, for functions and for commands.
#include "methods.hpp"
#include "start_support.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace options_for_test {

using namespace cohort::test;
using cohort::placement;

namespace {

std::string see(int index) {
    const char* const part = std::getenv("PART");
    const char* const all = std::getenv("ALL");
    return fmt::format("{}: {} {} {}", index, part != nullptr ? part : "-",
                       all != nullptr ? all : "-", ::getpriority(PRIO_PROCESS, 0));
}

void prints(int index) { (void)!::write(STDOUT_FILENO, std::to_string(index).c_str(), 1); }

placement own(int index) {
    placement where;
    if (index != 1)
        where.env("PART", index * 10).nice(index);
    return where;
}

}  // namespace

TEST_CASE("options for: each function has its own, over those of the options") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto report = ended(cohort::function<see>(),
                                  by(method, 3).env("ALL", "all").nice(5).options_for(own));
        REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
        CHECK(report.outcomes[0].template result<std::string>() == "0: 0 all 0");
        CHECK(report.outcomes[1].template result<std::string>() == "1: - all 5");
        CHECK(report.outcomes[2].template result<std::string>() == "2: 20 all 2");
    }
}

TEST_CASE("options for: a command's settings stand over them") {
    const leak_guard guard;
    const auto texts = printed_by_each(cohort::command("sh", "-c", "echo $PART $ALL").env("ALL", 2),
                                       cohort::options().env("ALL", 1).options_for(own), 3);
    CHECK(texts == std::vector<std::string>{"0 2\n", "2\n", "20 2\n"});
    const auto over = printed_by_each(cohort::command("sh", "-c", "echo $PART").env("PART", "over"),
                                      cohort::options().options_for(own), 2);
    CHECK(over == std::vector<std::string>{"over\n", "over\n"});
}

TEST_CASE("options for: each worker has streams and descriptors of its own") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    for (const auto method : all_methods) {
        CAPTURE(method);
        // Where the second has another number free than the first, its record goes there.
        const open_file file("/dev/null");
        const auto make = [&](int index) {
            placement where;
            where.stdout_to(directory.file("own-" + std::to_string(index)));
            if (index == 1)
                where.fd(file.get(), 60).fd(file.get(), 62);
            return where;
        };
        CHECK(ended(cohort::function<prints>(), by(method, 2).options_for(make)).success());
        CHECK(read_file(directory.file("own-0")) == "0");
        CHECK(read_file(directory.file("own-1")) == "1");
    }
}

TEST_CASE("options for: the callable is called on the calling thread, for each index in turn") {
    const leak_guard guard;
    std::vector<int> calls;
    const auto here = std::this_thread::get_id();
    const auto make = [&](int index) {
        CHECK(std::this_thread::get_id() == here);
        calls.push_back(index);
        return placement();
    };
    CHECK(ended(cohort::command("true"), cohort::options(3).options_for(make)).success());
    CHECK(calls == std::vector<int>{0, 1, 2});
}

TEST_CASE("options for: an exception of the callable leaves spawn") {
    const leak_guard guard;
    const auto make = [](int index) -> placement {
        if (index == 1)
            throw std::out_of_range("no such part");
        return {};
    };
    CHECK_THROWS_AS(ended(cohort::command("true"), cohort::options(2).options_for(make)),
                    std::out_of_range);
}

TEST_CASE("options for: a placement is a value, and its setters check what they are given") {
    CHECK(placement() == placement());
    CHECK(placement().nice(1) == placement().nice(1));
    CHECK_FALSE(placement().nice(1) == placement().nice(2));
    CHECK_THROWS_AS(placement().nice(100), std::invalid_argument);
    const auto how = cohort::options(2).options_for(own);
    CHECK(how == cohort::options(how));
}

}  // namespace options_for_test
