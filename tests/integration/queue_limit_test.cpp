// SPDX-License-Identifier: BSL-1.0
// Values that are larger than RLIMIT_FSIZE allows a file, and so their memory, to be. The signal
// that comes with the error, SIGXFSZ, has its default action here, which ends the process.
#include "group_test.hpp"
#include "methods.hpp"
#include "start_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace queue_limit_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;

namespace {

/// While such an object lives, a file of this process has at most 1 MiB. SIGXFSZ ends it.
class small_files {
public:
    small_files() {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit small{1 << 20, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
        struct sigaction by_default {};
        by_default.sa_handler = SIG_DFL;
        REQUIRE(::sigaction(SIGXFSZ, &by_default, &action_) == 0);
    }
    small_files(const small_files&) = delete;
    small_files& operator=(const small_files&) = delete;
    ~small_files() {
        ::sigaction(SIGXFSZ, &action_, nullptr);
        ::setrlimit(RLIMIT_FSIZE, &before_);
    }

private:
    rlimit before_{};
    struct sigaction action_ {};
};

/// Larger than what is sent inside a packet, whatever the size of a socket's buffer is.
const std::string& large() {
    static const std::string text(16 << 20, 'x');
    return text;
}

template <class Call>
std::optional<cohort::sharing_error> error_of(Call call) {
    const small_files limited;
    try {
        call();
    } catch (const cohort::sharing_error& e) {
        return e;
    }
    return std::nullopt;
}

void check(const std::optional<cohort::sharing_error>& error) {
    REQUIRE(error);
    CHECK(error->code() == std::errc::file_too_large);
    CHECK(std::string(error->what()).find("RLIMIT_FSIZE") != std::string::npos);
    sigset_t pending;
    REQUIRE(::sigpending(&pending) == 0);
    CHECK(::sigismember(&pending, SIGXFSZ) == 0);
    sigset_t blocked;
    REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
    CHECK(::sigismember(&blocked, SIGXFSZ) == 0);
}

/// The queue has lost nothing, and goes on.
void check_next(queue<std::string>& texts, const std::string& next) {
    CHECK(texts.try_get().timed_out());
    texts.writer().put(next);
    CHECK((*texts.try_get() == next));
}

int length_of(int, const std::string& text) { return static_cast<int>(text.size()); }

}  // namespace

TEST_CASE("queue limit: a value that no file may hold is an error of the blocking put") {
    const leak_guard guard;
    for (const int capacity : {0, 1}) {
        CAPTURE(capacity);
        auto texts = capacity == 0 ? queue<std::string>() : queue<std::string>(capacity);
        texts.keep_both_ends();
        auto writer = texts.writer();
        check(error_of([&] { writer.put(large()); }));
        check_next(texts, "small");
        check(error_of([&] { (void)writer.put(large(), 1s); }));
        check_next(texts, "small");
        check_next(texts, large());
    }
}

TEST_CASE("queue limit: of many values those before one that no file may hold are there") {
    const leak_guard guard;
    queue<std::string> texts;
    texts.keep_both_ends();
    const std::vector<std::string> values{"first", large(), "last"};
    check(error_of([&] { texts.writer().put_all(values); }));
    // What was put before the error is whole, and what follows is not put out of its order.
    auto got = texts.try_get();
    if (got) {
        CHECK((*got == "first"));
        got = texts.try_get();
    }
    CHECK(got.timed_out());
    check_next(texts, "small");
}

GROUP_TEST("queue limit: a value that no file may hold is an error of the awaited put") {
    queue<std::string> texts(2);
    texts.keep_both_ends();
    std::optional<cohort::sharing_error> error;
    {
        const small_files limited;
        try {
            co_await texts.put(large());
        } catch (const cohort::sharing_error& e) {
            error = e;
        }
    }
    check(error);
    check_next(texts, "small");
    co_await texts.put(large());
    CHECK((*texts.try_get() == large()));
}

TEST_CASE("queue limit: arguments that no file may hold are an error of the start") {
    if (default_method() == cohort::start_method::fork)
        return skip("a copy of this process needs no encoding");
    { const leak_guard first_of_all; }
    const leak_guard guard;
    std::optional<cohort::spawn_error> error;
    {
        const small_files limited;
        try {
            (void)ended(cohort::function<length_of>(large()),
                        cohort::options(1).start_method(cohort::start_method::spawn));
        } catch (const cohort::spawn_error& e) {
            error = e;
        }
    }
    REQUIRE(error);
    CHECK(error->code() == std::errc::file_too_large);
    CHECK(error->stage() == "memory file");
    CHECK(ended(cohort::function<length_of>(large())).outcomes[0].result<int>() == 16 << 20);
}

}  // namespace queue_limit_test
