// SPDX-License-Identifier: BSL-1.0
// The ends of a group's workers, from their records to the calls that return outcomes.
#include "group/state/group_state.hpp"

#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"
#include "group/supervisor/naming.hpp"

#include <algorithm>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_naming = 10s;

void add_descriptors(outcome& worker, groups::result_descriptors& sent) {
    bool lost = false;
    outcome_access::descriptors(worker) = sent.take(worker.pid, lost);
    if (lost)
        base::patiently([&] {
            add_note(outcome_access::note(worker),
                     "descriptors in its result were lost: this process has no room for more, see "
                     "RLIMIT_NOFILE");
        });
}

}  // namespace

/// The lifecycle does not wait for the names of frames. Calls that return outcomes do, and get them
/// in the order in which the workers ended.
void group_state::worker_ended(groups::worker_end end) {
    auto ended = workers_.extract(end.outcome.index);
    const auto place = ended.mapped().end;
    const auto what = end.verdict.success ? event::worker_ended_well : event::worker_failed;
    verdict_of(end.outcome.index) = std::move(end.verdict);
    if (ended.mapped().results && end.outcome.has_result())
        add_descriptors(end.outcome, *ended.mapped().results);
    sweep_names();
    place->worker->left = base::make_shared_patiently<const outcome>(std::move(end.outcome));
    if (groups::needs_words(*place->worker->left))
        find_words(place);
    else
        has_words(place);
    happen(what);
    go_on_ending();  // for a group that gave up its other workers and waits for this one
}

/// Nobody is to wait for a worker that has ended.
void group_state::break_barriers(int index, const exit_status& how) {
    const pid_t pid = workers_.at(index).process->pid();
    for (const auto& barrier : barriers_)
        if (barrier->page.take_drop(pid))
            barrier->announce();  // it may have been killed before it could
        else
            barrier->break_by({share::barrier_cause::kind::worker_ended, index, how});
}

void group_state::break_barriers(const share::barrier_cause& cause) {
    for (const auto& barrier : barriers_)
        barrier->break_by(cause);
}

/// Removes names of shared memory that the worker was the last to use. A worker that ends by itself
/// has done that, but one that was killed has not. The end of the group waits for it, unless others
/// have filled the directory: a thread goes on then.
void group_state::sweep_names() {
    if (!base::may_have_names())
        return;
    if (ending_.is_held(groups::reason::names)) {
        sweeps_again_ = true;  // one search serves all workers that have ended before it
        return;
    }
    ending_.hold(groups::reason::names);
    runtime_.sweeping().run(
        [] {
            const auto done = base::sweep(base::prefix_of_session(), base::few_entries);
            base::names_sweeper().sweep_left();
            if (!done.is_complete)
                base::names_sweeper().ask();
        },
        [self = shared_from_this()] {
            self->ending_.release(groups::reason::names);
            if (std::exchange(self->sweeps_again_, false))
                self->sweep_names();
            self->go_on_ending();
        });
}

/// Puts an outcome into words on another thread, because the worker decides how long the texts are,
/// and a file with debug information may be on a disk that does not answer.
void group_state::find_words(const std::shared_ptr<unpublished_end>& place) {
    const auto write = [self = shared_from_this(), place](loop::background_thread& where,
                                                          protocol::names* names) {
        auto found =
            base::make_shared_patiently<std::shared_ptr<const outcome>>(place->worker->left);
        where.run([found, names] { *found = groups::in_words(*found, names); },
                  [self, place, found] { self->give_words(place, std::move(*found)); });
    };
    const auto now = std::chrono::steady_clock::now();
    if (runtime_.naming().is_late(now))
        return write(runtime_.parsing(), nullptr);
    place->limit = runtime_.loop().timer().at(
        now + longest_naming, [write, place, &background_thread = runtime_.parsing()] {
            place->limit.reset();
            write(background_thread, nullptr);
        });
    write(runtime_.naming(), &names_);
}

void group_state::give_words(const std::shared_ptr<unpublished_end>& place,
                             std::shared_ptr<const outcome> worker) {
    if (place->has_words)
        return;
    if (place->limit)
        runtime_.loop().timer().cancel(*std::exchange(place->limit, std::nullopt));
    place->worker->left = std::move(worker);
    has_words(place);
}

void group_state::has_words(const std::shared_ptr<unpublished_end>& place) {
    place->has_words = true;
    complete(place);
}

/// The lifecycle does not wait for what a worker has printed either.
void group_state::add_output(int index, output::stream_end printed) {
    const auto found = std::ranges::find_if(unpublished_, [index](const auto& place) {
        return place->worker->left && place->worker->left->index == index;
    });
    if (found == unpublished_.end())
        return;
    const auto place = *found;  // a copy, because its publication takes it out
    place->worker->out = std::move(printed.out);
    place->worker->err = std::move(printed.err);
    base::patiently([&] { add_note(place->worker->note, printed.note); });
    place->has_output = true;
    complete(place);
}

/// If the outcome has all its parts, it is told. With options::logs() its error is written to a
/// file before.
void group_state::complete(const std::shared_ptr<unpublished_end>& place) {
    if (!place->has_words || !place->has_output)
        return;
    const auto& left = place->worker->left;
    if (!logs_ || !left->error || left->success())
        return is_ready(*place);
    logs_->write_error(left, [self = shared_from_this(), place](const std::string& note) {
        base::patiently([&] { add_note(place->worker->note, note); });
        self->is_ready(*place);
    });
}

void group_state::is_ready(unpublished_end& place) {
    place.is_ready = true;
    publish_all();
    go_on_ending();
}

/// Writes the report before the last outcome is told.
void group_state::write_report() {
    if (std::exchange(report_is_begun_, true))
        return;
    const auto last = unpublished_.front();
    auto workers = base::patiently([&] {
        auto all = ended_;
        all.push_back(last->worker);
        return all;
    });
    logs_->write_report(
        [end = end_with(std::move(workers))]() -> const report& { return end->report(); },
        [self = shared_from_this(), last](const std::string& note) {
            // The thread that writes the report may still read the old one.
            last->worker = loop::make_freed_aside<ended_worker>(*last->worker);
            base::patiently([&] { add_note(last->worker->note, note); });
            self->report_is_written_ = true;
            self->publish_all();
            self->go_on_ending();
        });
}

/// Notes that a worker has ended: outcomes are published in this order.
void group_state::add_unpublished(int index) {
    auto& place = workers_.at(index).end = base::make_shared_patiently<unpublished_end>();
    unpublished_.push_back(place);
    ending_.hold(groups::reason::words);
}

void group_state::publish_all() {
    for (auto& queue = unpublished_; !queue.empty() && queue.front()->is_ready; queue.pop_front()) {
        if (logs_ && !report_is_written_ && ended_.size() + 1 == verdicts_.size())
            return write_report();
        publish(queue.front()->worker);
        ending_.release(groups::reason::words);
    }
}

void group_state::publish(const std::shared_ptr<const ended_worker>& worker) {
    snapshot_.note_end(worker);
    ended_.push_back(worker);
    tell_next();
}

void group_state::tell_next() {
    while (told_ < ended_.size() && next_waiters_.has_one()) {
        completion one;
        one.next = ended_[told_];
        if (!next_waiters_.complete_first(one))
            return;
        ++told_;
    }
}

}  // namespace cohort::detail::inline v0_1
