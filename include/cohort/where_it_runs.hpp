// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/placement.hpp>

#include <string>
#include <utility>

#include <sys/types.h>

namespace cohort {

/// The setters that `options` and `command` share. What a command says stands over what the options
/// say. Each returns the object itself, so that calls can be chained. A path is a string, a literal
/// or a std::filesystem::path.
template <class Derived>
class where_it_runs {
public:
    /// Sets a variable of the worker's environment, over the caller's own. LOCAL_RANK and
    /// LOCAL_WORLD_SIZE, which the library sets to the worker's index and the size of its group,
    /// can be set to something else.
    /// @param name   neither empty nor with a '=' or NUL in it
    /// @param value  text, a path, or anything that fmt can format
    /// @throws std::invalid_argument  a name or value that no environment can hold; COHORT_INDEX,
    ///         COHORT_SIZE, COHORT_ERROR_FILE or TORCHELASTIC_ERROR_FILE, which only the library
    ///         sets
    template <class Value>
    Derived& env(std::string name, const Value& value) {
        where().set_variable(std::move(name), detail::argument_text(value));
        return self();
    }

    /// Takes a variable out of the worker's environment. One that is not there is fine.
    /// @throws std::invalid_argument  a name that no environment can hold, or one that only the
    ///         library sets
    Derived& unset_env(std::string name) {
        where().unset_variable(std::move(name));
        return self();
    }

    /// Starts from an empty environment: without the caller's, and without what was set before this
    /// call.
    Derived& clear_env() {
        where().clear_variables();
        return self();
    }

    /// The directory in which the worker starts; by default the caller's at the time of the spawn.
    /// A program with a slash and the files of stdin_from and so on are relative to it.
    /// @throws std::invalid_argument  an empty path, or one with a NUL
    Derived& working_directory(std::string path) {
        where().set_working_directory(std::move(path));
        return self();
    }

    /// The file mode creation mask with which the worker starts, also for the files that stdout_to
    /// and stderr_to make. By default the caller's; by start_method::forkserver, the one with which
    /// the fork server was started. See umask(2).
    /// @param mask  permission bits, such as 077
    /// @throws std::invalid_argument  other bits than the nine permissions
    Derived& umask(mode_t mask) {
        where().set_umask(mask);
        return self();
    }

    /// The file that is the worker's standard input; /dev/null by default.
    /// @throws std::invalid_argument  an empty path, or one with a NUL
    Derived& stdin_from(std::string path) {
        where().set_file("stdin_from", 0, std::move(path));
        return self();
    }

    /// The file to which the worker's standard output goes: made if need be, emptied. By default
    /// the caller's output.
    /// @throws std::invalid_argument  an empty path, or one with a NUL
    Derived& stdout_to(std::string path) {
        where().set_file("stdout_to", 1, std::move(path));
        return self();
    }

    /// The file to which the worker's standard error goes: made if need be, emptied. By default the
    /// caller's.
    /// @throws std::invalid_argument  an empty path, or one with a NUL
    Derived& stderr_to(std::string path) {
        where().set_file("stderr_to", 2, std::move(path));
        return self();
    }

    /// Gives the worker a descriptor. It is duplicated now, so `ours` may be closed after this
    /// call.
    /// @param ours    an open descriptor of this process
    /// @param theirs  its number in the worker; 0, 1 and 2 are allowed
    /// @throws std::invalid_argument  `theirs` is negative
    /// @throws std::system_error      EBADF: `ours` is not open; EMFILE
    Derived& fd(int ours, int theirs) {
        where().set_descriptor(ours, theirs);
        return self();
    }

private:
    friend Derived;
    where_it_runs() = default;

    Derived& self() { return static_cast<Derived&>(*this); }
    detail::placement& where() { return self().placed(); }

    friend bool operator==(const where_it_runs&, const where_it_runs&) = default;
};

}  // namespace cohort
