// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/policies.hpp>

#include <chrono>

namespace cohort {

/// How often workers start again after they have ended, and when:
/// `options(4).restart(restarts(3).within(60s).backoff(100ms, 30s).jitter(0.2))`. A value.
///
/// Workers find the number of their attempt in this_worker::attempt(), COHORT_ATTEMPT and
/// TORCHELASTIC_RESTART_COUNT, and `most` in TORCHELASTIC_MAX_RESTARTS. A file is truncated by the
/// first attempt only, unless its pattern has {attempt}; a file of several workers can't have
/// {attempt}. Descriptors given by fd() stay open in this process until the group ends.
/// group::write fails for a worker that has ended until it has started again. Of the ends that
/// other attempts have followed and nobody has asked for by group::next(), about 1,000 are kept, 16
/// with results that hold descriptors. A
/// barrier, which is broken for ever when a worker ends, can't be given to such a group.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
/// @source intensity and period of Erlang's supervisors; max_restarts of torch elastic
class COHORT_API restarts {
public:
    /// @param most  how often a worker may start again; with restart_scope::all: how often the
    ///              group may. Implicit, so that `restart(3)` works.
    /// @throws std::invalid_argument  `most` is negative
    restarts(int most);

    /// Counts only the restarts of this last span. Default: all of them.
    /// @param span  on steady_clock
    /// @throws std::invalid_argument  `span` is negative or not a number
    template <class Rep, class Period>
    restarts& within(std::chrono::duration<Rep, Period> span) {
        data_.within = detail::to_option_duration("within", span);
        return *this;
    }

    /// How long a worker waits before it starts again. Each pause is twice the one before. After an
    /// attempt that lived for `longest` at least, the next pause is `first` again. Default: no
    /// pause.
    /// @throws std::invalid_argument  a duration is negative or not a number, or `first` is more
    ///         than `longest`
    template <class Rep1, class Period1, class Rep2, class Period2>
    restarts& backoff(std::chrono::duration<Rep1, Period1> first,
                      std::chrono::duration<Rep2, Period2> longest) {
        return set_backoff(detail::to_option_duration("backoff", first),
                           detail::to_option_duration("backoff", longest));
    }

    /// Makes each pause shorter or longer by chance, so that workers that fail together do not
    /// start again together. Default 0.
    /// @param part  of the pause, at most: 0.2 makes 10 s a time from 8 s to 12 s
    /// @throws std::invalid_argument  `part` is not in 0..1
    restarts& jitter(double part);

    /// Who starts again. With restart_scope::all the other workers are stopped first, as by
    /// group::stop; when the last has ended, all start again. A worker that ended with success
    /// does, too, if another one fails later; one whose failure found no restart left does not.
    /// Default restart_scope::failed.
    restarts& scope(restart_scope who) noexcept;
    /// After what end a worker starts again. Default restart_on::failure.
    restarts& on(restart_on what) noexcept;

    /// Whether all settings are equal.
    friend bool operator==(const restarts&, const restarts&) = default;

private:
    friend class options;
    restarts& set_backoff(detail::steady_duration first, detail::steady_duration longest);

    detail::restart_settings data_;
};

}  // namespace cohort
