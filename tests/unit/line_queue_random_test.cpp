// SPDX-License-Identifier: BSL-1.0
// Random adds, takes and ends, against a model that keeps each line by itself.
#include "output/lines/line_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace line_queue_random_test {

using cohort::stream;
using cohort::when_full;
using cohort::detail::line_run;
using cohort::detail::loss;
using cohort::output::line_queue;

namespace {

using stream_name = std::pair<int, stream>;

struct model_line {
    stream_name from;
    int run = 0;
    std::string text;  // empty: tells a loss
    bool may_be_dropped = false;
    loss lost;

    std::size_t cost() const { return text.empty() ? 0 : std::max<std::size_t>(text.size(), 32); }
};

class model {
public:
    explicit model(std::size_t bound) : bound_(bound) {}

    void add(stream_name from, const std::vector<std::string>& texts, when_full full) {
        ++runs_;
        for (const std::string& text : texts)
            lines.push_back({from, runs_, text, full == when_full::drop_oldest,
                             std::exchange(pending_[from], {})});
        ended_[from] = false;
        while (cost() > limit() && real_lines() > 1)
            if (!drop_from_loudest())
                return;
    }

    void end(stream_name from) {
        ended_[from] = true;
        if (pending_[from] != loss{})
            lines.push_back({from, ++runs_, "", false, std::exchange(pending_[from], {})});
        join_ends(from);
    }

    std::size_t cost() const {
        std::size_t sum = 0;
        for (const auto& line : lines)
            sum += line.cost();
        return sum;
    }

    /// Of what may not be dropped.
    std::size_t kept() const {
        std::size_t sum = 0;
        for (const auto& line : lines)
            sum += line.may_be_dropped ? 0 : line.cost();
        return sum;
    }

    std::size_t limit() const { return std::max(bound_, kept() + bound_ / 4); }

    bool has_nothing_to_drop() const {
        return real_lines() == 1 || std::none_of(lines.begin(), lines.end(), [](const auto& line) {
                   return line.may_be_dropped;
               });
    }

    std::uint64_t dropped_bytes = 0;
    std::vector<model_line> lines;

private:
    /// Lines of a stream that only tell losses, and follow each other, are one.
    void join_ends(stream_name from) {
        model_line* last = nullptr;
        for (auto line = lines.begin(); line != lines.end();) {
            if (line->from != from) {
                ++line;
            } else if (last != nullptr && last->text.empty() && line->text.empty()) {
                last->lost = {last->lost.lines + line->lost.lines,
                              last->lost.bytes + line->lost.bytes};
                line = lines.erase(line);
            } else {
                last = &*line++;
            }
        }
    }

    std::ptrdiff_t real_lines() const {
        return std::count_if(lines.begin(), lines.end(),
                             [](const model_line& line) { return !line.text.empty(); });
    }

    bool drop_from_loudest() {
        std::map<int, std::size_t> costs;
        for (const auto& line : lines)
            if (line.may_be_dropped)
                costs[line.from.first] += line.cost();
        if (costs.empty())
            return false;
        const int loudest = std::max_element(costs.begin(), costs.end(), [](auto& a, auto& b) {
                                return a.second <= b.second;
                            })->first;
        std::optional<int> run;  // the loudest one is sought again after a run, not after a line
        for (std::size_t i = 0; i < lines.size() && cost() > limit() && real_lines() > 1;) {
            if (!lines[i].may_be_dropped || lines[i].from.first != loudest ||
                lines[i].run != run.value_or(lines[i].run)) {
                ++i;
                continue;
            }
            run = lines[i].run;
            drop(i);
        }
        return true;
    }

    void drop(std::size_t at) {
        model_line& line = lines[at];
        const loss lost{line.lost.lines + 1, line.lost.bytes + line.text.size()};
        dropped_bytes += line.text.size();
        const auto next =
            std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(at) + 1, lines.end(),
                         [&](const model_line& l) { return l.from == line.from; });
        if (next == lines.end() && ended_[line.from]) {
            line.text.clear();
            line.may_be_dropped = false;
            line.lost = lost;
            return join_ends(stream_name(line.from));
        }
        loss& later = next == lines.end() ? pending_[line.from] : next->lost;
        later = {later.lines + lost.lines, later.bytes + lost.bytes};
        const auto from = line.from;
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        join_ends(from);
    }

    std::size_t bound_;
    int runs_ = 0;
    std::map<stream_name, loss> pending_;
    std::map<stream_name, bool> ended_;
};

/// The queue and the model, and what both must agree on.
class pair_of_queues {
public:
    explicit pair_of_queues(unsigned seed)
        : dice_(seed), bound_(1 + dice_() % 600), queue_(bound_), model_(bound_) {}

    void step() {
        const auto choice = dice_() % 10;
        if (choice < 6)
            add();
        else if (choice < 7)
            take_line();
        else if (choice < 9)
            take(queue_.take(dice_() % 300), std::nullopt);
        else
            end(some_stream());
        check();
    }

    void finish() {
        for (const auto& [from, bytes] : added_)
            end(from);
        take(queue_.take(SIZE_MAX), std::nullopt);
        REQUIRE(queue_.empty());
        for (const auto& [from, bytes] : added_)
            REQUIRE(told_[from] == bytes);
    }

private:
    stream_name some_stream() {
        return {static_cast<int>(dice_() % workers), dice_() % 4 == 0 ? stream::err : stream::out};
    }

    void add() {
        const stream_name from = some_stream();
        // A stream's mode stays, except for worker 0: nothing forbids it.
        const bool blocks = from.first == 0 ? dice_() % 3 == 0 : from.first % 3 == 2;
        const when_full full = blocks ? when_full::block : when_full::drop_oldest;
        if (blocks && !queue_.has_room())
            return;
        auto run = std::make_shared<line_run>();
        run->index = from.first;
        run->from = from.second;
        std::vector<std::string> texts;
        for (auto left = 1 + dice_() % 8; left > 0; --left) {
            const std::size_t size = dice_() % 40 == 0 ? 700 : 1 + dice_() % 80;
            texts.push_back(std::to_string(next_++));
            texts.back().resize(std::max(size, texts.back().size()), '.');
            run->text += texts.back();
            run->lines.push_back({static_cast<std::uint32_t>(texts.back().size()), 0, true});
            added_[from].lines += 1;
            added_[from].bytes += texts.back().size();
        }
        queue_.add(run, full);
        model_.add(from, texts, full);
        REQUIRE((model_.cost() <= model_.limit() || model_.has_nothing_to_drop()));
    }

    void take_line() {
        cohort::detail::line_batch line;
        if (!queue_.empty())
            line.push_back(queue_.take_line());
        take(line, 1);
    }

    void end(stream_name from) {
        queue_.end_stream(from.first, 0, from.second, {});
        model_.end(from);
    }

    /// The lines that were taken are the first ones of the model.
    void take(const cohort::detail::line_batch& told, std::optional<std::size_t> count) {
        std::size_t taken = 0;
        for (const auto& part : told) {
            REQUIRE(part.count > 0);
            std::size_t at = part.offset;
            for (std::size_t i = 0; i < part.count; ++i, ++taken) {
                REQUIRE(taken < model_.lines.size());
                const model_line& wanted = model_.lines[taken];
                const auto& line = part.run->lines[part.first + i];
                REQUIRE(stream_name(part.run->index, part.run->from) == wanted.from);
                REQUIRE(part.run->text.substr(at, line.size) == wanted.text);
                REQUIRE(wanted.lost == (i == 0 ? part.lost : loss{}));
                loss& sum = told_[wanted.from];
                sum.lines += wanted.lost.lines + (wanted.text.empty() ? 0 : 1);
                sum.bytes += wanted.lost.bytes + wanted.text.size();
                at += line.size;
            }
        }
        REQUIRE((taken > 0 || model_.lines.empty()));
        if (count && !model_.lines.empty())
            REQUIRE(taken == *count);
        model_.lines.erase(model_.lines.begin(),
                           model_.lines.begin() + static_cast<std::ptrdiff_t>(taken));
    }

    void check() const {
        REQUIRE(queue_.empty() == model_.lines.empty());
        REQUIRE(queue_.has_room() == (model_.kept() < bound_));
        REQUIRE(queue_.lost_bytes() == model_.dropped_bytes);
    }

    static constexpr unsigned workers = 5;

    std::minstd_rand dice_;
    std::size_t bound_;
    line_queue queue_;
    model model_;
    int next_ = 0;
    std::map<stream_name, loss> added_;
    std::map<stream_name, loss> told_;  // with what was reported as lost
};

}  // namespace

TEST_CASE(
    "line queue random: random use tells each line once or as lost, in order, as the model does") {
    for (unsigned seed = 0; seed < 1'500; ++seed) {
        INFO("seed " << seed);
        pair_of_queues both(seed);
        for (int i = 0; i < 60; ++i)
            both.step();
        both.finish();
    }
}

TEST_CASE("line queue random: thousands of workers that all drop keep the bound") {
    constexpr std::size_t bound = 100'000;
    line_queue queue(bound);
    std::minstd_rand dice(1);
    std::uint64_t added = 0;
    for (int i = 0; i < 50'000; ++i) {
        auto run = std::make_shared<line_run>();
        run->index = static_cast<int>(dice() % 4'000);
        for (auto left = 1 + dice() % 5; left > 0; --left) {
            run->text += std::string(64, 'x');
            run->lines.push_back({64, 0, true});
        }
        added += run->text.size();
        queue.add(std::move(run), when_full::drop_oldest);
    }
    std::uint64_t told = 0;
    for (const auto& part : queue.take(SIZE_MAX))
        told += 64 * part.count;
    CHECK(told <= bound);
    CHECK(told > bound - 64);
    CHECK(told + queue.lost_bytes() == added);
}

}  // namespace line_queue_random_test
