// SPDX-License-Identifier: BSL-1.0
#include "group/state/outcome_publisher.hpp"

#include "group/supervisor/symbolize.hpp"
#include "loop/runtime/freed_aside.hpp"

#include <chrono>
#include <utility>

namespace cohort::groups {

using namespace detail;

namespace {

constexpr auto longest_symbolizing = std::chrono::seconds(10);

outcomes::report report_of(const group_settings& settings) noexcept {
    return settings.logs ? outcomes::report::wanted : outcomes::report::not_wanted;
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
      shown_(shown), writes_logs_(settings_->logs.has_value()),
      outcomes_(settings_->nprocs, report_of(*settings_)),
      verdicts_(static_cast<std::size_t>(settings_->nprocs), not_started()),
      waiters_(runtime_, runtime_.loop()) {
    ended_.reserve(verdicts_.size());  // here, because there is nobody to report it to later
    if (settings_->logs)
        logs_.emplace(runtime_, std::move(streams), settings_->flush_timeout);
}

void outcome_publisher::begin(std::weak_ptr<const void> group, base::callback<void()> changed) {
    group_ = std::move(group);
    changed_ = std::move(changed);
}

void outcome_publisher::add(int index) {
    unpublished_[index].worker = loop::make_freed_aside<ended_worker>();
    outcomes_.add(index);
}

void outcome_publisher::set(outcome left, verdict judged) {
    const int index = left.index;
    set_verdict(index, std::move(judged));
    of(index)->left = base::make_shared_patiently<const outcome>(std::move(left));
    note_part(index, part::record);
    if (needs_symbols(*of(index)->left))
        symbolize(index);
    else
        note_part(index, part::symbols);
}

void outcome_publisher::set_output(int index, output::stream_end printed) {
    if (!outcomes_.is_missing(index, part::output))
        return;
    auto& worker = *of(index);
    worker.out = std::move(printed.out);
    worker.err = std::move(printed.err);
    base::patiently([&] { add_note(worker.note, printed.note); });
    note_part(index, part::output);
}

/// On another thread, because the worker decides how long the texts are, and a file with debug
/// information may be on a disk that does not answer.
void outcome_publisher::symbolize(int index) {
    const auto write = [this, keep = group_.lock(), index, left = of(index)->left](
                           loop::background_thread& where, protocol::names* names) {
        auto found = base::make_shared_patiently<std::shared_ptr<const outcome>>(left);
        where.run([found, names] { *found = symbolized(*found, names); },
                  [this, keep, index, found] { set_symbols(index, std::move(*found)); });
    };
    const auto now = std::chrono::steady_clock::now();
    if (runtime_.symbolizing().is_late(now))
        return write(runtime_.parsing(), nullptr);
    unpublished_.at(index).limit =
        runtime_.loop().timer().at(now + longest_symbolizing, [this, write, index] {
            unpublished_.at(index).limit.reset();
            write(runtime_.parsing(), nullptr);
        });
    write(runtime_.symbolizing(), &names_);
}

void outcome_publisher::set_symbols(int index, std::shared_ptr<const outcome> worker) {
    if (!outcomes_.is_missing(index, part::symbols))
        return;
    if (auto& limit = unpublished_.at(index).limit)
        runtime_.loop().timer().cancel(*std::exchange(limit, std::nullopt));
    of(index)->left = std::move(worker);
    note_part(index, part::symbols);
}

void outcome_publisher::note_part(int index, part p) {
    if (p == part::record) {
        const auto& left = *of(index)->left;
        if (writes_logs_ && left.error && !left.success())
            outcomes_.wants_log(index);
    }
    if (outcomes_.note_part(index, p))
        return write_log(index);
    go_on();
}

void outcome_publisher::write_log(int index) {
    logs_->write_error(of(index)->left,
                       [this, keep = group_.lock(), index](const std::string& note) {
                           base::patiently([&] { add_note(of(index)->note, note); });
                           note_part(index, part::log);
                       });
}

void outcome_publisher::write_report() {
    const int last = outcomes_.first();
    auto workers = base::patiently([&] {
        auto all = ended_;
        all.push_back(of(last));
        return all;
    });
    logs_->write_report(
        [end = end_of(std::move(workers))]() -> const report& { return end->report(); },
        [this, keep = group_.lock(), last](const std::string& note) {
            // The thread that writes the report may still read the old one.
            auto& worker = of(last);
            worker = loop::make_freed_aside<ended_worker>(*worker);
            base::patiently([&] { add_note(worker->note, note); });
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
        const auto place = unpublished_.extract(outcomes_.take_first());
        shown_.note_end(place.mapped().worker);
        ended_.push_back(place.mapped().worker);
        hand_out();
    }
    changed_();
}

void outcome_publisher::await_next(receiver to, std::optional<time_point> until) {
    if (handed_out_ == ended_.size() && shown_.end())
        return (void)runtime_.deliver(to, completion());
    waiters_.add(std::move(to), until);
    hand_out();
}

void outcome_publisher::hand_out() {
    while (handed_out_ < ended_.size() && waiters_.has_one()) {
        completion one;
        one.next = ended_[handed_out_];
        if (!waiters_.complete_first(one))
            return;
        ++handed_out_;
    }
}

std::shared_ptr<group_end> outcome_publisher::end() const {
    return end_of(base::patiently([&] { return ended_; }));
}

std::shared_ptr<group_end> outcome_publisher::end_of(
    std::vector<std::shared_ptr<const ended_worker>> workers) const {
    auto end = loop::make_freed_aside<group_end>(std::move(workers));
    end->stopped = life_.stop_was_asked();
    base::patiently([&] { end->name = settings_->name; });
    end->time_limit = settings_->time_limit;
    if (life_.timed_out())
        end->reached_limit = settings_->time_limit;
    end->not_started = static_cast<int>(verdicts_.size() - end->workers().size());
    end->first_failure = first_failure(verdicts_);
    return end;
}

void outcome_publisher::forget_logs() noexcept {
    writes_logs_ = false;
    outcomes_.forget_report();
}

void outcome_publisher::remove_logs(base::callback<void()> then) {
    if (!logs_)
        return then();
    logs_->remove([keep = group_.lock(), then = std::move(then)](const std::string&) { then(); });
}

}  // namespace cohort::groups
