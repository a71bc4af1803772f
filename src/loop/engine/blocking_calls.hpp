// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/engine/inbox.hpp"
#include "loop/engine/timers.hpp"

#include <atomic>
#include <deque>
#include <utility>

namespace cohort::loop {

/// A call that may last for as long as a worker likes, and what then runs with its result.
struct blocking_call {
    base::callback<int()> make;
    base::callback<void(int)> then;
};

/// The calls that an engine's thread has to make, and since when the present one lasts.
class blocking_calls {
public:
    /// Makes a call on another thread. @throws std::exception  there is no thread for it
    using other_threads = base::callback<void(task)>;
    /// Names a call: when it began.
    using start = time_point::rep;

    // On the engine's thread:

    void on_hung_call(other_threads make) { others_ = std::move(make); }
    void on_call(task begins) { begins_ = std::move(begins); }

    void add(blocking_call last) { waiting_.push_back(std::move(last)); }
    bool empty() const noexcept { return waiting_.empty(); }
    blocking_call take_first();

    /// Whether others are to make the calls, because one has hung a moment ago.
    bool are_for_others(time_point now) const { return others_ && now < others_until_; }
    /// @throws std::exception  there is no thread for it
    void give_to_others(task whole_call) { others_(std::move(whole_call)); }

    start begin();
    /// @return false: the call was given up
    [[nodiscard]] bool end(start of) noexcept;
    /// Lets others make the calls that come for a while, and forgets this one, which hangs. On the
    /// thread that takes over.
    /// @return false: it is over
    [[nodiscard]] bool give_up(start of) noexcept;

    // On any thread:

    /// When the present call began; 0: there is none.
    start present() const noexcept { return present_; }
    /// Whether there was a call since this was last asked.
    bool were_made() noexcept { return were_made_.exchange(false); }

private:
    std::deque<blocking_call> waiting_;
    task begins_;
    other_threads others_;
    time_point others_until_;
    std::atomic<start> present_ = 0;
    std::atomic<bool> were_made_ = false;
};

}  // namespace cohort::loop
