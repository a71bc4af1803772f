// SPDX-License-Identifier: BSL-1.0
// What the exceptions say that a group's end becomes.
#include "base/values/group_end.hpp"
#include "base/values/quantity.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/host_errors.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace failure_text_test {

using namespace cohort;
using detail::outcome_access;

namespace {

outcome worker_on(const std::string& host, int index, cause why) {
    outcome made;
    made.index = index;
    made.pid = 1000 + index;
    made.host = host;
    made.cause = why;
    outcome_access::success(made) = why == cause::returned;
    return made;
}

outcome lost_with(const std::string& host, int index, const std::string& why) {
    auto made = worker_on(host, index, cause::host_lost);
    outcome_access::note(made) = why;
    return made;
}

std::shared_ptr<const detail::group_end> end_of(std::vector<outcome> outcomes, int first_failure) {
    std::vector<std::shared_ptr<const detail::ended_worker>> workers;
    for (auto& one : outcomes) {
        auto worker = std::make_shared<detail::ended_worker>();
        worker->left = std::make_shared<const outcome>(std::move(one));
        workers.push_back(std::move(worker));
    }
    auto end = std::make_shared<detail::group_end>(std::move(workers));
    end->first_failure = first_failure;
    end->hosts = {"node02", "node03"};
    return end;
}

template <class Exception>
Exception thrown_by(const std::shared_ptr<const detail::group_end>& end) {
    try {
        std::rethrow_exception(detail::failure_of(end));
    } catch (const Exception& e) {
        return e;
    }
}

}  // namespace

TEST_CASE("failure text: a worker of another host is named with its host") {
    auto failed = worker_on("node03", 1, cause::exited);
    failed.status = exit_status::from_code(3);
    const auto end = end_of({worker_on("node02", 0, cause::stopped), failed}, 1);
    CHECK(std::string(thrown_by<process_exited_exception>(end).what()) ==
          "process 1 (node03) terminated with exit code 3");
    CHECK(end->report().hosts == std::vector<std::string>{"node02", "node03"});
    CHECK(end->report().outcomes.at(1).host == "node03");

    failed.status = exit_status::from_signal(9, false);
    CHECK(std::string(thrown_by<process_exited_exception>(
                          end_of({worker_on("node02", 0, cause::stopped), failed}, 1))
                          .what()) == "process 1 (node03) terminated with signal SIGKILL");

    error_record error;
    error.trace = "std::runtime_error: no shard 9";
    failed.error = error;
    failed.cause = cause::raised;
    CHECK(std::string(thrown_by<process_raised_exception>(
                          end_of({worker_on("node02", 0, cause::stopped), failed}, 1))
                          .what()) ==
          "\n\n-- Process 1 (node03) terminated with the following error:\n"
          "std::runtime_error: no shard 9");
}

TEST_CASE("failure text: a lost host is named with the reason and the workers lost with it") {
    std::vector<outcome> all;
    for (int i = 0; i < 8; ++i)
        all.push_back(worker_on("node02", i, cause::stopped));
    for (int i = 8; i < 16; ++i)
        all.push_back(lost_with("node03", i, "no beat for 10 s"));
    const auto lost = thrown_by<host_lost>(end_of(all, 9));
    CHECK(std::string(lost.what()) == "host node03 was lost: no beat for 10 s (workers 8 to 15)");
    CHECK(lost.host() == "node03");
    CHECK(lost.error_index() == 8);
    CHECK(lost.error_pid() == 1008);
    CHECK(lost.outcomes().size() == 16);
    CHECK(lost.failed().cause == cause::host_lost);
}

TEST_CASE("failure text: workers that had ended before their host was lost are not lost") {
    const auto lost = thrown_by<host_lost>(end_of(
        {worker_on("a", 0, cause::returned), lost_with("a", 1, ""), lost_with("b", 2, "")}, 1));
    CHECK(std::string(lost.what()) == "host a was lost (worker 1)");
    CHECK(lost.error_index() == 1);
}

TEST_CASE("failure text: another failure that was first is told, though a host was lost later") {
    auto failed = worker_on("a", 0, cause::exited);
    failed.status = exit_status::from_code(3);
    CHECK(std::string(thrown_by<process_exited_exception>(
                          end_of({failed, lost_with("b", 1, "no beat for 10 s")}, 0))
                          .what()) == "process 0 (a) terminated with exit code 3");
}

TEST_CASE("failure text: workers are told as ranges, of many the first ones") {
    const auto text = [](std::vector<int> indices) { return base::workers_text(indices); };
    CHECK(text({3}) == "worker 3");
    CHECK(text({0, 8, 9, 10}) == "workers 0, 8 to 10");
    std::vector<int> odd;
    for (int i = 1; i < 40; i += 2)
        odd.push_back(i);
    CHECK(text(odd) == "workers 1, 3, 5, 7, 9, 11, 13, 15 and 12 more");
}

}  // namespace failure_text_test
