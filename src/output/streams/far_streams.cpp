// SPDX-License-Identifier: BSL-1.0
#include "output/streams/far_streams.hpp"

#include <algorithm>
#include <utility>

namespace cohort::output {

namespace {

/// Parts that follow each other are kept as one, so that small ones take no more memory than they
/// cost. A turn gives no more than such a part.
constexpr std::size_t most_joined = 65'536;
/// So many starts of a worker tell that they have lost bytes. Each may do so by a line at its end,
/// which no bound of a queue counts, and the other machine decides how many starts there are.
constexpr unsigned most_lossy_starts = 1'000;

}  // namespace

void far_reader::take(const part& next, std::uint64_t cost) {
    if (ends_)
        return;
    if (!kept_.empty() || !has_room(next.attempt))
        return keep(next, cost);
    give(next);
    done_(cost);
}

/// If not, the sink calls go_on() later.
bool far_reader::has_room(int attempt) {
    if (waits_)
        return false;
    if (!sink_)
        sink_ = make_(attempt);
    waits_ = sink_ && !sink_->has_room();
    return !waits_;
}

void far_reader::give(const part& next) {
    if (!sink_)
        sink_ = make_(next.attempt);
    if (!sink_)
        return;  // the group is gone
    if (next.lost_bytes != 0 && std::exchange(last_lossy_, next.attempt) != next.attempt)
        ++lossy_starts_;
    if (next.lost_bytes != 0 && lossy_starts_ <= most_lossy_starts)
        sink_->lose(next.lost_lines, next.lost_bytes);
    if (!next.bytes.empty())
        sink_->take(next.bytes);
    if (next.ends)
        std::exchange(sink_, nullptr)->end({});
}

void far_reader::give_first() {
    const auto first = std::move(kept_.front());
    kept_.pop_front();
    give(first.view());
    done_(first.cost);
}

void far_reader::keep(const part& next, std::uint64_t cost) {
    if (!kept_.empty()) {
        kept& last = kept_.back();
        if (last.attempt == next.attempt && next.lost_bytes == 0 &&
            last.bytes.size() + next.bytes.size() <= most_joined) {
            last.bytes += next.bytes;
            last.ends = next.ends;
            last.cost += cost;
            return;
        }
    }
    std::string bytes;
    bytes = next.bytes;
    kept_.push_back(
        {next.attempt, next.lost_lines, next.lost_bytes, std::move(bytes), next.ends, cost});
}

/// Not at once, because the sink may call many streams that wait.
bool far_reader::go_on() {
    waits_ = false;
    if (ends_ || kept_.empty() || !has_room(kept_.front().attempt))
        return false;
    leaves_room_ = true;
    turn_later();
    return true;
}

/// Gives one part, so that every stream gets its turn.
void far_reader::turn() {
    if (is_over_)
        return;
    const auto sink = sink_;
    if (!kept_.empty() && (ends_ || has_room(kept_.front().attempt)))
        give_first();
    if (std::exchange(leaves_room_, false) && sink)
        sink->leave_room();
    if (!kept_.empty() && (ends_ || !waits_))
        turn_later();
    else if (ends_)
        end();
}

void far_reader::turn_later() {
    if (std::exchange(is_due_, true))
        return;
    loop_.post([self = shared_from_this()] {
        self->is_due_ = false;
        self->turn();
    });
}

void far_reader::worker_ended(loop::task then) {
    ends_ = true;
    if (is_over_)
        return then();
    ended_ = std::move(then);
    turn();
}

void far_reader::end() {
    is_over_ = true;
    if (const auto sink = std::exchange(sink_, nullptr))
        sink->end({});
    if (const auto ended = std::exchange(ended_, nullptr))
        ended();
}

namespace {

constexpr std::size_t longest_piece = far_writer::window / 2 - far_writer::piece_cost;

}  // namespace

void far_writer::write(std::uint64_t id, std::string bytes, listener then) {
    if (has_ended_)
        return then(std::make_error_code(std::errc::broken_pipe));
    texts_.push_back({id, ++last_number_, std::move(bytes), false, std::move(then)});
    go_on();
}

/// Later texts are for a worker that has started again.
void far_writer::close_after_all() {
    if (has_ended_)
        return;
    texts_.push_back({0, ++last_number_, {}, true, {}});
    go_on();
}

void far_writer::go_on() {
    for (;;) {
        const auto next = std::ranges::find(texts_, false, &text::is_sent);
        if (next == texts_.end() || !send_piece(*next))
            return;
    }
}

/// @return false: so much is under way that it must wait
bool far_writer::send_piece(text& of) {
    const auto size = std::min(of.bytes.size() - of.sent, longest_piece);
    if (under_way_ + size + piece_cost > window)
        return false;
    pieces_.push_back({of.number, size + piece_cost});
    under_way_ += size + piece_cost;
    const auto piece = std::string_view(of.bytes).substr(of.sent, size);
    of.sent += size;
    of.is_sent = of.sent == of.bytes.size();
    ++of.unanswered;
    send_(piece, of.is_end);  // last, because it may call back
    return true;
}

bool far_writer::answered(bool is_taken) {
    if (pieces_.empty())
        return false;
    const piece first = pieces_.front();
    pieces_.pop_front();
    under_way_ -= first.cost;
    const auto found = std::ranges::find(texts_, first.text, &text::number);
    if (found != texts_.end()) {
        --found->unanswered;
        if (!is_taken)
            remove(first.text, std::make_error_code(std::errc::broken_pipe));
        else if (found->is_sent && found->unanswered == 0)
            remove(first.text, {});
    }
    go_on();
    return true;
}

/// The listener may call back, so it is called last.
void far_writer::remove(std::uint64_t number, std::error_code why) {
    const auto found = std::ranges::find(texts_, number, &text::number);
    const auto then = std::move(found->then);
    texts_.erase(found);
    if (then)
        then(why);
}

bool far_writer::cancel(std::uint64_t id) {
    const auto found = std::ranges::find_if(
        texts_, [id](const text& each) { return !each.is_end && each.id == id; });
    if (found == texts_.end())
        return false;
    remove(found->number, std::make_error_code(std::errc::operation_canceled));
    go_on();
    return true;
}

void far_writer::end() {
    has_ended_ = true;
    while (!texts_.empty())
        remove(texts_.front().number, std::make_error_code(std::errc::broken_pipe));
}

}  // namespace cohort::output
