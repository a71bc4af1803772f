// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/stop_report.hpp"

#include "group/starts/asking_signal.hpp"
#include "group/supervisor/process_looks.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/trace/activities.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cohort::groups {

namespace {

using namespace std::chrono_literals;

constexpr auto stacks_timeout = 500ms;  // how long a worker may take to report its stacks

}  // namespace

stop_report::stop_report(loop::runtime& runtime,
                         std::shared_ptr<const detail::group_settings> settings, record_kind kind,
                         pid_t pid, base::unique_fd stacks)
    : runtime_(runtime), settings_(std::move(settings)), kind_(kind), pid_(pid) {
    if (stacks)
        stacks_ = std::make_shared<stacks_answer>(runtime_, std::move(stacks));
}

void stop_report::begin(base::callback<bool()> ask, base::callback<void()> then) {
    if (ask_until_)
        return;
    ask_ = std::move(ask);
    then_ = std::move(then);
    // At most half of the grace period, so that enough of it is left after the stop signal.
    ask_until_ = std::chrono::steady_clock::now() +
                 std::min<std::chrono::nanoseconds>(stacks_timeout, settings_->grace_period / 2);
    runtime_.loop().timer().at(*ask_until_, [self = shared_from_this()] {
        self->not_seen_ = self->then_ && self->activities_.empty();
        self->complete();
    });
    look();
}

void stop_report::look() {
    if (kind_ == record_kind::error_file)
        return process_looks::of(runtime_.loop())
            .ask(pid_, [self = shared_from_this()](std::vector<activity> found) {
                self->saw(std::move(found), false);
            });
    struct found {
        std::vector<activity> activities;
        bool answers = false;
    };
    auto seen = std::make_shared<found>();
    output::call_threads::of(runtime_.loop())
        .run(
            [seen, pid = pid_, asking = groups::asking_signal(*settings_)] {
                seen->activities = protocol::threads_of(pid);
                seen->answers = protocol::catches(pid, asking);
            },
            [self = shared_from_this(), seen] {
                self->saw(std::move(seen->activities), seen->answers);
            });
}

void stop_report::saw(std::vector<activity> activities, bool answers) {
    if (!then_)
        return;  // too late; the pid may have been reused, so this may be another process
    activities_ = std::move(activities);
    answers ? ask_for_stacks() : complete();
}

void stop_report::ask_for_stacks() {
    if (!stacks_ || stacks_->is_hung_up() || !ask_())
        return complete();
    stacks_->await(*ask_until_, [self = shared_from_this()](std::vector<activity> reported) {
        self->activities_.reserve(self->activities_.size() + reported.size());
        protocol::add_frames(self->activities_, std::move(reported));
        self->complete();
    });
}

void stop_report::complete() {
    ask_ = {};
    if (const auto then = std::exchange(then_, {}))
        then();
}

void stop_report::end() noexcept {
    ask_ = {};
    then_ = {};
}

std::string stop_report::note() const {
    return not_seen_ ? "there was no time to see what it was doing before its stop" : "";
}

}  // namespace cohort::groups
