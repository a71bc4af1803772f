// SPDX-License-Identifier: BSL-1.0
// std::rethrow_if_nested on the process exception gives the worker's exception as its own type.
#include "trace_support.hpp"

#include <cohort/error_type.hpp>

#include <doctest/doctest.h>

#include <any>
#include <cerrno>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace rethrow_test {

using namespace cohort::test;

/// Taught.
class overdrawn : public std::runtime_error {
public:
    explicit overdrawn(std::string of) : std::runtime_error("overdrawn: " + of), account(of) {}
    std::string account;
};
/// Derived from what is known, not taught itself.
class badly_overdrawn : public overdrawn {
public:
    using overdrawn::overdrawn;
};
/// Taught, with a name of more than a thousand characters.
template <class... Parts>
class named_by : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
using number_by_name = std::map<std::string, std::vector<std::pair<long, std::string>>>;
using long_named = named_by<number_by_name, std::set<number_by_name>, std::deque<number_by_name>>;

class odd_error {};

/// Taught, but the code for it fails in the worker, or in the parent.
class unsaved : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
class unloaded : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class own_category : public std::error_category {
public:
    const char* name() const noexcept override { return "own"; }
    std::string message(int) const override { return "of our own"; }
};

}  // namespace rethrow_test

template <>
inline const cohort::error_type<rethrow_test::overdrawn>
    cohort::taught_error<rethrow_test::overdrawn>{
        [](const rethrow_test::overdrawn& e) { return e.account; },
        [](const std::string& account) { return rethrow_test::overdrawn(account); }};
template <>
inline const cohort::error_type<rethrow_test::long_named>
    cohort::taught_error<rethrow_test::long_named>{
        [](const rethrow_test::long_named& e) { return std::string(e.what()); },
        [](const std::string& text) { return rethrow_test::long_named(text); }};
template <>
inline const cohort::error_type<rethrow_test::unsaved> cohort::taught_error<rethrow_test::unsaved>{
    [](const rethrow_test::unsaved& e) -> std::string { throw std::logic_error(e.what()); },
    [](const std::string& text) { return rethrow_test::unsaved(text); }};
template <>
inline const cohort::error_type<rethrow_test::unloaded>
    cohort::taught_error<rethrow_test::unloaded>{
        [](const rethrow_test::unloaded&) { return 1; },
        [](int) -> rethrow_test::unloaded { throw std::logic_error("can't be made"); }};

namespace rethrow_test {

namespace {

std::vector<std::function<void()>> throwers() {
    return {
        [] { throw std::logic_error("text"); },
        [] { throw std::invalid_argument("text"); },
        [] { throw std::domain_error("text"); },
        [] { throw std::length_error("text"); },
        [] { throw std::out_of_range("text"); },
        [] { throw std::runtime_error("text"); },
        [] { throw std::range_error("text"); },
        [] { throw std::overflow_error("text"); },
        [] { throw std::underflow_error("text"); },
        [] { throw std::system_error(EACCES, std::generic_category(), "text"); },
        [] { throw std::system_error(EACCES, std::system_category()); },
        [] { throw std::ios_base::failure("text"); },
        [] { throw std::future_error(std::future_errc::broken_promise); },
        [] { throw std::bad_alloc(); },
        [] { throw std::bad_array_new_length(); },
        [] { throw std::bad_cast(); },
        [] { throw std::bad_typeid(); },
        [] { throw std::bad_exception(); },
        [] { throw std::exception(); },
        [] { throw std::bad_function_call(); },
        [] { throw std::bad_weak_ptr(); },
        [] { throw std::bad_any_cast(); },
        [] { throw std::bad_optional_access(); },
        [] { throw std::bad_variant_access(); },
        [] { throw std::regex_error(std::regex_constants::error_brace); },
    };
}
constexpr int throwers_count = 25;

void throw_standard(int, int which) { throwers().at(static_cast<std::size_t>(which))(); }

void throw_one_of_own(int, int which) {
    static const rethrow_test::own_category own;
    switch (which) {
    case 0:
        throw rethrow_test::badly_overdrawn("savings");
    case 1:
        throw rethrow_test::odd_error();
    case 2:
        throw unsaved("can't be saved");
    case 3:
        throw unloaded("can't be made");
    case 4:
        throw std::system_error(1, own, "text");
    default:
        throw 42;
    }
}
constexpr int own_count = 6;

void throw_long_named(int) { throw rethrow_test::long_named("by any name"); }
void throw_text(int) { throw std::string("a string"); }
void throw_taught(int) { throw overdrawn("savings"); }
void exit_with_code(int) { ::_exit(3); }

void throw_of_files(int) {
    const auto code = std::make_error_code(std::errc::no_such_file_or_directory);
    throw std::filesystem::filesystem_error("copy", "from here", "to there", code);
}

void throw_with_causes(int) {
    try {
        try {
            throw overdrawn("savings");
        } catch (...) {
            std::throw_with_nested(std::out_of_range("no such month"));
        }
    } catch (...) {
        std::throw_with_nested(std::system_error(EIO, std::generic_category(), "pay"));
    }
}

asio::awaitable<void> note_cause(std::exception_ptr& into, cohort::group group) {
    try {
        co_await group.join();
    } catch (const cohort::process_exception& error) {
        try {
            std::rethrow_if_nested(error);
        } catch (...) {
            into = std::current_exception();
        }
    }
}

template <class Work>
asio::awaitable<void> run_for_cause(std::exception_ptr& into, Work work) {
    co_await note_cause(into, co_await cohort::spawn(std::move(work), 1));
}

/// What std::rethrow_if_nested throws on an only worker's failure; null: nothing.
template <class Work>
std::exception_ptr cause_of(Work work) {
    std::exception_ptr cause;
    run_coroutine(run_for_cause(cause, std::move(work)));
    return cause;
}

/// The exception in hand: its type and text.
std::string words_of(const std::exception_ptr& exception) {
    try {
        if (exception)
            std::rethrow_exception(exception);
    } catch (const std::exception& e) {
        return std::string(typeid(e).name()) + ": " + e.what();
    } catch (...) {
        return "anything";
    }
    return "nothing";
}

template <class Call>
std::exception_ptr thrown(const Call& call) {
    try {
        call();
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

}  // namespace

TEST_CASE("rethrow: each exception of the standard library comes back as itself") {
    const leak_guard guard;
    const auto all = throwers();
    REQUIRE(all.size() == throwers_count);
    for (int i = 0; i < throwers_count; ++i)
        CHECK(words_of(cause_of(cohort::function<throw_standard>(i))) ==
              words_of(thrown(all[static_cast<std::size_t>(i)])));
}

TEST_CASE("rethrow: a std::system_error keeps its code") {
    const leak_guard guard;
    const auto cause = cause_of(cohort::function<throw_standard>(9));
    try {
        REQUIRE(cause != nullptr);
        std::rethrow_exception(cause);
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::error_code(EACCES, std::generic_category()));
        CHECK(error.code() == std::errc::permission_denied);
    }
}

TEST_CASE("rethrow: a filesystem_error keeps its paths, code and text") {
    const leak_guard guard;
    const auto cause = cause_of(cohort::function<throw_of_files>());
    CHECK(words_of(cause) == words_of(thrown([] { throw_of_files(0); })));
    try {
        REQUIRE(cause != nullptr);
        std::rethrow_exception(cause);
    } catch (const std::filesystem::filesystem_error& error) {
        CHECK(error.path1() == "from here");
        CHECK(error.path2() == "to there");
        CHECK(error.code() == std::errc::no_such_file_or_directory);
    }
}

TEST_CASE("rethrow: a thrown string comes back as a string") {
    const leak_guard guard;
    const auto cause = cause_of(cohort::function<throw_text>());
    REQUIRE(cause != nullptr);
    CHECK_THROWS_AS(std::rethrow_exception(cause), std::string);
}

TEST_CASE("rethrow: the name of a registered type may be long") {
    const leak_guard guard;
    const auto cause = cause_of(cohort::function<throw_long_named>());
    REQUIRE(cause != nullptr);
    CHECK_THROWS_WITH_AS(std::rethrow_exception(cause), "by any name", rethrow_test::long_named);
}

TEST_CASE("rethrow: a registered type comes back as itself, with its value") {
    const leak_guard guard;
    const auto cause = cause_of(cohort::function<throw_taught>());
    REQUIRE(cause != nullptr);
    try {
        std::rethrow_exception(cause);
    } catch (const overdrawn& error) {
        CHECK(error.account == "savings");
        CHECK(std::string(error.what()) == "overdrawn: savings");
    }
}

TEST_CASE("rethrow: what was nested in the worker's exception is nested in it again") {
    const leak_guard guard;
    auto cause = cause_of(cohort::function<throw_with_causes>());
    std::vector<std::string> texts;
    while (cause)
        try {
            std::rethrow_exception(std::exchange(cause, nullptr));
        } catch (const std::exception& error) {
            texts.emplace_back(error.what());
            cause = thrown([&error] { std::rethrow_if_nested(error); });
        }
    CHECK(texts == std::vector<std::string>{"pay: Input/output error", "no such month",
                                            "overdrawn: savings"});
}

TEST_CASE("rethrow: types that are not known, or can't be made, come as the process exception") {
    const leak_guard guard;
    for (int i = 0; i < own_count; ++i) {
        INFO(i);
        CHECK(words_of(cause_of(cohort::function<throw_one_of_own>(i))) == "nothing");
        CHECK_THROWS_AS(run_coroutine(run_whole(cohort::function<throw_one_of_own>(i), 1)),
                        cohort::process_raised_exception);
    }
}

TEST_CASE("rethrow: a process_exited_exception has no nested exception") {
    const leak_guard guard;
    CHECK(words_of(cause_of(cohort::function<exit_with_code>())) == "nothing");
}

GROUP_TEST("rethrow: every join gives an exception of its own") {
    auto group = co_await cohort::spawn(cohort::function<throw_taught>(), 1);
    std::exception_ptr causes[2];
    for (auto& cause : causes)
        try {
            co_await group.join();
        } catch (const cohort::process_raised_exception& error) {
            cause = thrown([&error] { std::rethrow_if_nested(error); });
        }
    CHECK(words_of(causes[0]) == words_of(causes[1]));
    CHECK((causes[0] && causes[0] != causes[1]));
}

}  // namespace rethrow_test
