// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/placement.hpp>

#include <string>
#include <utility>

#include <sys/types.h>

namespace cohort {

/// The setters that `options` and `command` share. The settings of a command override those of the
/// options. Each setter returns the object itself, so that calls can be chained. A path is a
/// string, a literal or a std::filesystem::path.
template <class Derived>
class where_it_runs {
public:
    /// Sets a variable in the worker's environment, which otherwise is the caller's. The library
    /// sets LOCAL_RANK and LOCAL_WORLD_SIZE to the worker's index and the size of its group; this
    /// can override them.
    /// @param name   not empty, and without '=' and NUL
    /// @param value  text, a path, or anything that fmt can format
    /// @throws std::invalid_argument  no environment can hold the name or the value, or only the
    ///         library sets this variable: COHORT_INDEX, COHORT_SIZE, COHORT_ERROR_FILE,
    ///         TORCHELASTIC_ERROR_FILE
    template <class Value>
    Derived& env(std::string name, const Value& value) {
        where().set_variable(std::move(name), detail::argument_text(value));
        return self();
    }

    /// Removes a variable from the worker's environment. It need not be set.
    /// @throws std::invalid_argument  no environment can hold the name, or only the library sets
    ///         this variable, see env()
    Derived& unset_env(std::string name) {
        where().unset_variable(std::move(name));
        return self();
    }

    /// Starts from an empty environment: drops the caller's variables, and those that were set
    /// before this call.
    Derived& clear_env() {
        where().clear_variables();
        return self();
    }

    /// The directory in which the worker starts; by default the caller's at the time of the spawn.
    /// A program name with a slash, and the paths of stdin_from, stdout_to and stderr_to, are
    /// relative to it.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& working_directory(std::string path) {
        where().set_working_directory(std::move(path));
        return self();
    }

    /// The file mode creation mask with which the worker starts, see umask(2). It applies also to
    /// the files that stdout_to and stderr_to create. By default the caller's; with
    /// start_method::forkserver, that with which the fork server was started.
    /// @param mask  permission bits, such as 077
    /// @throws std::invalid_argument  `mask` has bits outside 0777
    Derived& umask(mode_t mask) {
        where().set_umask(mask);
        return self();
    }

    /// The file that is the worker's standard input; by default /dev/null.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& stdin_from(std::string path) {
        where().set_file("stdin_from", 0, std::move(path));
        return self();
    }

    /// The file to which the worker's standard output goes; by default the caller's standard
    /// output. The file is created if need be, and truncated.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& stdout_to(std::string path) {
        where().set_file("stdout_to", 1, std::move(path));
        return self();
    }

    /// The file to which the worker's standard error goes; by default the caller's standard error.
    /// The file is created if need be, and truncated.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& stderr_to(std::string path) {
        where().set_file("stderr_to", 2, std::move(path));
        return self();
    }

    /// Gives the worker a descriptor. This call duplicates it, so `ours` may be closed afterwards.
    /// @param ours    an open descriptor of this process
    /// @param theirs  its number in the worker; 0, 1 and 2 are allowed
    /// @throws std::invalid_argument  `theirs` is negative
    /// @throws std::system_error      EBADF: `ours` is not open. EMFILE: no descriptor is left
    Derived& fd(int ours, int theirs) {
        where().set_descriptor(ours, theirs);
        return self();
    }

    /// Shares memory with a program in any language. The worker gets a descriptor of the memory,
    /// and a variable COHORT_SHARED_<name> that describes it as JSON, such as `{"fd":60,
    /// "bytes":4096,"offset":0,"dtype":"<f4","shape":[32,32],"strides":[128,4],"read_only":false}`.
    /// `bytes` is the size of the memory to be mapped; offset and strides are in bytes; `dtype` is
    /// written as by numpy. For an end of a queue it is `{"fd":60,"kind":"queue_writer"}`, for an
    /// event `{"fd":60,"kind":"event"}`. The end of a queue must be there when a worker starts: what
    /// it is given to does not hold it, because the stream would not end.
    /// @param name    letters, digits and '_'
    /// @param shared  a shared_array, shared_value, queue_reader, queue_writer or event
    /// @throws std::invalid_argument  the name is empty or has other characters, the array holds no
    ///         memory, or the queue has a capacity
    /// @throws sharing_error  EBADF: this process is a forked copy without the memory's descriptor
    template <class Shared>
    Derived& share(std::string name, const Shared& shared) {
        where().share(std::move(name), item_to_share(shared));
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
