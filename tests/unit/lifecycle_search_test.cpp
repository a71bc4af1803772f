// SPDX-License-Identifier: BSL-1.0
#include "lifecycle_ledger.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace lifecycle_search_test {

// All states that the machine can reach by its public calls, those that need the fewest calls
// first. In each of them every event is tried, and after every call the ledger's facts must hold.

namespace {

using namespace std::chrono_literals;

constexpr duration tick = 1s;  // of the search's clock: lengths are few ticks, or `always`
constexpr duration always = duration::max();

/// One search. States that have come from different events are one if the ledger says the same of
/// them, unless it remembers the events: then it finds what the machine remembers unseen.
struct setting {
    rules of;
    int most = 2;     // workers that live and wait
    int waiting = 0;  // of them, when the group begins
    duration begun = 1h;
    std::vector<step_spans> shorter = {};  // what shorten() may be given
    enum { no_events, kinds_of_events, one_impossible } remembers = no_events;
};

/// One call, or the passing of time.
struct move {
    enum { happens, passes, shortens } what;
    int which;  // event, or index of `shorter`
    int had = no_signal;
};

struct node {
    machine group;
    ledger book;
    std::size_t parent;
    move last;
};

/// In ticks from now. The past is all the same, and so is what never comes in a search.
std::uint64_t ahead(instant when, instant now) {
    constexpr instant one = duration(tick).count();
    if (when == never || when < now)
        return when == never ? 15 : 0;
    return when > now + 12 * one ? 14 : static_cast<std::uint64_t>((when - now) / one + 1);
}

/// What makes a difference later. All that the machine shows is in the ledger too.
struct key {
    key(const node& n, bool has_shorter) {
        const ledger& book = n.book;
        add(static_cast<std::uint64_t>(n.group.current()));
        for (const int alike : book.live)
            add(static_cast<std::uint64_t>(alike));
        add(static_cast<std::uint64_t>(book.waiting));
        add(ahead(book.due, book.now));
        add(ahead(book.limit, book.now));
        for (int i = 0; has_shorter && i < 3; ++i)
            add(ahead(book.spans[i], 0));
        for (const bool is_so : {book.start_is_over, book.start_failed, book.came_late, book.failed,
                                 book.asked, book.time_is_up, book.timed_out, book.told_to_hold,
                                 book.kill_was_sent, book.was_given_up})
            rest = rest << 1 | (is_so ? 1 : 0);
        rest = rest << 32 | book.seen;
    }

    void add(std::uint64_t below_16) { counts = counts << 4 | below_16; }

    std::uint64_t counts = 0;
    std::uint64_t rest = 0;

    friend bool operator==(const key&, const key&) = default;
};

struct key_hash {
    std::size_t operator()(const key& k) const {
        const std::uint64_t mixed = (k.counts ^ k.rest << 21) * 0x9e3779b97f4a7c15U;
        return mixed ^ mixed >> 29;
    }
};

class search {
public:
    explicit search(const setting& s) : s_(s) {
        node first{machine(s.of, s.waiting), begun_ledger(), 0, {}};
        first.group.begin(time_point(s.begun));
        add(first);
    }

    /// @return the fact that does not hold, and the shortest history that leads there; "" if all
    /// hold
    std::string run() {
        for (std::size_t at = 0; at < nodes_.size() && broken_.empty(); ++at)
            visit(at);
        return broken_;
    }

    std::size_t visited() const { return nodes_.size(); }

private:
    ledger begun_ledger() const { return {s_.of, s_.waiting, duration(s_.begun).count()}; }

    void add(const node& n) {
        if (keys_.insert(key(n, !s_.shorter.empty())).second)
            nodes_.push_back(n);
    }

    void visit(std::size_t at) {
        const ledger book = nodes_[at].book;
        for (int e = 0; e < event_kinds; ++e) {
            if (may_come(static_cast<event>(e), book))
                try_event(at, static_cast<event>(e), book);
        }
        if (book.end_was_reported)
            return;
        for (int i = 0; i < static_cast<int>(s_.shorter.size()); ++i)
            follow(at, {move::shortens, i});
        if (is_ahead(book.due, book.now) || is_ahead(book.limit, book.now))
            follow(at, {move::passes, 0});
    }

    static bool is_ahead(instant when, instant now) {
        const auto ticks = ahead(when, now);
        return ticks > 0 && ticks < 14;
    }

    /// The rules that machine.hpp sets for its user, and the size of the search.
    bool may_come(event e, const ledger& book) const {
        if (e != event::worker_started || book.end_was_reported)
            return true;
        if (book.start_is_over)
            return book.waiting > 0;
        return !book.came_late && book.alive() + book.waiting < s_.most;
    }

    void try_event(std::size_t at, event e, const ledger& book) {
        const bool is_end = e == event::worker_ended_well || e == event::worker_failed ||
                            e == event::worker_restarts;
        if (!is_end || book.alive() == 0)
            return follow(at, {move::happens, static_cast<int>(e)});
        for (int had = no_signal; had <= had_both; ++had)
            if (book.live[had] > 0)
                follow(at, {move::happens, static_cast<int>(e), had});
    }

    void follow(std::size_t at, move next) {
        node n = nodes_[at];
        n.parent = at;
        n.last = next;
        const bool goes_on = make(n, next);
        if (n.book.broken && broken_.empty())
            broken_ = n.book.broken + (" | " + history(n));
        if (goes_on)
            add(n);
    }

    /// Makes the call. @return whether the state is worth a look
    bool make(node& n, move next, std::vector<action>* done = nullptr) const {
        ledger& book = n.book;
        const view before(n.group);
        const time_point now{duration(book.now)};
        switch (next.what) {
        case move::passes:
            book.now += duration(tick).count();
            return true;
        case move::shortens: {
            const auto& longest = s_.shorter[static_cast<std::size_t>(next.which)];
            n.group.shorten(longest, now);
            book.take(longest, before, view(n.group));
            return true;
        }
        case move::happens:
            break;
        }
        const auto e = static_cast<event>(next.which);
        const bool can_be = book.can_be(e, before);
        const std::vector<action> todo = n.group.on(e, now);
        book.take(e, next.had, before, todo, view(n.group));
        if (done)
            *done = todo;
        const unsigned bit = 1U << next.which;
        if (can_be && s_.remembers == setting::kinds_of_events)
            book.seen |= bit;
        if (can_be || s_.remembers != setting::one_impossible || book.seen != 0)
            return can_be;
        book.seen = bit;
        return true;
    }

    std::string history(const node& last) const {
        std::vector<move> moves{last.last};
        for (std::size_t at = last.parent; at != 0; at = nodes_[at].parent)
            moves.insert(moves.begin(), nodes_[at].last);
        node n = nodes_[0];
        std::string text = told_rules();
        for (const move& each : moves) {
            std::vector<action> done;
            make(n, each, &done);
            text += each.what == move::passes ? " a second passes,"
                    : each.what == move::shortens
                        ? " shorten(" + std::to_string(each.which) + "),"
                        : std::string(" ") + to_string(static_cast<event>(each.which)) + ",";
            for (const action a : done)
                text += std::string(" [") + to_string(a) + "]";
        }
        return text + " -> " + to_string(n.group.current());
    }

    static std::string length(duration d) {
        return d == always ? "ever" : std::to_string(d / tick) + " s";
    }
    std::string told_rules() const {
        const rules& r = s_.of;
        return "notice " + length(r.notice_period) + ", grace " + length(r.grace_period) +
               ", kill " + length(r.kill_timeout) +
               (r.policy == on_failure::stop_all ? ", stop_all" : ", keep_going") +
               (r.time_limit ? ", limit " + length(*r.time_limit) : "") + ", waiting " +
               std::to_string(s_.waiting) + ":";
    }

    const setting& s_;
    std::vector<node> nodes_;
    std::unordered_set<key, key_hash> keys_;
    std::string broken_;
};

/// @return how many states there are
std::size_t search_all(const std::vector<setting>& settings) {
    std::size_t visited = 0;
    for (const setting& each : settings) {
        search all(each);
        const std::string broken = all.run();
        if (!broken.empty())
            FAIL(broken);
        visited += all.visited();
    }
    return visited;
}

/// Every combination of these lengths, with both policies.
std::vector<rules> combinations(const std::vector<duration>& lengths) {
    std::vector<rules> all;
    for (const auto policy : {on_failure::stop_all, on_failure::keep_going})
        for (const duration notice : lengths)
            for (const duration grace : lengths)
                for (const duration kill : lengths)
                    all.push_back({notice, grace, kill, policy, {}});
    return all;
}

rules limited(rules r, duration limit) {
    r.time_limit = limit;
    return r;
}

const rules keep_going{1s, 1s, 1s, on_failure::keep_going, {}};

}  // namespace

// The numbers of states tell that no search has ended early. More are better.

TEST_CASE("lifecycle search: the facts hold whatever the lengths of the steps") {
    std::vector<setting> settings;
    for (const rules& r : combinations({0s, 2s, always}))
        for (const int waiting : {0, 1})
            settings.push_back({r, 2, waiting});
    for (const rules& r : combinations({-1s, 0s, -always}))
        settings.push_back({r, 2, 1});
    CHECK(search_all(settings) >= 40'000);
}

TEST_CASE("lifecycle search: the facts hold with a time limit") {
    std::vector<setting> settings;
    for (const rules& r : combinations({0s, 1s, always}))
        settings.push_back({limited(r, 1s), 2});
    for (const duration limit : {duration(0s), duration(2s), always})
        for (const rules& r : {rules{1s, 1s, 1s}, keep_going})
            settings.push_back({limited(r, limit), 2, 1});
    CHECK(search_all(settings) >= 80'000);
}

TEST_CASE("lifecycle search: the facts hold for up to eight workers") {
    std::vector<setting> settings;
    for (const rules& r : {rules{1s, 1s, 1s}, keep_going})
        for (const int waiting : {0, 8})
            settings.push_back({r, 8, waiting});
    settings.push_back({limited({0s, 1s, 0s}, 1s), 8});
    CHECK(search_all(settings) >= 40'000);
}

TEST_CASE("lifecycle search: the facts hold when steps are made shorter") {
    std::vector<setting> settings;
    const std::vector<step_spans> shorter{{0s, 0s, 0s}, {1s, 1s, 1s}, {always, 0s, always}};
    for (const rules& r : combinations({0s, 2s}))
        settings.push_back({r, 2, 0, 1h, shorter});
    settings.push_back({{always, always, always}, 2, 0, 1h, shorter});
    settings.push_back({limited({2s, 2s, 2s}, 1s), 1, 0, 1h, shorter});
    CHECK(search_all(settings) >= 20'000);
}

TEST_CASE("lifecycle search: the facts hold on both sides of the clock's epoch") {
    std::vector<setting> settings;
    for (const duration begun : {duration(-1h), duration(-1s)})
        for (const rules& r : combinations({0s, 2s, always})) {
            settings.push_back({r, 1, 0, begun});
            settings.push_back({limited(r, always), 1, 0, begun});
        }
    CHECK(search_all(settings) >= 20'000);
}

TEST_CASE("lifecycle search: the facts hold whatever has happened before") {
    std::vector<setting> settings;
    for (const rules& r : {rules{1s, 1s, 1s}, rules{1s, 0s, 0s}, keep_going})
        settings.push_back({r, 2, 1, 1h, {}, setting::kinds_of_events});
    for (const rules& r : {rules{1s, 1s, 1s}, limited({1s, 0s, 1s}, 1s), keep_going})
        settings.push_back({r, 2, 1, 1h, {}, setting::one_impossible});
    CHECK(search_all(settings) >= 40'000);
}

}  // namespace lifecycle_search_test
