// SPDX-License-Identifier: BSL-1.0
#include "output/streams/far_writer.hpp"

#include <algorithm>
#include <utility>

namespace cohort::output {

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
