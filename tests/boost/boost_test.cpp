// SPDX-License-Identifier: BSL-1.0
// The half of a program that uses Boost.Asio.
#define COHORT_BOOST_ASIO
#include "half.hpp"

#include "guard.hpp"
#include "watchdog.hpp"

#include <boost/version.hpp>

#if BOOST_VERSION >= 107700
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

#include <string>
#include <thread>

void cohort::test::live_with_boost_asio() { live(); }

namespace boost_test {

namespace {

using namespace cohort::test;

TEST_CASE("boost: coroutines and handlers await groups, next to a half with standalone Asio") {
    const leak_guard guard;
    const watchdog bounded;
    live();
}

TEST_CASE("boost: both halves of a program await groups at once") {
    const leak_guard guard;
    const watchdog bounded;
    std::thread other([] { live_with_standalone_asio(); });
    live_with_boost_asio();
    other.join();
}

TEST_CASE("boost: the library's names say nothing of the Asio") {
    CHECK(cohort::detail::type_name(typeid(cohort::group)) == "cohort::group");
    CHECK(cohort::detail::type_name(typeid(cohort::queue<cohort::event>)) ==
          "cohort::queue<cohort::event>");
}

#if BOOST_VERSION >= 107700
TEST_CASE("boost: a cancelled operation throws what Boost's own operations throw") {
    const leak_guard guard;
    const watchdog bounded;
    boost::asio::io_context io;
    boost::asio::cancellation_signal signal;
    std::exception_ptr why;
    cohort::async_spawn(
        io, cohort::command("sleep", 1000), cohort::options(1),
        [&](std::exception_ptr, cohort::group started) {
            started.async_join(boost::asio::bind_cancellation_slot(
                signal.slot(), [&](std::exception_ptr error, bool) { why = error; }));
            signal.emit(boost::asio::cancellation_type::terminal);
        });
    io.run();
    REQUIRE(why);
    try {
        std::rethrow_exception(why);
    } catch (const boost::system::system_error& error) {
        CHECK(error.code() == boost::asio::error::operation_aborted);
    }
}
#endif

}  // namespace

}  // namespace boost_test
