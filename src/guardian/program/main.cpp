// SPDX-License-Identifier: BSL-1.0
// The guardian: waits until its parent in spirit is dead, then ends what that one's workers have
// left in their process groups, by the ladder, then what is left in their cgroups, and ends itself.
// It has no C library: system calls only.
//
// It holds a pidfd of each worker, and signals process groups through these alone
// (PIDFD_SIGNAL_PROCESS_GROUP), so it never reaches anybody else, however late it is and whatever
// numbers have been given away anew. Of workers that have ended it learns by looking, now and then.
#include "guardian/program/cgroup.hpp"
#include "orders/guard.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace {

using cohort::orders::guard_message;
using cohort::orders::guarded;
using cohort::orders::guardian_program;
using cohort::sys::address;
using cohort::sys::raw_call;

constexpr int parent = cohort::orders::guardian_parent;
constexpr unsigned to_process_group = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

/// How long it lets messages pile up after the first: a burst of starts wakes it once. 200 fit.
constexpr int gathering_ms = 5;
/// Longer than that after SIGKILL it does not wait for what the kernel holds.
constexpr long after_kill_ms = 10'000;
constexpr long longest_pause_ms = 100;
/// How often it looks whether there is room again, or nothing left, where no event tells that.
constexpr long look_interval_ms = 10'000;

struct guarded_process {
    bool held = false;
    bool told = false;  // that it is to stop
    guard_message message;
};
constexpr int room = 1 << 16;
guarded_process guarded_processes
    [room];  // by the number of the descriptor; pages that are not used are not there
int end_of_guarded = 0;
int held_count = 0;
int look_at = 64;                                      // when so many are held, some have ended
int connection = cohort::orders::guardian_connection;  // -1: nothing more comes from there
bool is_full = false;                                  // messages wait in there until there is room
bool was_full = false;                                 // it has ended the connection itself
unsigned own_user = 0;

long signal_group(int pidfd, int signo) {
    return raw_call(SYS_pidfd_send_signal, pidfd, signo, 0, to_process_group);
}
long signal_one(int pidfd, int signo) {
    return raw_call(SYS_pidfd_send_signal, pidfd, signo, 0, 0);
}

bool is_worker(int fd) { return guarded_processes[fd].message.what == guarded::worker; }

/// A worker is reaped, and its process group is empty; one that is not reaped may have yet to make
/// its group. A cgroup is removed.
bool is_gone(int fd) {
    return is_worker(fd) ? signal_one(fd, 0) == -ESRCH && signal_group(fd, 0) == -ESRCH
                         : cohort::guardian::is_removed(fd);
}

void release(int fd) {
    guarded_processes[fd].held = false;
    --held_count;
    raw_call(SYS_close, fd);
}

void release_ended() {
    int end = 0;
    for (int fd = 0; fd < end_of_guarded; ++fd) {
        if (!guarded_processes[fd].held)
            continue;
        if (is_gone(fd))
            release(fd);
        else
            end = fd + 1;
    }
    end_of_guarded = end;
}

void hold(int fd, const guard_message& message) {
    guarded_processes[fd].held = true;
    guarded_processes[fd].told = false;
    guarded_processes[fd].message = message;
    if (fd >= end_of_guarded)
        end_of_guarded = fd + 1;
    if (++held_count >= look_at) {
        // Twice as many as there are: each look costs each start at most a constant.
        release_ended();
        look_at = held_count < 32 ? 64 : 2 * held_count;
    }
}

/// What comes with a message.
struct attachment {
    int descriptor = -1;
    bool from_own_user = false;
};

/// One message comes with one descriptor; any more are closed.
int first_of(const int* descriptors, unsigned long length) {
    const unsigned long count =
        length < sizeof(cmsghdr) ? 0 : (length - sizeof(cmsghdr)) / sizeof(int);
    for (unsigned long i = 1; i < count; ++i)
        raw_call(SYS_close, descriptors[i]);
    return count > 0 ? descriptors[0] : -1;
}

attachment read_control(const unsigned char* control, unsigned long length) {
    constexpr unsigned long unit = sizeof(long);
    attachment found;
    for (unsigned long at = 0; at + sizeof(cmsghdr) <= length;) {
        const auto* header = reinterpret_cast<const cmsghdr*>(control + at);
        const void* data = control + at + sizeof(cmsghdr);
        if (header->cmsg_type == SCM_RIGHTS)
            found.descriptor = first_of(static_cast<const int*>(data), header->cmsg_len);
        else if (header->cmsg_type == SCM_CREDENTIALS)
            found.from_own_user = static_cast<const ucred*>(data)->uid == own_user;
        if (header->cmsg_len < sizeof(cmsghdr))
            break;
        at += (header->cmsg_len + unit - 1) / unit * unit;
    }
    return found;
}

enum class word_result { taken, none_now, end, of_another_user };

/// Takes one message.
word_result take_word() {
    guard_message told;
    alignas(cmsghdr) unsigned char control[128];
    iovec part{&told, sizeof told};
    msghdr message;
    message.msg_name = nullptr;
    message.msg_namelen = 0;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    message.msg_flags = 0;
    const long length =
        raw_call(SYS_recvmsg, connection, address(&message), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A shortage is not the end, at which workers are killed: it is tried again a little later.
    if (length == -EAGAIN || length == -EINTR || length == -ENOMEM || length == -ENOBUFS)
        return word_result::none_now;
    if (length <= 0)
        return word_result::end;
    const attachment with = read_control(control, message.msg_controllen);
    if (with.from_own_user && length == sizeof told && with.descriptor >= 0 &&
        with.descriptor < room)
        hold(with.descriptor, told);
    else if (with.descriptor >= 0)
        raw_call(SYS_close, with.descriptor);
    return with.from_own_user ? word_result::taken : word_result::of_another_user;
}

/// Whether one more can be held, and a file of a cgroup be opened after that.
bool has_room() {
    rlimit limit{};
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, address(&limit));
    constexpr int own = guardian_program;  // stdio, the parent, the connection
    const auto needed = static_cast<unsigned long>(own + held_count + 2);
    return needed <= limit.rlim_cur && needed <= room;
}

/// Without room for more it lets no further messages come: the parent sees that the connection has
/// ended, and starts another guardian for its further workers. Those messages that have come already
/// stay in the connection until there is room for them.
bool makes_room() {
    if (!has_room())
        release_ended();
    is_full = !has_room();
    if (is_full)
        raw_call(SYS_shutdown, connection, SHUT_RDWR);
    was_full = was_full || is_full;
    return !is_full;
}

/// @return whether there is nothing to wait for any more: the parent has executed another program.
bool take_words() {
    while (connection >= 0 && makes_room())
        switch (take_word()) {
        case word_result::taken:
            break;
        case word_result::none_now:
            return false;
        case word_result::end:
            if (!was_full)
                return true;
            raw_call(SYS_close, connection);
            connection = -1;
            break;
        case word_result::of_another_user:
            // The parent has become somebody else, who must not borrow the rights of before: it
            // gets to see that the connection has ended, and starts another guardian. Those that
            // this one has it keeps.
            raw_call(SYS_close, connection);
            connection = -1;
        }
    return false;
}

/// @return whether the parent is dead
bool wait(short connection_events, long timeout_ms) {
    pollfd polled[] = {{parent, POLLIN, 0}, {is_full ? -1 : connection, connection_events, 0}};
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
    raw_call(SYS_ppoll, address(polled), 2, timeout_ms < 0 ? 0 : address(&timeout), 0);
    return polled[0].revents != 0;
}

/// Its parent has another guardian, and nothing that this one holds is left.
bool has_retired() {
    if (connection < 0)
        release_ended();
    return connection < 0 && held_count == 0;
}

void await_death() {
    for (bool dead = false; !dead;) {
        const bool hears = connection >= 0 && !is_full;
        dead = wait(POLLIN, hears ? -1 : look_interval_ms) || wait(0, gathering_ms);
        if (take_words() || has_retired())
            return;
    }
}

long now_ms() {
    timespec now{};
    raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, address(&now));
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// To one of them, what the time demands. @return when it is to be gone at last
long stop_further(int fd, long elapsed) {
    const guard_message& message = guarded_processes[fd].message;
    const bool too_late = elapsed >= message.grace_ms;
    if (is_worker(fd) && !too_late && !guarded_processes[fd].told) {
        signal_group(fd, message.stop_signal);
        signal_group(fd, SIGCONT);  // what is stopped would not notice before
        guarded_processes[fd].told = true;
    }
    if (is_worker(fd) && too_late) {
        signal_group(fd, SIGKILL);
        signal_one(fd, SIGKILL);
    } else if (!is_worker(fd)) {
        if (too_late)
            cohort::guardian::kill_cgroup(fd);
        cohort::guardian::remove_cgroup(fd);
    }
    return message.grace_ms + after_kill_ms;
}

/// Looks again and again: the end of a process group is no event of the kernel's.
void end_all() {
    const long start = now_ms();
    for (long pause = 1;; pause = pause * 2 < longest_pause_ms ? pause * 2 : longest_pause_ms) {
        const long elapsed = now_ms() - start;
        release_ended();
        take_words();  // those for which there was no room before
        long last = 0;
        for (int fd = 0; fd < end_of_guarded; ++fd)
            if (guarded_processes[fd].held)
                if (const long end = stop_further(fd, elapsed); end > last)
                    last = end;
        if (held_count == 0 || elapsed > last)
            return;
        const timespec length{pause / 1000, pause % 1000 * 1'000'000};
        raw_call(SYS_nanosleep, address(&length), 0);
    }
}

/// As many descriptors as are allowed: its parent may hold more workers than the soft limit by now.
void raise_limit() {
    rlimit limit{};
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, address(&limit));
    limit.rlim_cur = limit.rlim_max;
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, address(&limit), 0);
}

}  // namespace

extern "C" [[noreturn]] void guardian_main() {
    // Nothing but SIGKILL ends it before its time: it ends with its parent anyway.
    const unsigned long all = ~0UL;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, address(&all), 0, sizeof all);
    raw_call(SYS_prctl, PR_SET_NAME, address("cohort-guardian"));
    raw_call(SYS_close, cohort::orders::guardian_program);
    raise_limit();
    own_user = static_cast<unsigned>(raw_call(SYS_getuid));
    await_death();
    end_all();
    for (;;)
        raw_call(SYS_exit_group, 0);
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandq $-16, %rsp\n\tcall guardian_main\n\tud2\n");
#elif defined(__aarch64__)
asm(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x30, xzr\n\tbl guardian_main\n\tbrk #1\n");
#endif
