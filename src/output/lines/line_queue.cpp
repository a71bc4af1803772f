// SPDX-License-Identifier: BSL-1.0
#include "output/lines/line_queue.hpp"

#include <algorithm>
#include <iterator>

namespace cohort::output {

namespace {

using detail::line_run;

std::size_t cost_of(const line_run::line& line) noexcept {
    return std::max<std::size_t>(line.size, line_queue::smallest_cost);
}

std::size_t cost_of(const line_run& run) noexcept {
    std::size_t cost = 0;
    for (const auto& line : run.lines)
        cost += cost_of(line);
    return cost;
}

/// Whether the run is the line that only reports a loss.
bool only_ends(const line_run& run) noexcept {
    return run.lines.size() == 1 && run.lines[0].size == 0 && !run.lines[0].complete;
}

detail::loss sum(const detail::loss& a, const detail::loss& b) noexcept {
    return {a.lines + b.lines, a.bytes + b.bytes};
}

/// The rest of a run as a run of its own, so that the memory of what was dropped gets free.
std::shared_ptr<const line_run> rest_of(const line_run& run, std::size_t first,
                                        std::size_t offset) {
    auto rest = std::make_shared<line_run>();
    rest->index = run.index;
    rest->attempt = run.attempt;
    rest->host = run.host;
    rest->from = run.from;
    rest->time = run.time;
    rest->wall = run.wall;
    rest->text.assign(run.text, offset);
    rest->lines.assign(run.lines.begin() + static_cast<std::ptrdiff_t>(first), run.lines.end());
    return rest;
}

}  // namespace

template <line_queue::neighbours line_queue::entry::*Link>
void line_queue::chain<Link>::push(entry& e) noexcept {
    (e.*Link).before = last;
    (last ? (last->*Link).after : first) = &e;
    last = &e;
}

template <line_queue::neighbours line_queue::entry::*Link>
void line_queue::chain<Link>::remove(entry& e) noexcept {
    const auto [before, after] = std::exchange(e.*Link, {});
    (before ? (before->*Link).after : first) = after;
    (after ? (after->*Link).before : last) = before;
}

void line_queue::add(std::shared_ptr<const line_run> run, cohort::when_full full) {
    if (run->lines.empty())
        return;
    insert(std::move(run), full);
    make_room();
}

void line_queue::leave_out(const line_run& run) {
    lose(run.index, run.attempt, run.from, {run.lines.size(), run.text.size()});
}

void line_queue::lose(int index, int attempt, cohort::stream from, const detail::loss& lost) {
    stream_state& s = workers_[index].of(from);
    s.lost = sum(s.lost, lost);
    note_attempt(s, attempt);
    count_lost(s, attempt, lost.bytes);
}

void line_queue::note_attempt(stream_state& of, int attempt) noexcept {
    if (std::exchange(of.attempt, attempt) != attempt)
        of.lost_bytes = 0;
}

/// @param attempt  an earlier one, whose losses nobody asks for any more, counts only for all
void line_queue::count_lost(stream_state& of, int attempt, std::uint64_t bytes) noexcept {
    if (attempt == of.attempt)
        of.lost_bytes += bytes;
    lost_bytes_ += bytes;
}

std::uint64_t line_queue::lost_bytes(int index, int attempt, cohort::stream from) const {
    const auto found = workers_.find(index);
    if (found == workers_.end())
        return 0;
    const stream_state& s = found->second.of(from);
    return s.attempt == attempt ? s.lost_bytes : 0;
}

void line_queue::insert(std::shared_ptr<const line_run> run, cohort::when_full full) {
    const int index = run->index;
    worker& w = workers_[index];
    w.is_forgotten = false;
    stream_state& s = w.of(run->from);
    note_attempt(s, run->attempt);
    entry& e = entries_.emplace_back();
    e.place = std::prev(entries_.end());
    e.owner = &w;
    e.lost = std::exchange(s.lost, {});
    s.entries.push(e);
    if (!only_ends(*run)) {
        e.cost = cost_of(*run);
        cost_ += e.cost;
        kept_ += full == when_full::drop_oldest ? 0 : e.cost;
        unread_ += e.cost;
        lines_ += run->lines.size();
        s.end.reset();
    }
    e.run = std::move(run);
    if (full == when_full::drop_oldest) {
        e.may_be_dropped = true;
        w.entries.push(e);
        w.cost += e.cost;
        rank(index, w);
    }
    join_ends(e);
}

void line_queue::end_stream(int index, int attempt, cohort::stream from,
                            std::chrono::steady_clock::time_point at,
                            std::chrono::system_clock::time_point wall,
                            std::shared_ptr<const std::string> host) {
    auto end = std::make_shared<line_run>();
    end->index = index;
    end->attempt = attempt;
    end->host = std::move(host);
    end->from = from;
    end->time = at;
    end->wall = wall;
    end->lines.push_back({0, 0, false});
    stream_state& s = workers_[index].of(from);
    s.end = std::move(end);
    if (s.lost != detail::loss{})
        insert(s.end, when_full::block);
}

/// Puts a worker where its cost belongs.
void line_queue::rank(int index, worker& w) {
    if (w.ranked == w.cost)
        return;
    auto node = loudest_.extract({w.ranked, index});
    w.ranked = 0;
    if (w.cost == 0)
        return;
    if (node) {
        node.value() = {w.cost, index};
        loudest_.insert(std::move(node));
    } else {
        loudest_.emplace(w.cost, index);
    }
    w.ranked = w.cost;
}

/// The worker with most that may be dropped; null if there is none.
line_queue::worker* line_queue::loudest() {
    while (!loudest_.empty()) {
        const auto [cost, index] = *loudest_.rbegin();
        worker& w = workers_.at(index);
        if (w.cost == cost)
            return &w;
        rank(index, w);
    }
    return nullptr;
}

/// What all lines may count together before some are dropped. Those that may be dropped have a
/// quarter of the bound for themselves, so that a loud worker whose lines stay does not cost others
/// theirs.
std::size_t line_queue::limit() const noexcept {
    const auto bound = std::max(bound_, kept_ + bound_ / 4);
    if (unread_ > while_read_)
        return bound;
    return std::max(bound, while_read_ - std::min(while_read_, entries_.size() * run_cost));
}

void line_queue::make_room() {
    for (std::size_t bound = limit(); cost_ > bound && lines_ > 1; bound = limit()) {
        const worker* const w = loudest();
        if (w == nullptr)
            return;
        drop_from(*w->entries.first, bound);
    }
}

/// Drops lines of a run, oldest first, until the bound is kept or all are dropped.
void line_queue::drop_from(entry& e, std::size_t bound) {
    const line_run& run = *e.run;
    std::size_t lines = 0;
    std::size_t bytes = 0;
    std::size_t cost = 0;
    if (cost_ - e.cost > bound) {
        lines = e.left();
        bytes = run.text.size() - e.offset;
        cost = e.cost;
    }
    for (; lines < e.left() && cost_ - cost > bound && lines_ - lines > 1; ++lines) {
        bytes += run.lines[e.first + lines].size;
        cost += cost_of(run.lines[e.first + lines]);
    }
    forget(e, lines, bytes, cost);
    count_lost(e.owner->of(run.from), run.attempt, bytes);
    e.lost = sum(e.lost, {lines, bytes});
    if (e.left() == 0) {
        stream_state& s = e.owner->of(run.from);
        entry* const after = e.of_stream.after;
        if (after == nullptr && s.end) {  // becomes the line that reports the loss
            e.owner->entries.remove(e);
            e.may_be_dropped = false;
            e.run = s.end;
            e.first = e.offset = 0;
            join_ends(e);
        } else {
            detail::loss& next = after ? after->lost : s.lost;
            next = sum(e.lost, next);
            remove(e);
            if (after)
                join_ends(*after);
        }
    } else if (2 * e.offset > run.text.size()) {
        e.run = rest_of(run, e.first, e.offset);
        e.first = e.offset = 0;
    }
}

/// Takes lines off the front of a run.
void line_queue::forget(entry& e, std::size_t lines, std::size_t bytes, std::size_t cost) noexcept {
    e.first += lines;
    e.offset += bytes;
    e.cost -= cost;
    cost_ -= cost;
    if (!only_ends(*e.run))
        lines_ -= lines;
    if (e.may_be_dropped)
        e.owner->cost -= cost;
    else
        kept_ -= cost;
}

void line_queue::remove(entry& e) noexcept {
    const int index = e.run->index;
    e.owner->of(e.run->from).entries.remove(e);
    if (e.may_be_dropped)
        e.owner->entries.remove(e);
    entries_.erase(e.place);
    drop_if_over(index);
}

/// If the entry and the one before it only report losses, the earlier one reports both.
void line_queue::join_ends(entry& later) noexcept {
    entry* const before = later.of_stream.before;
    if (before == nullptr || !only_ends(*before->run) || !only_ends(*later.run))
        return;
    before->run = later.run;
    before->lost = sum(before->lost, later.lost);
    remove(later);
}

void line_queue::forget_worker(int index) noexcept {
    if (const auto found = workers_.find(index); found != workers_.end()) {
        found->second.is_forgotten = true;
        drop_if_over(index);
    }
}

/// Drops what is kept of a worker if it has ended, and neither a line nor a loss of it is here.
void line_queue::drop_if_over(int index) noexcept {
    const auto found = workers_.find(index);
    if (found == workers_.end() || !found->second.is_forgotten)
        return;
    const worker& w = found->second;
    for (const stream_state& s : w.streams)
        if (s.entries.first != nullptr || s.lost != detail::loss{})
            return;
    if (w.ranked != 0)
        loudest_.erase({w.ranked, index});
    workers_.erase(found);
}

detail::run_part line_queue::take_from(entry& e, std::size_t lines, std::size_t cost) {
    std::size_t bytes = e.run->text.size() - e.offset;
    if (lines < e.left()) {
        bytes = 0;
        for (std::size_t i = 0; i < lines; ++i)
            bytes += e.run->lines[e.first + i].size;
    }
    detail::run_part taken{e.run, e.first, lines, e.offset, std::exchange(e.lost, {})};
    forget(e, lines, bytes, cost);
    if (e.left() == 0)
        remove(e);
    return taken;
}

detail::line_batch line_queue::take(std::size_t at_most) {
    detail::line_batch taken;
    unread_ = 0;
    for (std::size_t room = at_most; !entries_.empty();) {
        entry& e = entries_.front();
        std::size_t lines = 0;
        std::size_t cost = 0;
        if (e.cost <= room) {
            lines = e.left();
            cost = e.cost;
        } else {
            for (; lines < e.left(); ++lines) {
                const std::size_t next = cost_of(e.run->lines[e.first + lines]);
                if (cost + next > room && (lines > 0 || !taken.empty()))
                    break;
                cost += next;
            }
        }
        if (lines == 0)
            break;
        const bool is_whole = lines == e.left();
        taken.push_back(take_from(e, lines, cost));
        if (!is_whole)
            break;
        room -= std::min(room, cost);
    }
    return taken;
}

detail::run_part line_queue::take_line() {
    unread_ = 0;
    entry& e = entries_.front();
    return take_from(e, 1, e.left() == 1 ? e.cost : cost_of(e.run->lines[e.first]));
}

void line_queue::clear() noexcept {
    entries_.clear();
    workers_.clear();
    loudest_.clear();
    cost_ = 0;
    kept_ = 0;
    lines_ = 0;
}

}  // namespace cohort::output
