// SPDX-License-Identifier: BSL-1.0
#include "output/streams/stream_sinks.hpp"

#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace cohort::output {

namespace {

/// How a target wants the text split; empty: not at all.
std::optional<splitter::settings> cut_for(const target_plan& plan) {
    if (plan.is_raw)
        return std::nullopt;
    return splitter::settings{detail::default_longest_line, plan.what != target_plan::kind::file};
}

bool is_same(const std::optional<splitter::settings>& a,
             const std::optional<splitter::settings>& b) {
    if (!a || !b)
        return !a && !b;
    return a->longest == b->longest && a->is_screen == b->is_screen;
}

}  // namespace

std::string left_out(std::uint64_t bytes, stream from, std::string_view why) {
    return bytes == 0 ? std::string()
                      : fmt::format("{} bytes of its {} were left out, because {}",
                                    base::with_separators(bytes), to_string(from), why);
}

stream_sinks::stream_sinks(loop::engine& loop, const stream_origin& whose,
                           const stream_route& route, const of_group& group, std::size_t most_left)
    : loop_(loop), origin_(whose), hub_(group.hub), pool_(group.pool), most_over_(most_left) {
    for (const auto& sink : route.sinks)
        if (const auto* capture = std::get_if<capture_route>(&sink)) {
            capture_.emplace(capture->head, capture->tail);
            at_most_ = capture->at_most;
        } else if (const auto* queue = std::get_if<queue_route>(&sink); queue && group.relay) {
            relay_ = {group.relay, queue->full};
        } else if (queue != nullptr) {
            uses_hub_ = true;
            add_consumer(queue->longest == 0 ? std::nullopt
                                             : std::optional(splitter::settings{queue->longest}),
                         {nullptr, queue->full});
        } else {
            const auto& to = std::get<target_route>(sink);
            add_consumer(cut_for(group.plans[to.target]), {group.targets[to.target], to.full});
        }
}

void stream_sinks::add_consumer(std::optional<splitter::settings> how, consumer added) {
    auto found = std::ranges::find_if(cuts_, [&](const cut& c) { return is_same(c.how, how); });
    if (found == cuts_.end()) {
        cut fresh;
        fresh.how = how;
        if (how)
            fresh.cutter.emplace(*how);
        cuts_.push_back(std::move(fresh));
        found = cuts_.end() - 1;
    }
    found->consumers.push_back(std::move(added));
}

void stream_sinks::take(std::string_view bytes) {
    if (relay_.to)
        relay_.to->take(origin_, relay_.full, bytes);
    if (capture_)
        capture_->add(bytes);
    for (auto& each : cuts_)
        split(each, bytes);
    check_limit();
}

void stream_sinks::lose(std::uint64_t lines, std::uint64_t bytes) {
    for (auto& each : cuts_) {
        finish(each);
        if (each.cutter)
            each.cutter.emplace(*each.how);
        for (const auto& consumer : each.consumers)
            if (consumer.to)
                consumer.to->lose(origin_.index, origin_.attempt, origin_.from, {lines, bytes});
            else
                hub_->lose(origin_.index, origin_.attempt, origin_.from, {lines, bytes});
    }
}

void stream_sinks::check_limit() {
    if (at_most_ && exceeded_ && capture_->total() > *at_most_)
        std::exchange(exceeded_, {})(*at_most_);
}

std::shared_ptr<detail::line_run> stream_sinks::new_run(std::size_t size) const {
    auto run = pool_->make(size);
    run->index = origin_.index;
    run->attempt = origin_.attempt;
    run->host = origin_.host;
    run->from = origin_.from;
    run->time = loop_.now();
    run->wall = std::chrono::system_clock::now();
    return run;
}

void stream_sinks::split(cut& by, std::string_view bytes) {
    auto run = new_run(bytes.size());
    by.unpassed += bytes.size();
    if (by.cutter) {
        by.cutter->feed(bytes, *run);
    } else {
        run->text.assign(bytes);
        run->lines.push_back({static_cast<std::uint32_t>(bytes.size()), 0, true});
    }
    if (!run->lines.empty())
        pass_on(by, std::move(run));
}

void stream_sinks::pass_on(cut& to, std::shared_ptr<const detail::line_run> run) {
    const auto unpassed = std::exchange(to.unpassed, 0);
    for (auto& consumer : to.consumers)
        if (!takes(consumer, unpassed)) {
            if (consumer.to)
                consumer.to->leave_out(*run);
            else
                hub_->leave_out(*run);
        } else if (consumer.to) {
            consumer.to->add(run, consumer.full);
            written_[consumer.to] = run->time;
        } else {
            hub_->add(run, consumer.full);
        }
}

/// Whether a consumer that drops nothing takes more. At a worker's end it gets what is in the pipe
/// without having room; but no more than fits in the pipe as it was made, because the worker may
/// have enlarged it and so would decide how much memory this process needs.
bool stream_sinks::takes(consumer& each, std::size_t bytes) {
    if (each.full != when_full::block)
        return true;
    if (each.to ? each.to->has_room() : hub_->has_room())
        return true;
    each.over += bytes;
    return each.over <= most_over_;
}

bool stream_sinks::has_room() {
    const auto go_on = [this] {
        return [reader = reader_] {
            const auto found = reader.lock();
            return found && found->go_on();
        };
    };
    if (relay_.to && relay_.full == when_full::block && !relay_.to->has_room(origin_)) {
        relay_.to->when_room(origin_, go_on());
        return false;
    }
    for (auto& each : cuts_)
        for (auto& consumer : each.consumers) {
            if (consumer.full != when_full::block)
                continue;
            if (consumer.to && !consumer.to->has_room()) {
                consumer.to->when_room(go_on());
                return false;
            }
            if (!consumer.to && !hub_->has_room()) {
                hub_->when_room(go_on());
                return false;
            }
            consumer.over = 0;
        }
    for (auto& each : cuts_)
        each.unpassed = 0;
    return true;
}

void stream_sinks::leave_room() {
    if (uses_hub_)
        hub_->report_room();
}

/// What is left becomes the last line.
void stream_sinks::finish(cut& of) {
    if (!of.cutter)
        return;
    auto run = new_run(of.cutter->held());
    of.cutter->finish(*run);
    if (!run->lines.empty())
        pass_on(of, std::move(run));
}

std::string stream_sinks::trouble() const {
    const char* const name = to_string(origin_.from);
    if (error_ == std::errc::timed_out)
        return fmt::format("its {} was not read to the end, because a process held up its pipe",
                           name);
    if (error_)
        return fmt::format("reading its {}: {}", name, error_.message());
    return {};
}

void stream_sinks::end(std::error_code why) {
    error_ = why;
    for (auto& each : cuts_) {
        finish(each);
        for (const auto& consumer : each.consumers)
            if (consumer.to)
                consumer.to->end_stream(origin_.index, origin_.attempt, origin_.from, loop_.now());
    }
    if (uses_hub_)
        hub_->end_stream(origin_.index, origin_.attempt, origin_.from, origin_.host);
    if (relay_.to)
        relay_.to->end_stream(origin_);
    leave_room();  // this stream may have had the turn for which others wait
}

captured stream_sinks::take_captured() {
    captured kept;
    if (!capture_)
        return kept;
    kept.total = capture_->total();
    kept.head = shared_text(capture_->take_head());
    kept.tail = shared_text(capture_->take_tail());
    capture_.reset();
    return kept;
}

}  // namespace cohort::output
