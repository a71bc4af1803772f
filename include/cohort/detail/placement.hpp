// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/limits.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/detail/sink.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace cohort::detail::inline v0_1 {

/// One change to the environment: set when there is a value, unset when not.
struct env_change {
    std::string name;
    std::optional<std::string> value;

    friend bool operator==(const env_change&, const env_change&) = default;
};

/// What share() gives a worker: a descriptor, and what the worker reads about it.
struct shared_item {
    attachment descriptor;
    std::string description;  // JSON, behind `{"fd":5`
    // Stands for `descriptor` if that is an end of a queue: a command or options that held the end
    // would keep the stream from ending.
    std::weak_ptr<const int> lent{};

    friend bool operator==(const shared_item& a, const shared_item& b) noexcept {
        return a.descriptor == b.descriptor && a.description == b.description &&
               a.lent.lock() == b.lent.lock();
    }
};

/// Where a worker runs: the data behind where_it_runs<Derived>.
/// The setters check their arguments and throw std::invalid_argument with a sentence.
struct placement {
    // Compiled in the library, because programs would compile much for them.
    COHORT_API placement();
    COHORT_API placement(const placement& other);
    COHORT_API placement(placement&& other) noexcept;
    COHORT_API placement& operator=(const placement& other);
    COHORT_API placement& operator=(placement&& other) noexcept;
    COHORT_API ~placement();

    bool clear_env = false;
    std::vector<env_change> env;  // in the order of the calls
    std::optional<std::string> working_directory;
    std::optional<mode_t> umask;
    // What fd() gave; key: the number in the worker. The last owner closes the duplicate. A stream
    // is in one of these three at most.
    std::map<int, std::shared_ptr<const int>> descriptors;
    std::map<int, std::vector<sink>> sinks;     // key: 1 or 2; a missing one is the caller's
    std::optional<detail::input> input;         // empty: /dev/null
    std::map<std::string, shared_item> shared;  // key: the name given to share()
    worker_limits limits;

    COHORT_API void set_variable(std::string name, std::string value);
    COHORT_API void unset_variable(std::string name);
    /// Whether a variable of this name is set or unset here.
    COHORT_API bool changes_variable(std::string_view name) const noexcept;
    COHORT_API void clear_variables();
    COHORT_API void set_working_directory(std::string path);
    COHORT_API void set_umask(mode_t mask);
    /// @param setter  the setter's name, for the message
    COHORT_API void set_sinks(const char* setter, int theirs, std::vector<sink> targets);
    COHORT_API void set_input(detail::input from);
    /// Duplicates `ours` at once. @throws std::system_error  `ours` is not an open descriptor, or
    /// no more can be opened
    COHORT_API void set_descriptor(int ours, int theirs);
    COHORT_API void share(std::string name, shared_item item);
    /// Holds the ends of queues that are lent, for a start.
    /// @throws sharing_error  this process has closed one
    COHORT_API void hold_lent();

    /// These settings with those of `over` on top (a command's over the options').
    COHORT_API placement overridden_by(const placement& over) const;

    COHORT_API friend bool operator==(const placement& a, const placement& b);
};

/// file(path), checked for another setter.
/// @throws std::invalid_argument  the path is empty, has a NUL, or is no pattern
COHORT_API sink file_at(const char* setter, std::string path);
/// @throws std::invalid_argument  the path is empty or has a NUL
COHORT_API void require_path(const char* setter, std::string_view path);
/// @throws std::invalid_argument  `text` holds a NUL, which no argument, variable or path can
COHORT_API void require_no_nul(std::string_view text, std::string_view what);

}  // namespace cohort::detail::inline v0_1
