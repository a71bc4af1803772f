// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/count.hpp>
#include <cohort/detail/limits.hpp>
#include <cohort/policies.hpp>

#include <chrono>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort {

template <class Derived>
class where_it_runs;

/// The setters of what a worker may use, which `options` and `command` share. The child sets them
/// before its program or function begins, by every start method. One that the kernel refuses fails
/// the start: spawn_error, with the stage that the setter names. What a command sets stands over
/// what the options set. What is not set is as in a child of the calling thread: nice value, class
/// and level of reads and writes, scheduling, CPUs, timer slack, user and groups, capabilities and
/// no_new_privileges, also those that this thread has changed for itself alone. Resource limits and
/// oom_score_adj are the process's; with start_method::forkserver, as they were when the fork
/// server was started.
template <class Derived>
class limits_of {
public:
    /// Limits a resource of the worker: both the soft limit and the hard one, which the worker
    /// can't raise. It counts for what the worker opens and allocates later; what it is given, such
    /// as fd(), it has. Stage "limit".
    /// @param which  the resource; its unit stands there
    /// @param n      the limit; RLIM_INFINITY: none. Only with CAP_SYS_RESOURCE can it be above the
    ///               caller's hard limit (EPERM)
    /// @throws std::invalid_argument  `n` is negative
    /// @source setrlimit(2)
    template <std::integral Number>
    Derived& limit(resource which, Number n) {
        return limit(which, n, n);
    }
    /// Limits a resource. The worker may raise the soft limit up to the hard one.
    /// @param which  see above
    /// @param soft   the limit that the kernel enforces
    /// @param hard   the highest that `soft` may become
    /// @throws std::invalid_argument  one is negative, or `soft` is above `hard`
    template <std::integral Soft, std::integral Hard>
    Derived& limit(resource which, Soft soft, Hard hard) {
        limits().set_resource(which, detail::count_of("limit", soft),
                              detail::count_of("limit", hard));
        return self();
    }

    /// The nice value of the worker: not added to the caller's, but in its place. Stage "nice".
    /// @param value  from -20, the most favoured, to 19. Below the caller's it needs CAP_SYS_NICE
    ///               or RLIMIT_NICE (EACCES)
    /// @throws std::invalid_argument  `value` is out of that range
    /// @source setpriority(2)
    Derived& nice(int value) {
        limits().set(&detail::worker_limits::nice, value);
        return self();
    }

    /// The class and level of the worker's reads and writes. Stage "io_priority".
    /// @param of     the class
    /// @param level  from 0, which is served first, to 7; io_class::idle has no levels
    /// @throws std::invalid_argument  `level` is out of that range
    /// @source ioprio_set(2)
    Derived& io_priority(io_class of, int level = 4) {
        limits().set_io_priority(of, level);
        return self();
    }

    /// Tells the kernel that the worker computes and does not wait for anybody: it is woken less
    /// eagerly (SCHED_BATCH). Stage "scheduling".
    /// @source sched(7)
    Derived& batch_scheduling() {
        limits().batch_scheduling = true;
        return self();
    }

    /// By how much the kernel may prolong the sleeps and timed waits of the worker, to end several
    /// at once. Those of real-time classes are not prolonged. Stage "timer_slack".
    /// @param most  usually 50 us
    /// @throws std::invalid_argument  `most` is negative or 0
    /// @source PR_SET_TIMERSLACK of prctl(2)
    Derived& timer_slack(std::chrono::nanoseconds most) {
        limits().set(&detail::worker_limits::timer_slack,
                     detail::count_of("timer_slack", most.count()));
        return self();
    }

    /// The CPUs on which the worker may run. Stage "affinity": one of them is not there, or this
    /// process may not use it.
    /// @param list  numbers and ranges, such as "0-3,8"
    /// @throws std::invalid_argument  `list` is empty or no such list, or a number is above 65535
    /// @source sched_setaffinity(2); the list is written as in cpuset(7)
    Derived& cpus(std::string_view list) {
        limits().set_cpus(list);
        return self();
    }
    /// The CPUs on which the worker may run, in any order. Stage "affinity".
    /// @param list  their numbers
    /// @throws std::invalid_argument  `list` is empty, or a number is negative or above 65535
    Derived& cpus(std::vector<int> list) {
        limits().set_cpus(std::move(list));
        return self();
    }
    /// The CPUs on which the worker may run: `cpus({0, 1})`.
    /// @param list  their numbers
    /// @throws std::invalid_argument  see above
    Derived& cpus(std::initializer_list<int> list) { return cpus(std::vector<int>(list)); }

    /// Gives each worker a part of the CPUs on which the caller may run: as many parts as workers
    /// run at a time, as equal as whole cores allow. With options::at_once a worker gets a part
    /// that is free. With more workers at a time than cores those of a core share its CPUs, and
    /// with more than CPUs some have the same one. Replaces what cpus() set, and is replaced by it.
    Derived& spread_cpus() {
        limits().cpus.emplace();
        return self();
    }

    /// How soon the kernel's out-of-memory killer takes the worker. Stage "oom_score_adj".
    /// @param value  from -1000, never, to 1000, first. A lower one than the caller's needs
    ///               CAP_SYS_RESOURCE (EACCES)
    /// @throws std::invalid_argument  `value` is out of that range
    /// @source /proc/self/oom_score_adj of proc(5)
    Derived& oom_score_adj(int value) {
        limits().set(&detail::worker_limits::oom_score_adj, value);
        return self();
    }

    /// The user whose rights the worker has, with the groups of that user. The child takes it after
    /// all that needs the caller's rights: its streams and its directory are opened before. HOME
    /// and the other variables stay as they are. Needs CAP_SETUID, CAP_SETGID and CAP_CHOWN,
    /// because the worker's error file and pipes become that user's; and either CAP_KILL or that
    /// user, because the group could not stop its workers otherwise: stage "user", EPERM. The
    /// worker has no capabilities, unless the user is root. For function workers that user must be
    /// able to execute this program. A worker that is a copy, by start_method::fork or forkserver,
    /// writes no core file, because its memory is that of the caller's user. Memory that is shared
    /// by name is not found by another user.
    /// @param name  looked up here and now, which may ask a network
    /// @throws std::invalid_argument  there is no such user
    /// @throws std::system_error      the users can't be looked up
    /// @source setresuid(2), getpwnam(3), getgrouplist(3)
    Derived& user(const std::string& name) {
        limits().set_user(name);
        return self();
    }
    /// The user and the group whose rights the worker has, by number, without other groups unless
    /// groups() sets some. Stage "user".
    /// @param user   the ID of the user
    /// @param group  the ID of the user's group
    /// @throws std::invalid_argument  one is -1, which is no ID
    Derived& user(uid_t user, gid_t group) {
        limits().set_user(user, group);
        return self();
    }
    /// The supplementary groups of the worker, in place of the caller's or of those of user().
    /// Needs CAP_SETGID. Stage "groups".
    /// @param ids  the IDs; empty: none
    /// @source setgroups(2)
    Derived& groups(std::vector<gid_t> ids) {
        limits().groups = std::move(ids);
        return self();
    }

    /// Nothing that the worker executes gives it rights: no set-user-ID bit and no file
    /// capability. Stage "no_new_privileges".
    /// @source PR_SET_NO_NEW_PRIVS of prctl(2)
    Derived& no_new_privileges() {
        limits().no_new_privileges = true;
        return self();
    }

    /// The worker leads a session of its own, without a terminal, and so a process group too,
    /// whatever options::process_group() says. Stage "process group".
    /// @source setsid(2)
    Derived& session() {
        limits().session = true;
        return self();
    }

    /// The name by which the worker's program is called (argv[0]), in place of the command's first
    /// word or this program's name. A worker that is a copy, by start_method::fork or forkserver,
    /// has it as the name of its process only, of which the kernel shows 15 bytes.
    /// @throws std::invalid_argument  the name is empty or contains a NUL
    Derived& argv0(std::string name) {
        limits().set(&detail::worker_limits::argv0, std::move(name));
        return self();
    }

    /// The program that a function worker executes, in place of this one: for functions that a
    /// plugin or an extension module of a large host starts, and for small images. It must have the
    /// function: make a work of it, as function<train>(...), somewhere in its code or in a library
    /// that it links; and it must call worker_main. Else the worker fails with an error that says
    /// so. The function is found by its name, which two functions of single source files (static
    /// ones, and those of anonymous namespaces) may have in common: then neither is found. The
    /// program must be built with the same version of this library. Has no effect on commands. With
    /// start_method::fork or forkserver, which execute nothing, the start fails: stage
    /// "start_method".
    /// @param path  absolute
    /// @throws std::invalid_argument  the path is not absolute or contains a NUL
    Derived& executable(std::string path) {
        limits().set(&detail::worker_limits::executable, std::move(path));
        return self();
    }

    // The limits below are those of a cgroup (version 2) that the worker gets inside the group's.
    // They count for the worker and all that it starts. The group needs a cgroup, with the kernel's
    // controllers memory, cpu or pids: one in a directory that options::cgroup() names, which has
    // them and no process of its own, or below this process's own. Where a limit can't be set the
    // start fails: stage "cgroup", and the text names the file.

    /// How much memory the worker may have; none of it is swapped (memory.max, memory.swap.max).
    /// When it wants more the kernel's out-of-memory killer ends it: cause::oom_killed.
    /// @param bytes  a multiple of pages, or is rounded down to one
    /// @throws std::invalid_argument  `bytes` is negative or 0
    template <std::integral Bytes>
    Derived& memory_max(Bytes bytes) {
        limits().set(&detail::worker_limits::memory_max, detail::count_of("memory_max", bytes));
        return self();
    }
    /// How much time of CPUs the worker may use: the time of so many, of any (cpu.max).
    /// @param cores  at least 0.01
    /// @throws std::invalid_argument  `cores` is less, or not a number
    Derived& cpu_max(double cores) {
        limits().set(&detail::worker_limits::cpu_max, cores);
        return self();
    }
    /// How many processes and threads the worker may be, all that it starts included (pids.max).
    /// @param n  one more is refused to it (EAGAIN)
    /// @throws std::invalid_argument  `n` is negative or 0
    template <std::integral Number>
    Derived& tasks_max(Number n) {
        limits().set(&detail::worker_limits::tasks_max, detail::count_of("tasks_max", n));
        return self();
    }

private:
    friend class where_it_runs<Derived>;
    limits_of() = default;

    Derived& self() { return static_cast<Derived&>(*this); }
    detail::worker_limits& limits() { return self().placed().limits; }

    friend bool operator==(const limits_of&, const limits_of&) = default;
};

}  // namespace cohort
