// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/border.hpp>

#include "group/border/impossible.hpp"
#include "group/state/group_state.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

// The border to the headers: checks the caller, and hands the call over to the engine's thread.
namespace cohort::detail::inline v0_1 {

namespace {

std::atomic<operation_id> last_operation_id{0};

/// The engine of the group's process. @throws std::system_error  in a forked copy of that process
loop::engine& own_loop(const group_ref& group) {
    if (!group->runtime().is_own())
        throw std::system_error(std::make_error_code(std::errc::no_child_process),
                                "cohort: this group belongs to the parent of this forked process");
    return group->runtime().loop();
}

/// Runs `ask` on the engine's thread. @throws std::system_error  see own_loop()
template <class Ask>
void post(const group_ref& group, Ask ask) {
    own_loop(group).post([group, ask = std::move(ask)] { ask(*group); });
}

/// Like post(), for calls that never fail: in a forked copy it does nothing.
template <class Ask>
void post_if_own(const group_ref& group, Ask ask) {
    if (group && group->runtime().is_own())
        group->runtime().loop().post([group, ask = std::move(ask)] { ask(*group); });
}

/// The exception leaves a noexcept function, so the program ends with this text.
[[noreturn]] void refuse_inline_handler() {
    throw std::logic_error("cohort: an executor has called a handler inside post() (execute() with "
                           "blocking.never), where it must queue it");
}

/// @throws std::invalid_argument
void require_worker(const group_state& group, const char* call, int index) {
    if (index < 0 || index >= group.snapshot().size())
        throw std::invalid_argument(
            fmt::format("cohort::group::{}: there is no worker {}, the group has {}", call, index,
                        group.snapshot().size()));
}

/// @throws std::invalid_argument
void require_signal(int signo) {
    if (signo < 1 || signo > SIGRTMAX)
        throw std::invalid_argument("cohort::group::signal: not a signal number: " +
                                    std::to_string(signo));
}

/// @throws std::invalid_argument, std::logic_error  see write_input()
void require_feed(const group_state& group, const char* call, int index) {
    require_worker(group, call, index);
    if (!group.streams().feeds(index))
        throw std::logic_error(fmt::format(
            "cohort::group::{}: the standard input of worker {} is not feed()", call, index));
}

/// Completes the operation here if the group has already ended, which happens when its workers live
/// for a moment only. @return false: the engine must complete the operation
bool complete_if_ended(const group_state& group, const receiver& to) {
    auto end = group.snapshot().end();
    if (!end || group.runtime().exiting())
        return false;
    const auto sink = to.sink.lock();
    completion done;
    done.end = std::move(end);
    return !sink || sink->complete(to.id, done) != delivery::refused;
}

void start(const group_ref& group, receiver to, groups::start_completes when) {
    (void)own_loop(group);
    refuse_at_exit(group->runtime());  // again: the coroutine may have been made long before
    group->start(std::move(to), when);
}

}  // namespace

completion_sink::~completion_sink() = default;

operation_id next_operation_id() noexcept { return ++last_operation_id; }

void check_handler_thread() noexcept {
    if (loop::engine::is_this_thread())
        refuse_inline_handler();
}

void start_group(const group_ref& group, receiver to) {
    start(group, std::move(to), groups::start_completes::when_started);
}

void prepare_run(const group_ref& group) {
    for (int index = 0; index < group_size(*group); ++index)
        if (group->streams().feeds(index))
            throw std::invalid_argument(
                "cohort: run gives nobody the group that could fill feed(): use bytes()");
    group->streams().forget_lines();
}

void run_group(const group_ref& group, receiver to) {
    prepare_run(group);
    start(group, std::move(to), groups::start_completes::at_end);
}

void await_end(const group_ref& group, std::optional<time_point> until, receiver to) {
    auto& loop = own_loop(group);
    if (complete_if_ended(*group, to))
        return;
    loop.post_quietly([group, until, to = std::move(to)] { group->await_end(to, until); });
    // Otherwise the engine need not wake now: the end of the last worker wakes it early enough.
    if (until || group->snapshot().end())
        loop.wake();
}

void await_next(const group_ref& group, std::optional<time_point> until, receiver to) {
    post(group, [until, to = std::move(to)](group_state& g) { g.await_next(to, until); });
}

bool take_line(const group_ref& group, run_part& into) {
    return group && group->runtime().is_own() && group->streams().take_line(into);
}

void await_output(const group_ref& group, amount wanted, std::optional<time_point> until,
                  receiver to) {
    (void)own_loop(group);
    group->streams().await_lines(std::move(to), wanted, until);
}

void await_usage(const group_ref& group, receiver to) {
    post(group, [to = std::move(to)](group_state& g) { g.await_usage(to); });
}

void write_input(const group_ref& group, int index, std::string text, receiver to) {
    (void)own_loop(group);
    require_feed(*group, "write", index);
    group->streams().write(index, std::move(text), std::move(to));
}

void close_input(const group_ref& group, int index) {
    (void)own_loop(group);
    require_feed(*group, "close_input", index);
    group->streams().close_input(index);
}

void forget_lines(const group_ref& group) noexcept {
    if (group && group->runtime().is_own())
        group->streams().forget_lines();
}

void release_group(const group_ref& group) noexcept {
    request_stop(group);
    forget_lines(group);
}

void cancel_operation(const std::weak_ptr<group_state>& group, operation_id id,
                      cancel_mode mode) noexcept {
    post_if_own(group.lock(), [id, mode](group_state& g) { g.cancel(id, mode); });
}

void request_stop(const group_ref& group) noexcept {
    // Every handle calls this when it is destroyed. If the group has ended, let the engine sleep.
    const bool ended = group && group->runtime().is_own() && group->snapshot().end();
    if (!ended)
        post_if_own(group, [](group_state& g) { g.stop({}); });
}

void send_signal(const group_ref& group, int signo) {
    require_signal(signo);
    post_if_own(group, [signo](group_state& g) { g.signal(signo); });
}

void send_signal(const group_ref& group, int index, int signo) {
    require_worker(*group, "signal", index);
    require_signal(signo);
    post_if_own(group, [index, signo](group_state& g) { g.signal(index, signo); });
}

void throw_empty_group(const char* call) {
    throw std::logic_error(std::string("cohort::group::") + call +
                           ": the group is empty (default-constructed or moved from)");
}

int group_size(const group_state& group) noexcept { return group.snapshot().size(); }
int group_alive(const group_state& group) noexcept { return group.snapshot().alive(); }
int group_waiting(const group_state& group) noexcept { return group.snapshot().waiting(); }
std::vector<pid_t> group_pids(const group_state& group) { return group.snapshot().pids(); }
std::vector<outcome> group_outcomes(const group_state& group) {
    return group.snapshot().outcomes();
}
std::string group_log_directory(const group_state& group) {
    return group.streams().routes().path_of_logs;
}
int group_lingering(const group_state& group) noexcept { return group.streams().lingering(); }

}  // namespace cohort::detail::inline v0_1
