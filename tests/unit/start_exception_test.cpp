// SPDX-License-Identifier: BSL-1.0
// What an exception on a starter's thread becomes: the failure of the start.
#include "group/starts/start_exception.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <new>
#include <ostream>  // doctest prints error codes
#include <stdexcept>
#include <string>
#include <system_error>

namespace start_exception_test {

namespace {

/// The failure, and the text that spawn_error makes of it.
struct told {
    cohort::detail::start_failure failure;
    std::string text;
};

template <class Thrown>
told failure_of(const Thrown& thrown) {
    try {
        throw thrown;
    } catch (...) {
        auto failure = cohort::groups::failure_of_exception(3);
        const cohort::spawn_error error(failure.code, failure.text, failure.index, failure.stage);
        return {failure, error.what()};
    }
}

}  // namespace

TEST_CASE("start exception: a system_error keeps its code and its text") {
    const auto found =
        failure_of(std::system_error(E2BIG, std::system_category(), "arguments and environment"));
    CHECK(found.failure.code == std::errc::argument_list_too_long);
    CHECK(found.failure.stage == "exec");
    CHECK(found.text == "arguments and environment: Argument list too long (worker 3)");
    const auto other = failure_of(std::system_error(EMFILE, std::generic_category()));
    CHECK(other.failure.code == std::errc::too_many_files_open);
}

TEST_CASE("start exception: without memory the stage is that") {
    const auto found = failure_of(std::bad_alloc());
    CHECK(found.failure.code == std::errc::not_enough_memory);
    CHECK(found.failure.stage == "memory");
    CHECK(found.failure.index == 3);
    CHECK(found.text == "preparing the worker: Cannot allocate memory (worker 3)");
}

TEST_CASE("start exception: what is no system_error is reported with its own text") {
    const auto found = failure_of(std::length_error("vector::reserve"));
    CHECK(found.failure.code == std::errc::operation_canceled);
    CHECK(found.failure.stage == "exec");
    CHECK(found.failure.text == "preparing the worker: vector::reserve");
    CHECK(failure_of(7).failure.text ==
          "preparing the worker: an exception that is no std::exception");
}

}  // namespace start_exception_test
