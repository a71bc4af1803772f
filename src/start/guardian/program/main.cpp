// SPDX-License-Identifier: BSL-1.0
// The guardian waits until the application is dead. Then it ends what the application's workers
// left in their process groups, by the stop ladder, and after that what is left in their cgroups.
// At last it removes the names of shared memory that nobody uses any more, and exits. It uses no C
// library, only system calls. "The parent" is the application here, although the guardian is not
// its child.
//
// The guardian holds a pidfd of each worker and signals process groups only through these
// (PIDFD_SIGNAL_PROCESS_GROUP). So it never reaches another process, even when it acts late and
// pids have been reused. Before Linux 6.9 it signals a group by number, if nothing says that the
// number is another's: see process_groups.hpp. Which workers have ended, it finds out by looking
// now and then.
#include "protocol/order/guard.hpp"
#include "start/guardian/program/ancillary_data.hpp"
#include "start/guardian/program/cgroup.hpp"
#include "start/guardian/program/clock.hpp"
#include "start/guardian/program/names.hpp"
#include "start/guardian/program/process_groups.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace {

using cohort::base::address;
using cohort::base::raw_call;
using cohort::protocol::guard_message;
using cohort::protocol::guarded;
using cohort::protocol::guardian_program;
using cohort::start::now_ms;
using cohort::start::sleep_ms;

constexpr int parent = cohort::protocol::guardian_parent;
constexpr unsigned to_process_group = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9

/// How long messages may pile up after the first one, so that a burst of starts wakes the guardian
/// once. The connection holds 200.
constexpr int batch_ms = 5;
/// How long the guardian waits after SIGKILL for processes that the kernel does not let end.
constexpr long after_kill_ms = 10'000;
constexpr long longest_pause_ms = 100;
/// How often the guardian looks whether there is room again, or nothing left to guard, while no
/// event says so.
constexpr long look_interval_ms = 10'000;

struct guarded_item {
    bool held = false;
    bool stop_sent = false;
    bool has_members = false;  // by_number: processes of its session have been seen in its group
    guard_message message;
};
constexpr int capacity = 1 << 16;
/// By descriptor number. Pages of the array that are not used take no memory.
guarded_item guarded_items[capacity];
int end_of_guarded = 0;
int held_count = 0;
/// The value of held_count at which to look for what has ended.
int look_threshold = 64;
int connection = cohort::protocol::guardian_connection;  // -1: closed, no more messages come
bool is_full = false;                                    // messages must wait in the connection
bool was_full = false;  // the guardian has shut the connection down
unsigned own_user = 0;
int names_directory = -1;  // /dev/shm; -1: names are not removed
cohort::start::names_prefix names;

long signal_one(int pidfd, int signo) {
    return raw_call(SYS_pidfd_send_signal, pidfd, signo, 0, 0);
}

/// Looks which of the groups that are signalled by number have members. One look is for all of
/// them, because many workers end at once with their parent.
void look_for_members() {
    cohort::start::for_each_process([](const cohort::start::group_and_session& process) {
        for (int fd = 0; fd < end_of_guarded; ++fd) {
            guarded_item& item = guarded_items[fd];
            if (item.held && item.message.by_number != 0 && item.message.leader == process.group &&
                item.message.leader_session == process.session)
                item.has_members = true;
        }
    });
}

/// Whether the number of a worker is that of its process group still. The kernel gives no number
/// to a new process while a process or a group has it. After the leader was reaped, a process with
/// its number is another one, whose group is not the worker's.
bool keeps_its_number(int fd) {
    guarded_item& item = guarded_items[fd];
    const int number = item.message.leader;
    if (number <= 1)  // kill(2) would take 0 and 1 for other targets
        return false;
    if (signal_one(fd, 0) != -ESRCH)
        return true;
    if (raw_call(SYS_kill, number, 0) != -ESRCH || raw_call(SYS_kill, -number, 0) == -ESRCH)
        return false;
    if (!item.has_members)
        look_for_members();
    return item.has_members;
}

long signal_group(int fd, int signo) {
    const guard_message& message = guarded_items[fd].message;
    if (message.by_number == 0)
        return raw_call(SYS_pidfd_send_signal, fd, signo, 0, to_process_group);
    return keeps_its_number(fd) ? raw_call(SYS_kill, -message.leader, signo) : -ESRCH;
}

bool is_worker(int fd) { return guarded_items[fd].message.what == guarded::worker; }

/// Whether a worker was reaped and its process group is empty, or a cgroup was removed. An empty
/// group is not enough, because a worker that is not reaped may not have made its group yet.
bool is_gone(int fd) {
    return is_worker(fd) ? signal_one(fd, 0) == -ESRCH && signal_group(fd, 0) == -ESRCH
                         : cohort::start::is_removed(fd);
}

void release(int fd) {
    guarded_items[fd].held = false;
    --held_count;
    raw_call(SYS_close, fd);
}

void release_ended() {
    int end = 0;
    for (int fd = 0; fd < end_of_guarded; ++fd) {
        if (!guarded_items[fd].held)
            continue;
        if (is_gone(fd))
            release(fd);
        else
            end = fd + 1;
    }
    end_of_guarded = end;
}

void hold(int fd, const guard_message& message) {
    guarded_items[fd].held = true;
    guarded_items[fd].stop_sent = false;
    guarded_items[fd].has_members = false;
    guarded_items[fd].message = message;
    if (fd >= end_of_guarded)
        end_of_guarded = fd + 1;
    if (++held_count >= look_threshold) {
        // The next look comes at twice the present number, so that looking costs a constant time
        // for each start.
        release_ended();
        look_threshold = held_count < 32 ? 64 : 2 * held_count;
    }
}

/// Holds the directory of the session's names. A second message replaces the first.
void hold_names(int directory, const guard_message& message) {
    if (names_directory >= 0)
        raw_call(SYS_close, names_directory);
    names_directory = directory;
    cohort::start::set_prefix(names, own_user, message.session);
}

enum class receive_result { received, none_now, closed, of_another_user };

/// Receives one message and holds what comes with it.
receive_result receive_message() {
    guard_message content;
    alignas(cmsghdr) unsigned char control[128];
    iovec part{&content, sizeof content};
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
    // A shortage is tried again later. It must not count as the end, at which workers are killed.
    if (length == -EAGAIN || length == -EINTR || length == -ENOMEM || length == -ENOBUFS)
        return receive_result::none_now;
    if (length <= 0)
        return receive_result::closed;
    const auto ancillary =
        cohort::start::read_ancillary_data(control, message.msg_controllen, own_user);
    const bool is_whole = ancillary.from_own_user && length == sizeof content;
    if (is_whole && ancillary.descriptor >= 0 && content.what == guarded::names)
        hold_names(ancillary.descriptor, content);
    else if (is_whole && ancillary.descriptor >= 0 && ancillary.descriptor < capacity)
        hold(ancillary.descriptor, content);
    else if (ancillary.descriptor >= 0)
        raw_call(SYS_close, ancillary.descriptor);
    return ancillary.from_own_user ? receive_result::received : receive_result::of_another_user;
}

/// Whether one more descriptor can be held, and after that a cgroup's file can be opened.
bool has_room() {
    rlimit limit{};
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, address(&limit));
    // Stdio, the parent, the connection, and the directory of the names.
    const int own = guardian_program + (names_directory >= 0);
    const auto needed = static_cast<unsigned long>(own + held_count + 2);
    return needed <= limit.rlim_cur && needed <= capacity;
}

/// Makes room for one more message, if possible. If not, shuts the connection down: the parent sees
/// that and starts another guardian for its further workers. Messages that have come already stay
/// in the connection until there is room for them.
/// @return whether there is room
bool make_room() {
    is_full = !has_room();
    if (is_full) {
        release_ended();
        is_full = !has_room();
    }
    if (is_full)
        raw_call(SYS_shutdown, connection, SHUT_RDWR);
    was_full = was_full || is_full;
    return !is_full;
}

/// Receives the messages that have come, as far as there is room.
/// @return whether the parent has closed the connection, because it executed another program or
///         died
bool receive_messages() {
    while (connection >= 0 && make_room())
        switch (receive_message()) {
        case receive_result::received:
            break;
        case receive_result::none_now:
            return false;
        case receive_result::closed:
            if (!was_full)
                return true;
            raw_call(SYS_close, connection);
            connection = -1;
            break;
        case receive_result::of_another_user:
            // The parent has changed its user, and the new user must not use the rights of the old
            // one. The parent sees the end of the connection and starts another guardian. This one
            // keeps the workers that it has.
            raw_call(SYS_close, connection);
            connection = -1;
        }
    return false;
}

/// Waits for the parent's death or an event of the connection. @return whether the parent is dead
bool wait(short connection_events, long timeout_ms) {
    pollfd polled[] = {{parent, POLLIN, 0}, {is_full ? -1 : connection, connection_events, 0}};
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
    raw_call(SYS_ppoll, address(polled), 2, timeout_ms < 0 ? 0 : address(&timeout), 0);
    return polled[0].revents != 0;
}

/// Whether the parent uses another guardian, and all that this one held has ended.
bool is_no_longer_needed() {
    if (connection < 0)
        release_ended();
    return connection < 0 && held_count == 0;
}

void await_parent_death() {
    for (bool dead = false; !dead;) {
        const bool accepts_messages = connection >= 0 && !is_full;
        dead = wait(POLLIN, accepts_messages ? -1 : look_interval_ms) || wait(0, batch_ms);
        if (receive_messages() || is_no_longer_needed())
            return;
    }
}

/// Takes the step of the stop ladder that is due for one worker or cgroup.
/// @param elapsed  milliseconds since the guardian noticed the parent's death
/// @return the value of `elapsed` after which the guardian does not wait for this one any more
long take_due_step(int fd, long elapsed) {
    const guard_message& message = guarded_items[fd].message;
    const bool too_late = elapsed >= message.grace_ms;
    if (is_worker(fd) && !too_late && !guarded_items[fd].stop_sent) {
        signal_group(fd, message.stop_signal);
        signal_group(fd, SIGCONT);  // because a stopped process would not notice before
        guarded_items[fd].stop_sent = true;
    }
    if (is_worker(fd) && too_late) {
        signal_group(fd, SIGKILL);
        signal_one(fd, SIGKILL);
    } else if (!is_worker(fd)) {
        if (too_late)
            cohort::start::kill_cgroup(fd);
        cohort::start::remove_cgroup(fd);
    }
    return message.grace_ms + after_kill_ms;
}

/// Ends all that is held. Looks again and again, because the kernel reports no event when a process
/// group ends.
void end_all() {
    const long start = now_ms();
    // A guardian that is full needs descriptors to look at processes and cgroups.
    for (int fd = 0; fd <= parent; ++fd)
        raw_call(SYS_close, fd);
    for (long pause = 1;; pause = pause * 2 < longest_pause_ms ? pause * 2 : longest_pause_ms) {
        const long elapsed = now_ms() - start;
        release_ended();
        receive_messages();  // there may be messages for which there was no room before
        long last = 0;
        for (int fd = 0; fd < end_of_guarded; ++fd)
            if (guarded_items[fd].held)
                if (const long end = take_due_step(fd, elapsed); end > last)
                    last = end;
        if (held_count == 0 || elapsed > last)
            return;
        sleep_ms(pause);
    }
}

/// Raises the soft limit of descriptors to the hard limit, because the parent may have more workers
/// than the present soft limit.
void raise_limit() {
    rlimit limit{};
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, address(&limit));
    limit.rlim_cur = limit.rlim_max;
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, address(&limit), 0);
}

}  // namespace

extern "C" [[noreturn]] void guardian_main() {
    // Only SIGKILL may end the guardian early. It ends soon after its parent anyway.
    const unsigned long all = ~0UL;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, address(&all), 0, sizeof all);
    raw_call(SYS_prctl, PR_SET_NAME, address("cohort-guardian"));
    raw_call(SYS_close, cohort::protocol::guardian_program);
    raise_limit();
    own_user = static_cast<unsigned>(raw_call(SYS_getuid));
    await_parent_death();
    end_all();
    cohort::start::remove_names(names_directory, names, own_user, &sleep_ms);
    for (;;)
        raw_call(SYS_exit_group, 0);
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandq $-16, %rsp\n\tcall guardian_main\n\tud2\n");
#elif defined(__aarch64__)
asm(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x30, xzr\n\tbl guardian_main\n\tbrk #1\n");
#endif
