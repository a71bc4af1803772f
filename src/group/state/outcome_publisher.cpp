// SPDX-License-Identifier: BSL-1.0
#include "group/state/outcome_publisher.hpp"

#include "group/supervisor/symbolize.hpp"
#include "loop/runtime/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace cohort::groups {

using namespace detail;

namespace {

constexpr auto longest_symbolizing = std::chrono::seconds(10);

/// Stands for an end whose outcome was published.
constexpr int taken = -1;

/// Of a group on hosts the whole one writes it.
outcomes::report report_of(const group_settings& settings,
                           const output::group_routes& routes) noexcept {
    return settings.logs && !routes.part ? outcomes::report::wanted : outcomes::report::not_wanted;
}

/// To a copy, because another thread may still read what was published.
void add_note_to(std::shared_ptr<const ended_worker>& worker, const std::string& note) {
    if (!worker)
        return;
    auto noted = loop::make_freed_aside<ended_worker>(*worker);
    add_note(noted->note, note);
    worker = std::move(noted);
}

/// Of a worker without an outcome: it has not failed.
verdict not_started() {
    verdict none;
    none.success = true;
    return none;
}

}  // namespace

outcome_publisher::outcome_publisher(services& of, std::shared_ptr<const group_settings> settings,
                                     std::shared_ptr<output::group_streams> streams,
                                     const machine& life, snapshot& shown)
    : runtime_(of.runtime()), settings_(std::move(settings)), names_(of.names()), life_(life),
      shown_(shown), outcomes_(settings_->nprocs, report_of(*settings_, streams->routes())),
      verdicts_(static_cast<std::size_t>(settings_->nprocs), not_started()),
      published_(verdicts_.size()), waiters_(runtime_, runtime_.loop()) {
    if (settings_->logs)
        logs_.emplace(runtime_, std::move(streams), settings_->flush_timeout);
}

void outcome_publisher::begin(std::weak_ptr<const void> group, base::callback<void()> changed,
                              std::vector<std::string> hosts) {
    group_ = std::move(group);
    changed_ = std::move(changed);
    hosts_ = std::move(hosts);
}

void outcome_publisher::add(int end) {
    unpublished_[end].worker = loop::make_freed_aside<ended_worker>();
    outcomes_.add(end);
}

void outcome_publisher::set(int end, outcome left, verdict judged, bool restarts) {
    const bool is_named = !needs_symbols(left);
    note_left(end, std::make_shared<const outcome>(std::move(left)), std::move(judged), restarts);
    if (is_named)
        note_part(end, part::symbols);
    else
        symbolize(end);
}

void outcome_publisher::set_named(int end, std::shared_ptr<const outcome> left, verdict judged,
                                  bool restarts) {
    note_left(end, std::move(left), std::move(judged), restarts);
    note_part(end, part::symbols);
}

void outcome_publisher::note_left(int end, std::shared_ptr<const outcome> left, verdict judged,
                                  bool restarts) {
    const auto& worker = of(end);
    worker->left = std::move(left);
    worker->victim = judged.victim;
    worker->event_time = judged.event_time;
    worker->restarts = restarts;
    if (restarts)
        outcomes_.note_restart(end);
    else
        set_verdict(worker->left->index, std::move(judged));
    note_part(end, part::record);
}

void outcome_publisher::note_restarts(const std::vector<int>& indices) {
    std::set<int> unpublished;
    const auto published = published_.note_restarts(indices);
    for (const int index : indices) {
        set_verdict(index, not_started());
        if (published.contains(index)) {
            shown_.forget_end(index);
            outcomes_.note_restart(taken);
        } else {
            unpublished.insert(index);
        }
    }
    for (auto& [end, each] : unpublished_)
        if (each.worker->left && unpublished.contains(each.worker->left->index) &&
            !each.worker->restarts) {
            each.worker->restarts = true;
            outcomes_.note_restart(end);
        }
}

void outcome_publisher::set_output(int end, output::stream_end printed) {
    if (!outcomes_.is_missing(end, part::output))
        return;
    auto& worker = *of(end);
    worker.out = std::move(printed.out);
    worker.err = std::move(printed.err);
    add_note(worker.note, printed.note);
    note_part(end, part::output);
}

/// On another thread, because the worker decides how long the texts are, and a file with debug
/// information may be on a disk that does not answer.
void outcome_publisher::symbolize(int end) {
    const auto write = [this, keep = group_.lock(), end, left = of(end)->left](
                           loop::background_thread& where, protocol::names* names) {
        auto found = std::make_shared<std::shared_ptr<const outcome>>(left);
        where.run([found, names] { *found = symbolized(*found, names); },
                  [this, keep, end, found] { set_symbols(end, std::move(*found)); });
    };
    const auto now = std::chrono::steady_clock::now();
    if (runtime_.symbolizing().is_late(now))
        return write(runtime_.parsing(), nullptr);
    unpublished_.at(end).limit =
        runtime_.loop().timer().at(now + longest_symbolizing, [this, write, end] {
            unpublished_.at(end).limit.reset();
            write(runtime_.parsing(), nullptr);
        });
    write(runtime_.symbolizing(), &names_);
}

void outcome_publisher::set_symbols(int end, std::shared_ptr<const outcome> worker) {
    if (!outcomes_.is_missing(end, part::symbols))
        return;
    if (auto& limit = unpublished_.at(end).limit)
        runtime_.loop().timer().cancel(*std::exchange(limit, std::nullopt));
    of(end)->left = std::move(worker);
    note_part(end, part::symbols);
}

void outcome_publisher::note_part(int end, part p) {
    if (p == part::record) {
        const auto& left = *of(end)->left;
        if (logs_ && logs_->takes_errors() && left.error && !left.success())
            outcomes_.wants_log(end);
    }
    if (outcomes_.note_part(end, p))
        return write_log(end);
    go_on();
}

void outcome_publisher::write_log(int end) {
    logs_->write_error(of(end)->left, [this, keep = group_.lock(), end](const std::string& note) {
        add_note(of(end)->note, note);
        note_part(end, part::log);
    });
}

void outcome_publisher::write_report() {
    const int last = outcomes_.first();
    published_.add_past_to(*of(last));
    auto workers = published_.last();
    workers[static_cast<std::size_t>(of(last)->left->index)] = of(last);
    logs_->write_report(
        [end = end_of(std::move(workers))]() -> const report& { return end->report(); },
        [this, keep = group_.lock(), last](const std::string& note) {
            // The thread that writes the report may still read the old one.
            auto& worker = of(last);
            worker = loop::make_freed_aside<ended_worker>(*worker);
            add_note(worker->note, note);
            outcomes_.note_report();
            go_on();
        });
}

/// Publishes what can be published.
void outcome_publisher::go_on() {
    for (auto next = outcomes_.next(); next != outcome_step::wait; next = outcomes_.next()) {
        if (next == outcome_step::write_report) {
            write_report();
            continue;
        }
        auto worker = std::move(unpublished_.extract(outcomes_.take_first()).mapped().worker);
        published_.add_past_to(*worker);
        if (!worker->restarts)
            shown_.note_end(worker);
        published_.add(std::move(worker));
        hand_out();
    }
    changed_();
}

void outcome_publisher::await_next(receiver to, std::optional<time_point> until) {
    if (!published_.first_untold() && shown_.end())
        return (void)runtime_.deliver(to, completion());
    waiters_.add(std::move(to), until);
    hand_out();
}

void outcome_publisher::hand_out() {
    while (const auto* next = waiters_.has_one() ? published_.first_untold() : nullptr) {
        completion one;
        one.next = *next;
        if (!waiters_.complete_first(one))
            return;
        published_.pop_untold();
    }
}

std::shared_ptr<group_end> outcome_publisher::end() const { return end_of(published_.last()); }

std::shared_ptr<group_end> outcome_publisher::end_of(
    std::vector<std::shared_ptr<const ended_worker>> workers) const {
    const int first = first_of_failures();
    if (const auto why = why_first(verdicts_, first); !why.empty())
        add_note_to(workers.at(static_cast<std::size_t>(first)), why);
    std::erase(workers, nullptr);
    auto end = loop::make_freed_aside<group_end>(std::move(workers));
    end->stopped = life_.stop_was_asked();
    end->name = settings_->name;
    end->hosts = hosts_;
    end->time_limit = settings_->time_limit;
    if (life_.timed_out())
        end->reached_limit = settings_->time_limit;
    end->not_started = static_cast<int>(verdicts_.size() - end->workers().size());
    end->first_failure = end->place_of(first);
    return end;
}

/// A group that nobody has stopped has not ended well if a worker has not, also if that seems to be
/// the consequence of another failure, about which nothing came.
int outcome_publisher::first_of_failures() const {
    const int first = first_failure(verdicts_);
    if (first >= 0 || life_.stop_was_asked() || life_.timed_out())
        return first;
    auto all = verdicts_;
    for (auto& each : all)
        each.victim = false;
    return first_failure(all);
}

void outcome_publisher::forget_logs() noexcept {
    if (logs_)
        logs_->forget();
    outcomes_.forget_report();
}

void outcome_publisher::remove_logs(base::callback<void()> then) {
    if (!logs_)
        return then();
    logs_->remove([keep = group_.lock(), then = std::move(then)](const std::string&) { then(); });
}

}  // namespace cohort::groups
