// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/sink_access.hpp>
#include <cohort/limits.hpp>
#include <cohort/sinks.hpp>

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort {

namespace detail::inline v0_1 {

/// An argument of stdout_to: a sink, or the path of a file.
template <class T>
concept stream_target =
    text_like<T> || path_like<T> || requires(const T& value) { sink_access::data(value); };

template <stream_target Target>
sink sink_of(const char* setter, const Target& target) {
    if constexpr (text_like<Target> || path_like<Target>)
        return file_at(setter, std::string(target));
    else
        return sink_access::data(target);
}

template <class... Targets>
std::vector<sink> sinks_of(const char* setter, const Targets&... targets) {
    std::vector<sink> sinks;
    sinks.reserve(sizeof...(targets));
    (sinks.push_back(sink_of(setter, targets)), ...);
    return sinks;
}

}  // namespace detail::inline v0_1

template <class Derived>
class settings_of_workers;

/// The setters that `options` and `command` share. The settings of a command override those of the
/// options. Each setter returns the object itself, so that calls can be chained. A path is a
/// string, a literal or a std::filesystem::path.
template <class Derived>
class where_it_runs : public limits_of<Derived> {
public:
    /// Sets a variable in the worker's environment, which otherwise is the caller's. The library
    /// sets RANK and WORLD_SIZE to the worker's index and the size of its group, LOCAL_RANK and
    /// LOCAL_WORLD_SIZE to the same among the workers at its host, and with options::restart those
    /// that restarts names; this can override them. For the command of execute() it sets none.
    /// @param name   not empty, and without '=' and NUL
    /// @param value  text, a path, or anything that fmt can format
    /// @throws std::invalid_argument  no environment can hold the name or the value, or only the
    ///         library sets this variable: COHORT_INDEX, COHORT_SIZE, COHORT_HOST,
    ///         COHORT_ERROR_FILE, TORCHELASTIC_ERROR_FILE
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
    /// A program name with a slash, and the paths of stdin_from and of files for output, are
    /// relative to it.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& working_directory(std::string path) {
        where().set_working_directory(std::move(path));
        return self();
    }

    /// The file mode creation mask with which the worker starts, see umask(2). It applies also to
    /// files of stdout_to and stderr_to that the worker itself opens, but not to those that this
    /// process writes, see file. By default the caller's.
    /// @param mask  permission bits, such as 077
    /// @throws std::invalid_argument  `mask` has bits outside 0777
    Derived& umask(mode_t mask) {
        where().set_umask(mask);
        return self();
    }

    /// The file that is the worker's standard input; by default /dev/null. A relative path is
    /// relative to the worker's working directory. Replaces what an earlier call set, as do all
    /// setters of a stream, fd() included.
    /// @throws std::invalid_argument  the path is empty or contains a NUL
    Derived& stdin_from(std::string path) { return set_input(detail::path_input{std::move(path)}); }
    /// The text that each worker can read from its standard input.
    Derived& stdin_from(const bytes& text) {
        return set_input(detail::sink_access::input_of(text));
    }
    /// Standard input is a pipe that group::write fills.
    Derived& stdin_from(const feed& pipe) { return set_input(detail::sink_access::input_of(pipe)); }
    /// Standard input is the caller's.
    Derived& stdin_from(const inherit& callers) {
        return set_input(detail::sink_access::input_of(callers));
    }

    /// Where the worker's standard output goes; by default to the caller's standard output.
    /// `stdout_to("logs/{index:03}.log")` is short for `stdout_to(file("logs/{index:03}.log"))`.
    /// Several sinks get the same text: `stdout_to(file("log"), capture())`.
    ///
    /// A worker's text goes into a pipe and is read here. There is no pipe for inherit(), discard()
    /// and most files (the docstring of file says which). The stream ends with its worker; what the
    /// worker's own children write later goes nowhere. Text that the worker's stdio has not flushed
    /// is lost when a signal ends it.
    /// @param first  a sink, see sinks.hpp, or the path of a file: a string, a literal or a
    ///               std::filesystem::path. A path is a pattern, see file.
    /// @param more   more of these
    /// @throws std::invalid_argument  a path is empty, has a NUL or is no pattern; inherit() or
    ///         discard() beside another sink; merge(); two capture(); two of lines() and chunks()
    template <detail::stream_target First, detail::stream_target... More>
    Derived& stdout_to(const First& first, const More&... more) {
        where().set_sinks("stdout_to", 1, detail::sinks_of("stdout_to", first, more...));
        return self();
    }

    /// Where the worker's standard error goes; by default to the caller's standard error. With
    /// merge() it goes where standard output goes. Several sinks get the same text.
    /// @throws std::invalid_argument  a path is empty, has a NUL or is no pattern; inherit(),
    ///         discard() or merge() beside another sink; two capture(); two of lines() and chunks()
    template <detail::stream_target First, detail::stream_target... More>
    Derived& stderr_to(const First& first, const More&... more) {
        where().set_sinks("stderr_to", 2, detail::sinks_of("stderr_to", first, more...));
        return self();
    }

    /// Where both go, standard output and standard error: both stdout_to() and stderr_to().
    /// @throws std::invalid_argument  a path is empty, has a NUL or is no pattern; inherit() or
    ///         discard() beside another sink; merge(); two capture(); two of lines() and chunks()
    template <detail::stream_target First, detail::stream_target... More>
    Derived& output_to(const First& first, const More&... more) {
        auto sinks = detail::sinks_of("output_to", first, more...);
        where().set_sinks("output_to", 1, sinks);
        where().set_sinks("output_to", 2, std::move(sinks));
        return self();
    }

    /// Gives the worker a descriptor. This call duplicates it, so `ours` may be closed afterwards.
    /// For 0, 1 and 2 it replaces what stdin_from, stdout_to or stderr_to set, and they replace it.
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
    /// event `{"fd":60,"kind":"event"}`. Commands and options hold ends of queues weakly,
    /// because the stream would not end otherwise: keep the handle until the group has started, or
    /// spawn throws sharing_error.
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
    friend class settings_of_workers<Derived>;
    where_it_runs() = default;

    Derived& self() { return static_cast<Derived&>(*this); }
    detail::placement& where() { return self().placed(); }
    Derived& set_input(detail::input from) {
        where().set_input(std::move(from));
        return self();
    }

    friend bool operator==(const where_it_runs&, const where_it_runs&) = default;
};

}  // namespace cohort
