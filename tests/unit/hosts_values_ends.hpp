// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/values/end_bytes.hpp"

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Ends of workers for the tests of what hosts tell each other.
namespace cohort::test {

inline const multihost::time_point agents_now{std::chrono::hours(1'000)};

inline stack_frame some_frame(std::uint64_t offset) {
    stack_frame made;
    made.function = "train(int)";
    made.file = "/src/train.cpp";
    made.line = 12;
    made.inlined = offset % 2 == 1;
    made.module = "/bin/train";
    made.offset = offset;
    made.build_id = "f00dcafe";
    return made;
}

inline error_record some_error() {
    error_record made;
    made.type = "std::system_error";
    made.message = "open: no shard 9";
    made.trace = "Traceback\nstd::system_error: open: no shard 9";
    made.frames = {some_frame(1), some_frame(2)};
    made.code = 2;
    made.category = "generic";
    made.timestamp = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
    detail::error_record_access::value(made) = std::string("\0\xFF", 2);
    error_record cause;
    cause.type = "std::out_of_range";
    cause.message = "at";
    cause.trace = "at";
    cause.worker = 3;
    cause.pid = 77;
    made.nested = {cause};
    return made;
}

inline crash_record some_crash() {
    crash_record made;
    made.signal = SIGSEGV;
    made.code = 1;
    made.address = ~std::uint64_t{0};
    made.trace = "SIGSEGV at address 0x10";
    made.frames = {some_frame(3)};
    return made;
}

inline activity some_activity() {
    activity made;
    made.id = 4;
    made.name = "io";
    made.state = 'S';
    made.wait_channel = "futex_wait";
    made.frames = {some_frame(5), some_frame(6)};
    return made;
}

/// All members of it differ from their defaults, but for those that stand in ended_worker.
inline outcome some_outcome(int index, int attempt) {
    using detail::outcome_access;
    using namespace std::chrono_literals;
    outcome made;
    made.index = index;
    made.attempt = attempt;
    made.pid = 4711;
    made.status = exit_status::from_signal(SIGSEGV, true);
    made.cause = cause::signaled;
    made.first_failure = true;
    made.started = agents_now - 10s;
    made.ended = agents_now - 3ms;
    made.usage.user_time = 1us;
    made.usage.system_time = 2us;
    made.usage.max_rss = 3;
    made.usage.minor_faults = 4;
    made.usage.major_faults = 5;
    made.usage.voluntary_switches = 6;
    made.usage.involuntary_switches = 7;
    made.error = some_error();
    made.crash = some_crash();
    made.at_stop = {some_activity(), some_activity()};
    outcome_access::is_command(made) = true;
    outcome_access::success(made) = true;
    outcome_access::merges(made) = true;
    outcome_access::has_parents_memory(made) = true;
    outcome_access::work(made) = std::make_shared<const std::string>("train");
    outcome_access::note(made) = "after returning";
    std::vector<std::byte> zero(9);  // 0.0 in CBOR
    zero[0] = std::byte{0xFB};
    outcome_access::result(made) =
        std::make_shared<const detail::result_bytes>(detail::result_bytes{"d", std::move(zero)});
    return made;
}

inline captured some_text(std::string head) {
    captured made;
    made.head = shared_text(std::move(head));
    made.tail = shared_text(std::string("\xFF\0tail", 6));
    made.total = 12'345;
    return made;
}

inline detail::ended_worker worker_with(outcome left) {
    detail::ended_worker made;
    made.left = std::make_shared<const outcome>(std::move(left));
    return made;
}

inline detail::ended_worker some_end(int index) {
    auto made = worker_with(some_outcome(index, 1));
    made.out = some_text("out");
    made.err = some_text("err");
    made.note = "one more line";
    made.restarts = true;
    made.victim = true;
    made.event_time = agents_now - std::chrono::seconds(1);
    return made;
}

/// A host whose clocks have nothing to do with those of the agent.
inline multihost::end_reader_place some_place(int workers) {
    using namespace std::chrono_literals;
    multihost::end_reader_place here;
    here.now = multihost::time_point(77s);
    here.time_of_day = std::chrono::system_clock::time_point(1'800'000'000s);
    here.earliest = here.now - 60s;
    here.workers = workers;
    here.result_limit = 1'000'000;
    return here;
}

}  // namespace cohort::test
