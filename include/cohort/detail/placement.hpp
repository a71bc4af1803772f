// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>

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

/// The source of one of a worker's descriptors: a file that the worker opens itself after it has
/// changed its working directory, or a duplicate that the options hold.
struct descriptor_source {
    std::string path;               // used when fd is empty
    std::shared_ptr<const int> fd;  // closed by the last owner

    friend bool operator==(const descriptor_source&, const descriptor_source&) = default;
};

/// What share() gives a worker: a descriptor, and what the worker reads about it.
struct shared_item {
    attachment descriptor;
    std::string description;  // JSON, behind `{"fd":5`
    // Of a queue's end, instead of `descriptor`: a command or options that held the end would keep
    // the stream from ending.
    std::weak_ptr<const int> lent{};

    friend bool operator==(const shared_item& a, const shared_item& b) noexcept {
        return a.descriptor == b.descriptor && a.description == b.description &&
               a.lent.lock() == b.lent.lock();
    }
};

/// Where a worker runs: the data behind where_it_runs<Derived>.
/// The setters check their arguments and throw std::invalid_argument with a sentence.
struct placement {
    bool clear_env = false;
    std::vector<env_change> env;  // in the order of the calls
    std::optional<std::string> working_directory;
    std::optional<mode_t> umask;
    std::map<int, descriptor_source> descriptors;  // key: the number in the worker
    std::map<std::string, shared_item> shared;     // key: the name given to share()

    COHORT_API void set_variable(std::string name, std::string value);
    COHORT_API void unset_variable(std::string name);
    /// Whether a variable of this name is set or unset here.
    COHORT_API bool changes_variable(std::string_view name) const noexcept;
    COHORT_API void clear_variables();
    COHORT_API void set_working_directory(std::string path);
    COHORT_API void set_umask(mode_t mask);
    /// @param setter  the setter's name, for the message
    COHORT_API void set_file(const char* setter, int theirs, std::string path);
    /// Duplicates `ours` at once. @throws std::system_error  `ours` is not an open descriptor, or
    /// no more can be opened
    COHORT_API void set_descriptor(int ours, int theirs);
    COHORT_API void share(std::string name, shared_item item);
    /// Holds the ends of queues that are lent, for a start.
    /// @throws sharing_error  this process has closed one
    COHORT_API void hold_lent();

    /// These settings with those of `over` on top (a command's over the options').
    COHORT_API placement overridden_by(const placement& over) const;

    friend bool operator==(const placement&, const placement&) = default;
};

/// @throws std::invalid_argument  `text` holds a NUL, which no argument, variable or path can
COHORT_API void require_no_nul(std::string_view text, std::string_view what);

}  // namespace cohort::detail::inline v0_1
