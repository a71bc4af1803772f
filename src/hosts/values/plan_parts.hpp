// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/values/wire.hpp"
#include "protocol/order/limits.hpp"

#include <cohort/detail/plan.hpp>

#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// The members of a plan, each with its limits. All members of a type are bound by name: one that is
// added to the type and not here is an error of the compiler.
namespace cohort::multihost {

inline constexpr int last_signal = 64;  // the kernel's _NSIG; glibc's SIGRTMAX is a function call

template <wire W, class T>
void maybe_number(W& w, T& value) {
    w.maybe(value, [&](auto& set) { w.number(set); });
}

template <wire W, class T>
void maybe_word(W& w, T& value) {
    w.maybe(value, [&](auto& set) { w.word(set); });
}

template <wire W>
void walk(W& w, typename W::template of<detail::env_change>& change) {
    auto& [name, value] = change;
    w.word(name);
    maybe_word(w, value);
    if constexpr (W::reads)
        if (name.empty() || name.find('=') != std::string::npos)
            throw unreadable("a variable has no name, or one with a '=' in it");
}

template <wire W>
void walk(W& w, typename W::template of<detail::file_sink>& sink) {
    auto& [pattern, appends, rotate_at, kept, tag, timestamps, full] = sink;
    w.word(pattern);
    w.flag(appends);
    w.number(rotate_at);
    w.number(kept, 0);
    w.maybe(tag, [&](auto& set) { w.text(set); });
    w.flag(timestamps);
    w.one_of(full, when_full::block);
}

template <wire W>
void walk(W& w, typename W::template of<detail::capture_sink>& sink) {
    auto& [head, tail, at_most] = sink;
    w.number(head);
    w.number(tail);
    maybe_number(w, at_most);
}

template <wire W>
void walk(W& w, typename W::template of<detail::queue_buffer>& buffer) {
    auto& [bytes, is_chosen] = buffer;
    w.number(bytes);
    w.flag(is_chosen);
}

template <wire W>
void walk(W& w, typename W::template of<detail::lines_sink>& sink) {
    auto& [buffer, full, longest] = sink;
    walk(w, buffer);
    w.one_of(full, when_full::block);
    w.number(longest);
}

template <wire W>
void walk(W& w, typename W::template of<detail::chunks_sink>& sink) {
    auto& [buffer, full] = sink;
    walk(w, buffer);
    w.one_of(full, when_full::block);
}

template <wire W>
void walk(W& w, typename W::template of<detail::console_sink>& sink) {
    auto& [tag, only, filter, full] = sink;
    w.text(tag);
    w.maybe(only, [&](auto& indices) { w.set(indices, [&](auto& index) { w.number(index); }); });
    if (filter)  // settle_consoles() has made a set of it
        throw std::logic_error("a callable of console().only() is not evaluated yet");
    w.one_of(full, when_full::block);
}

/// Of an alternative without members only its place goes over.
template <wire W, class Variant>
void walk_either(W& w, Variant& value) {
    w.either(value, [&]<class One>(One& one) {
        if constexpr (!std::is_empty_v<std::remove_const_t<One>>)
            walk(w, one);
    });
}

template <wire W>
void walk(W& w, typename W::template of<detail::sink>& sink) {
    walk_either(w, sink);
}

template <wire W>
void walk(W& w, typename W::template of<detail::path_input>& from) {
    auto& [path] = from;
    w.word(path);
}

template <wire W>
void walk(W& w, typename W::template of<detail::bytes_input>& from) {
    auto& [text] = from;
    w.shared(text);
}

template <wire W>
void walk(W& w, typename W::template of<detail::input>& from) {
    walk_either(w, from);
}

template <wire W>
void walk(W& w, typename W::template of<detail::user_choice>& choice) {
    auto& [told, user, group, groups] = choice;
    w.text(told);
    w.number(user);
    w.number(group);
    w.list(groups, unlimited, [&](auto& one) { w.number(one); });
}

template <wire W>
void walk(W& w, typename W::template of<detail::soft_and_hard>& limits) {
    auto& [soft, hard] = limits;
    w.number(soft);
    w.number(hard);
}

template <wire W>
void walk(W& w, typename W::template of<detail::io_priority_choice>& choice) {
    auto& [of, level] = choice;
    w.one_of(of, io_class::realtime);
    w.number(level, 0, 7);
}

template <wire W>
void walk(W& w, typename W::template of<detail::cpu_choice>& choice) {
    auto& [list] = choice;
    w.list(list, unlimited, [&](auto& cpu) { w.number(cpu, 0); });
}

template <wire W>
void walk(W& w, typename W::template of<std::vector<gid_t>>& groups) {
    w.list(groups, unlimited, [&](auto& one) { w.number(one); });
}

template <wire W>
void walk(W& w, typename W::template of<std::map<resource, detail::soft_and_hard>>& resources) {
    w.map(resources, [&](auto& which, auto& limit) {
        w.one_of(which, resource::locked_memory);
        walk(w, limit);
    });
}

template <wire W, class T>
void walk_one(W& w, T& value) {
    using type = std::remove_const_t<T>;
    if constexpr (std::same_as<type, bool>)
        w.flag(value);
    else if constexpr (std::integral<type>)
        w.number(value);
    else if constexpr (std::floating_point<type>)
        w.real(value, std::numeric_limits<type>::lowest(), std::numeric_limits<type>::max());
    else if constexpr (std::same_as<type, std::string>)
        w.word(value);
    else
        walk(w, value);
}

template <wire W>
void walk(W& w, typename W::template of<detail::worker_limits>& limits) {
    protocol::for_each_limit([&](const auto& row) {
        auto& value = limits.*row.member;
        if constexpr (requires { value.has_value(); })
            w.maybe(value, [&](auto& set) {
                walk_one(w, set);
                if constexpr (W::reads && requires { row.rule(row.setter, set); })
                    row.rule(row.setter, set);
            });
        else
            walk_one(w, value);
    });
}

/// Lets the setters check what came.
inline void check_placement(detail::placement& where) {
    if (where.working_directory)
        where.set_working_directory(*where.working_directory);
    if (where.umask)
        where.set_umask(*where.umask);
    for (auto& [number, targets] : std::exchange(where.sinks, {}))
        where.set_sinks("a stream", number, std::move(targets));
}

template <wire W>
void walk(W& w, typename W::template of<detail::placement>& where) {
    auto& [clear_env, env, working_directory, umask, descriptors, sinks, input, shared, limits] =
        where;
    w.flag(clear_env);
    w.list(env, unlimited, [&](auto& change) { walk(w, change); });
    maybe_word(w, working_directory);
    maybe_number(w, umask);
    w.map(sinks, [&](auto& number, auto& targets) {
        w.number(number, 1, 2);
        w.list(targets, unlimited, [&](auto& one) { walk(w, one); });
    });
    w.maybe(input, [&](auto& from) { walk(w, from); });
    walk(w, limits);
    if (!descriptors.empty() || !shared.empty())  // refuse_to_leave() has refused them
        throw std::logic_error("a descriptor does not leave its machine");
    if constexpr (W::reads)
        check_placement(where);
}

template <wire W>
void walk(W& w, typename W::template of<detail::program>& program) {
    auto& [argv, where] = program;
    w.list(argv, unlimited, [&](auto& argument) { w.word(argument); });
    walk(w, where);
    if constexpr (W::reads)
        if (argv.empty())
            throw unreadable("a command has no name");
}

template <wire W>
void walk(W& w, typename W::template of<detail::restart_settings>& restarts) {
    auto& [most, within, first_pause, longest_pause, jitter, scope, after] = restarts;
    w.number(most, 0);
    w.maybe(within, [&](auto& set) { w.span(set); });
    w.span(first_pause);
    w.span(longest_pause);
    w.real(jitter, 0, 1);
    w.one_of(scope, restart_scope::all);
    w.one_of(after, restart_on::always);
}

template <wire W>
void walk(W& w, typename W::template of<detail::log_settings>& logs) {
    auto& [directory, run_id] = logs;
    w.word(directory);
    w.word(run_id);
}

template <wire W>
void walk(W& w, typename W::template of<detail::numbering>& told) {
    auto& [index, size] = told;
    w.number(index, 0);
    w.number(size, 0);
}

template <wire W>
void walk(W& w, typename W::template of<detail::group_settings>& settings) {
    auto& [nprocs, is_sized, machines, per_host, at_once, restarts, method, daemon, crash_record,
           stack_on_stop, error_file, result_limit, notice_period, stop_signal, grace_period,
           kill_timeout, parent_death_signal, policy, time_limit, worker_time_limit, success_codes,
           process_group, cgroup, cgroup_directory, group_memory_max, group_cpu_max, name,
           flush_timeout, pipe_size, logs, where, place] = settings;
    w.number(nprocs, 0);
    w.number(at_once, 0);
    w.maybe(restarts, [&](auto& set) { walk(w, set); });
    w.one_of(method, start_method::forkserver);
    for (auto* const one : {&daemon, &crash_record, &stack_on_stop, &error_file})
        w.flag(*one);
    w.number(result_limit);
    w.span(notice_period);
    w.number(stop_signal, 1, last_signal);
    w.span(grace_period);
    w.span(kill_timeout);
    w.number(parent_death_signal, 0, last_signal);
    w.one_of(policy, on_failure::keep_going);
    w.maybe(time_limit, [&](auto& set) { w.span(set); });
    w.maybe(worker_time_limit, [&](auto& set) { w.span(set); });
    w.set(success_codes, [&](auto& code) { w.number(code, 0, 255); });
    w.one_of(process_group, process_group::inherit);
    w.one_of(cgroup, cgroup::off);
    w.word(cgroup_directory);
    maybe_number(w, group_memory_max);
    w.maybe(group_cpu_max, [&](auto& set) { w.real(set, 0, 65'536); });
    w.word(name);
    w.span(flush_timeout);
    w.number(pipe_size);
    w.maybe(logs, [&](auto& set) { walk(w, set); });
    walk(w, where);
    (void)is_sized, (void)per_host;  // of the whole group, whose size is known
    if (place || machines)           // place_workers() has called it; a part is at its host
        throw std::logic_error("the settings of single workers are not made yet");
}

}  // namespace cohort::multihost
