// SPDX-License-Identifier: BSL-1.0
// The end of a worker on its way from one host to another.
#include "hosts_values_ends.hpp"

#include <cohort/detail/result.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace hosts_values_end_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace cohort::test;
using namespace std::chrono_literals;
using detail::outcome_access;

namespace {

detail::ended_worker read_back(const detail::ended_worker& end,
                               const end_reader_place& here = some_place(10)) {
    auto read = read_end(write_end(end, agents_now), here);
    REQUIRE_MESSAGE(read, read.problem);
    return std::move(*read);
}

outcome read_back(outcome left) { return *read_back(worker_with(std::move(left))).left; }

std::string problem_of(const detail::ended_worker& end, const end_reader_place& here) {
    auto read = read_end(write_end(end, agents_now), here);
    CHECK_FALSE(read);
    return read.problem;
}

void check_equal(const outcome& a, const outcome& b) {
    CHECK(a.index == b.index);
    CHECK(a.attempt == b.attempt);
    CHECK(a.pid == b.pid);
    CHECK(a.status == b.status);
    CHECK(a.cause == b.cause);
    CHECK(a.first_failure == b.first_failure);
    CHECK(a.ended - a.started == b.ended - b.started);
    CHECK(a.usage == b.usage);
    CHECK(a.error == b.error);
    CHECK(a.crash == b.crash);
    CHECK(a.at_stop == b.at_stop);
    CHECK(a.success() == b.success());
    CHECK(a.note() == b.note());
    CHECK(a.work().empty());  // the origin knows it
    CHECK(outcome_access::is_command(a) == outcome_access::is_command(b));
    CHECK(outcome_access::merges(a) == outcome_access::merges(b));
    CHECK(outcome_access::has_parents_memory(a) == outcome_access::has_parents_memory(b));
    const auto* const one = outcome_access::result(a);
    const auto* const other = outcome_access::result(b);
    REQUIRE((one != nullptr) == (other != nullptr));
    if (one != nullptr)
        CHECK(std::tie(one->type, one->cbor) == std::tie(other->type, other->cbor));
}

void check_equal(const detail::ended_worker& a, const detail::ended_worker& b) {
    check_equal(*a.left, *b.left);
    CHECK(a.out == b.out);
    CHECK(a.err == b.err);
    CHECK(a.note == b.note);
    CHECK(a.restarts == b.restarts);
    CHECK(a.victim == b.victim);
}

}  // namespace

TEST_CASE("hosts values end: all that a worker left arrives") {
    const auto end = some_end(9);
    const auto read = read_back(end);
    check_equal(read, end);
    CHECK(read.victim);
    CHECK(read.restarts);
}

TEST_CASE("hosts values end: its host is the one from which it was read, and no other") {
    auto here = some_place(10);
    here.host = "node03";
    auto left = some_outcome(9, 1);
    left.host = "another";
    CHECK(read_back(worker_with(std::move(left)), here).left->host == "node03");
}

TEST_CASE("hosts values end: a worker that left nothing") {
    outcome left;
    left.index = 0;
    check_equal(read_back(left), left);
}

TEST_CASE("hosts values end: the result of a function can be taken") {
    auto left = some_outcome(9, 0);
    outcome_access::is_command(left) = false;
    left.cause = cause::returned;
    left.status = exit_status::from_code(0);
    CHECK(read_back(left).result<double>() == 0.0);
}

TEST_CASE("hosts values end: every cause, and every kind of status") {
    for (int i = 0; i <= static_cast<int>(cause::output_limit); ++i) {
        outcome left;
        left.index = 0;
        left.cause = static_cast<cause>(i);
        CHECK(read_back(left).cause == left.cause);
    }
    for (const auto& status :
         {exit_status(), exit_status::from_code(0), exit_status::from_code(255),
          exit_status::from_signal(SIGKILL, false), exit_status::from_signal(64, true)}) {
        outcome left;
        left.index = 0;
        left.status = status;
        CHECK(read_back(left).status == status);
    }
}

TEST_CASE("hosts values end: times are ages, counted back from when the end came") {
    const auto here = some_place(10);
    const auto read = read_back(some_end(9), here);
    const auto& left = *read.left;
    CHECK(left.started == here.now - 10s);
    CHECK(left.ended == here.now - 3ms);
    CHECK(left.started_at == here.time_of_day - 10s);
    CHECK(left.ended_at == here.time_of_day - 3ms);
    CHECK(read.event_time == here.now - 1s);
}

TEST_CASE("hosts values end: times stay within the life of the group and in their order") {
    const auto here = some_place(1);
    auto left = some_outcome(0, 0);
    left.started = agents_now - 10h;
    left.ended = agents_now - 20h;  // before its start
    auto end = worker_with(left);
    end.event_time = agents_now + 5h;
    auto read = read_back(end, here);
    CHECK(read.left->started == here.earliest);
    CHECK(read.left->ended == here.earliest);
    CHECK(read.event_time == here.earliest);
    left.started = agents_now - 5s;
    left.ended = agents_now + 1h;
    end = worker_with(left);
    end.event_time = agents_now - 10s;
    read = read_back(end, here);
    CHECK(read.left->ended == here.now);
    CHECK(read.event_time == here.now - 5s);
}

TEST_CASE("hosts values end: a group that begins later than now has no life") {
    auto here = some_place(10);
    here.earliest = here.now + 1s;
    CHECK(read_back(some_end(9), here).left->started == here.now);
}

TEST_CASE("hosts values end: a result that holds descriptors stays, and the note says so") {
    auto left = some_outcome(0, 0);
    // Nobody looks into it.
    const auto some = std::make_shared<int>();
    outcome_access::descriptors(left) = std::shared_ptr<detail::arrived_descriptors>(
        some, reinterpret_cast<detail::arrived_descriptors*>(some.get()));
    const auto read = read_back(left);
    CHECK_FALSE(read.has_result());
    CHECK(read.note() == "after returning; its result holds a shared array, queue, event, barrier "
                         "or mutex, which does not leave its machine");
}

TEST_CASE("hosts values end: without memory for the result the rest is told, and noted") {
    auto end = worker_with(some_outcome(0, 0));
    end.out.head = shared_text("printed");
    end.out.total = 7;
    auto read = read_end(write_bare_end(end, agents_now), some_place(10));
    REQUIRE_MESSAGE(read, read.problem);
    CHECK_FALSE(read->left->has_result());
    CHECK(read->left->status == end.left->status);
    CHECK(read->out.head == "");
    CHECK(read->out.lost() == 7);
    CHECK(read->note.ends_with("its result and captured output could not be sent, because its "
                               "agent had no memory for them"));
}

TEST_CASE("hosts values end: texts are bounded and clean") {
    auto left = some_outcome(0, 0);
    outcome_access::note(left) = std::string(3 << 20, '\xFF') + '\0';
    outcome_access::work(left) = std::make_shared<const std::string>(3 << 20, 'w');
    auto crash = some_crash();
    crash.frames.assign(1'000, some_frame(1));
    crash.frames.back().function.assign(10'000, 'f');
    crash.frames.back().build_id = "no number";
    left.crash = crash;
    const auto read = read_back(left);
    CHECK(read.note().size() <= std::size_t{1} << 20);
    CHECK(read.note().find('\0') == std::string::npos);
    CHECK(read.work().size() <= std::size_t{1} << 20);
    REQUIRE(read.crash->frames.size() == 256);
    CHECK(read.crash->frames.back().function == std::string(4'096, 'f'));  // the newest call
    CHECK(read.crash->frames.back().build_id.empty());
}

TEST_CASE("hosts values end: the attempts before it are not told once more") {
    auto end = some_end(9);
    end.past = {std::make_shared<const detail::ended_worker>(some_end(9))};
    CHECK(read_back(end).past.empty());
}

TEST_CASE("hosts values end: what can't be true is refused with a sentence") {
    const auto end = some_end(9);
    CHECK(problem_of(end, some_place(9)) ==
          "the end of a worker can't be read: 9 is not within 0 and 8");
    auto here = some_place(10);
    here.result_limit = 1;
    CHECK(problem_of(end, here) == "the end of a worker can't be read: 9 bytes are more than 1");
    here = some_place(10);
    here.capture_limit = 5;
    CHECK(problem_of(end, here) ==
          "the end of a worker can't be read: a text of 6 bytes is longer than 5");
}

}  // namespace hosts_values_end_test
