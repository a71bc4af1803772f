// SPDX-License-Identifier: BSL-1.0
#include "group/starts/start_plan.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/tiers.hpp"
#include "group/lifecycle/schedule.hpp"
#include "group/starts/asking_signal.hpp"
#include "group/starts/descriptor_limit.hpp"
#include "group/starts/guard_message.hpp"
#include "group/starts/worker_limits.hpp"
#include "start/exec/clone.hpp"
#include "start/exec/exec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <span>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::groups {
namespace {

/// A worker takes orders from its own user, and can open its error file and pipes again by their
/// paths only if they are its own.
void give_files(const base::credentials& to, const protocol::worker_resources& of) {
    const auto give = [&](int fd) { std::ignore = ::fchown(fd, to.user.effective, to.groups[1]); };
    give(of.record);
    for (const auto& stream : of.streams)
        if (stream.is_own_pipe)
            give(stream.fd);
}

}  // namespace

start_failure start_plan::failure(int error, std::string text, int index, start::stage at) {
    return {{error, std::system_category()}, std::move(text), index, start::to_string(at)};
}

start_plan::start_plan(detail::spawn_plan plan, protocol::caller_ref from, helpers with)
    : plan_(std::move(plan)), caller_(std::move(from)), with_(std::move(with)), workers_(plan_),
      builder_(plan_, workers_, *caller_, host_facts()),
      cpus_(caller_->affinity, plan_.told ? plan_.told->size : first_count()),
      asked_{.end = first_count()}, records_(static_cast<std::size_t>(size())) {
    if (asks_for_stacks())
        stacks_.resize(records_.size());
    if (plan_.results_carry)
        results_.resize(records_.size());
}

int start_plan::first_count() const noexcept {
    return schedule::first(plan_.settings.nprocs, plan_.settings.at_once);
}

protocol::host_facts start_plan::host_facts() const {
    return {base::descriptor_limit(), program_invocation_name,
            asks_for_stacks() ? asking_signal(plan_.settings) : 0};
}

std::optional<start_failure> start_plan::prepare() {
    works_ = std::make_shared<const work_texts>(plan_);
    ensure_guardian();
    if (auto failed = make_group_cgroup())
        return failed;
    if (auto failed = check_limit())
        return failed;
    if (auto failed = check_attachments())
        return failed;
    if (auto failed = make_arguments())
        return failed;
    if (auto failed = make_copy_reports())
        return failed;
    output::base_directories bases(caller_->directory.get());
    if (auto failed = with_.streams->prepare(bases))
        return failed;
    for (int index = 0; index < first_count(); ++index)
        if (auto failed = make_descriptors(index, bases))
            return failed;
    return std::nullopt;
}

std::optional<start_failure> start_plan::make_descriptors(int index,
                                                          output::base_directories& bases) {
    if (auto failed = with_.streams->prepare_worker(index, asked_.attempt, bases))
        return failed;
    return make_record(index);
}

/// Makes sure that there is a guardian, if the group needs one. Workers that are to outlive this
/// process are not guarded, nor are workers in this process' own process group. Called before the
/// cgroup is made, because the guardian, which may have to be started, is notified at once.
void start_plan::ensure_guardian() {
    const auto& s = plan_.settings;
    if (plan_.has_keeper)
        guards_.of_worker = with_.guardian.ensure_started().order(guard_message_of_kept());
    const bool has_groups = s.process_group == process_group::own;
    if (s.parent_death_signal == 0 || (!has_groups && s.cgroup_directory.empty()))
        return;
    const auto guardian = with_.guardian.ensure_started();
    guards_.of_cgroup = guardian.order(guard_message_of(s, protocol::guarded::cgroup));
    if (has_groups)
        guards_.of_worker = guardian.order(guard_message_of(s, protocol::guarded::worker));
}

std::optional<start_failure> start_plan::check_limit() const {
    const auto of_streams = with_.streams->routes().descriptors(first_count());
    if (first_count() == 1 && of_streams == 0)
        return std::nullopt;  // without descriptors its start fails before the worker exists
    // For each worker a record and a pidfd, both ends of the pipe for its stacks, and the socket
    // for its result. For the group the arguments, both ends of the pipe for reports, the order
    // file, the cgroup of the worker being started and its end of that socket; the pipes and files
    // of its streams.
    const bool carry = plan_.results_carry;
    wanted_descriptors wanted;
    wanted.workers = first_count();
    wanted.for_each = (asks_for_stacks() ? 4U : 2U) + carry;
    wanted.for_group = (plan_.function != nullptr) + (makes_copies() ? 2U : 0U) +
                       (kind() == protocol::start_kind::served) + has_worker_cgroups() + carry +
                       of_streams;
    return refuse_more_than_are_free(wanted);
}

std::optional<start_failure> start_plan::check_attachments() {
    if (plan_.attachments.empty())
        return std::nullopt;
    const auto control = builder_.control_of(0);
    return refuse_too_many_attachments(static_cast<std::uint64_t>(control.first_attachment),
                                       control.attachments);
}

std::optional<start_failure> start_plan::make_group_cgroup() {
    const auto wanted = limits_by_cgroups(plan_);
    auto made = with_.group_cgroups.make(plan_.settings, wanted);
    // If the thread that is to end the cgroup can't be started, the cgroup ends now.
    if (made.cgroup && !with_.cgroups.start()) {
        made.cgroup.reset();
        if (!plan_.settings.cgroup_directory.empty() || !wanted.empty())
            made.error = std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    cgroup_ = std::move(made.cgroup);
    // A guardian that has died is replaced now: the message to it fails, or ensure_running() looks
    // for it.
    if (!cgroup_ && guards_.of_worker.connection >= 0)
        with_.guardian.ensure_running();
    else if (cgroup_ && !protocol::notify_guardian(guards_.of_cgroup, cgroup_->directory()))
        with_.guardian.resend(guards_.of_cgroup, cgroup_->directory());
    return made.error ? std::optional(cgroup_failure({made.error, made.text}, -1)) : std::nullopt;
}

/// If memory is counted or a worker is limited or started again, each has a cgroup of its own, else
/// all are in the group's.
bool start_plan::has_worker_cgroups() const noexcept {
    return cgroup_ && (cgroup_->is_divided() || plan_.settings.restarts);
}

std::optional<start_failure> start_plan::make_worker_cgroup(prepared_worker& into, int index) {
    if (!has_worker_cgroups())
        return std::nullopt;
    std::error_code error;
    into.cgroup = start::worker_cgroup::make(cgroup_, index, into.cgroup_directory, error);
    if (error) {
        // cgroup.max.descendants and cgroup.max.depth may leave no room. The group's serves, too.
        if (plan_.settings.cgroup_directory.empty() && !cgroup_->is_divided())
            return std::nullopt;
        return cgroup_failure({error, {}}, index);
    }
    const auto failed =
        start::set_limits(into.cgroup_directory.get(), cgroup_->path() + "/" + into.cgroup->name(),
                          limits_by_cgroup(worker(index).where->limits));
    return failed ? std::optional(cgroup_failure(failed, index)) : std::nullopt;
}

start_failure start_plan::cgroup_failure(const start::limit_failure& why, int index) const {
    return {why.error, why.text.empty() ? cgroup_text() : why.text, index,
            start::to_string(start::stage::cgroup)};
}

std::string start_plan::cgroup_text() const {
    const auto& asked = plan_.settings.cgroup_directory;
    return fmt::format("cgroup(\"{}\")", asked.empty() && cgroup_ ? cgroup_->path() : asked);
}

std::optional<start_failure> start_plan::make_arguments() {
    if (plan_.function == nullptr)
        return std::nullopt;
    std::error_code error;
    arguments_ = base::make_memfd("cohort-arguments", error);
    if (!error)
        error = base::write_at(arguments_.get(), plan_.arguments, 0);
    if (!error)
        error = base::add_seals(arguments_.get(),
                                F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    plan_.arguments = {};
    if (!error)
        return std::nullopt;
    return failure(error.value(), "memfd_create for the group's arguments", -1,
                   start::stage::memory_file);
}

/// Made when the worker is about to be started, because no other may have it.
std::optional<start_failure> start_plan::make_results(int index) {
    auto& [ours, theirs] = results_[static_cast<std::size_t>(index)];
    if (ours)
        return std::nullopt;  // the second try of its start
    auto error = base::make_socket_pair(ours, theirs);
    if (!error)
        error = base::report_sender(ours.get());
    if (!error)
        return std::nullopt;
    return failure(error.value(), "socketpair for the worker's result", index,
                   start::stage::socket);
}

std::optional<start_failure> start_plan::make_record(int index) {
    std::error_code error;
    record_of(index) = base::make_memfd("cohort-record", error);
    // A command's error file is not sealed, because a program may truncate it and write it again.
    if (!error && worker(index).calls_function())
        error = base::add_seals(record_of(index).get(), F_SEAL_SHRINK | F_SEAL_SEAL);
    if (error)
        return failure(error.value(), "memfd_create for the worker's record", index,
                       start::stage::memory_file);
    if (asks_for_stacks())
        stacks_[static_cast<std::size_t>(index)] = base::make_large_pipe(error);
    if (error)
        return failure(error.value(), "pipe2 for the worker's stacks", index, start::stage::pipe);
    return std::nullopt;
}

std::optional<start_failure> start_plan::make_copy_reports() {
    if (!makes_copies())
        return std::nullopt;
    if (const auto error = reports_.open())
        return failure(error.value(), "pipe2 for the starts of copies", -1, start::stage::pipe);
    return std::nullopt;
}

std::optional<start_failure> start_plan::prepare_worker(int index, prepared_worker& into) {
    if (!record_of(index)) {
        output::base_directories bases(caller_->directory.get());
        if (auto failed = make_descriptors(index, bases))
            return failed;
    }
    protocol::worker_resources with;
    with.attempt = asked_.attempt;
    with.record = record_of(index).get();
    with.arguments = arguments_.get();
    with.reports = reports_.writer();
    with.ticket = ++last_ticket_;
    with.guard = guards_.of_worker;
    builder_.set_descriptor_limit(base::descriptor_limit());
    protocol::maker_state maker{&protocol::state_of_starter(*caller_)};
    with.streams = with_.streams->sources_of(index);
    if (caller_->rights == protocol::caller::rights_of::thread)
        give_files(caller_->thread.user, with);
    if (!results_.empty()) {
        if (auto failed = make_results(index))
            return failed;
        with.results = results_[static_cast<std::size_t>(index)].theirs.get();
    }
    if (!stacks_.empty())
        with.stacks = stacks_[static_cast<std::size_t>(index)].write.get();
    const auto worker = workers_.of(index);
    if (worker.calls_function()) {
        std::error_code error;
        with.record_inode = base::inode(with.record, error);
        const auto control = builder_.control_of(index, asked_.attempt);
        if (!error)
            error = base::write_at(with.record, std::as_bytes(std::span(&control, 1)), 0);
        if (error)
            return failure(error.value(), "writing the worker's control file", index,
                           start::stage::memory_file);
    }
    if (auto failed = refuse_executable(worker, index))
        return failed;
    if (worker.calls_function() && !worker.is_copy())
        with.itself = program_of(worker, builder_.record_number_of(index), with.record);
    if (worker.kind == protocol::start_kind::served) {
        const auto open_or_none = [](int fd) { return base::survives_exec(fd) ? fd : -1; };
        with.own_streams = {open_or_none(STDIN_FILENO), open_or_none(STDOUT_FILENO),
                            open_or_none(STDERR_FILENO)};
        with.process_group = ::getpgrp();
        maker.is_dumpable = start::memory_guard::memory_is_dumpable();
    }
    if (auto failed = refuse_user(worker.where->limits, index))
        return failed;
    if (auto failed =
            cpus_.find(worker.where->limits, plan_.local_to(index).index, with.cpus, into.cpus))
        return failed;
    if (auto failed = make_worker_cgroup(into, index))
        return failed;
    if (into.cgroup_directory)
        with.cgroup = into.cgroup_directory.get();
    else if (cgroup_)
        with.cgroup = cgroup_->directory();
    into.order = builder_.build(index, with, maker);
    return std::nullopt;
}

start_plan::~start_plan() {
    with_.streams->close_unstarted();
    for (auto& ends : results_)  // a worker that failed late may have sent something
        base::dispose(std::move(ends.ours));
}

void start_plan::close_ends_of_started(int index) noexcept {
    with_.streams->close_ends_of_started(index);
}

void start_plan::forget(int index) noexcept {
    with_.streams->close_unstarted(index);
    const auto at = static_cast<std::size_t>(index);
    record_of(index).reset();
    if (!stacks_.empty())
        stacks_[at] = {};
    if (!results_.empty()) {
        results_[at].theirs.reset();
        base::dispose(std::move(results_[at].ours));  // the worker may have sent something
    }
}

base::unique_fd start_plan::take_stacks(int index) {
    if (stacks_.empty())
        return {};
    auto& ends = stacks_[static_cast<std::size_t>(index)];
    ends.write.reset();  // only the worker may hold this end
    return std::move(ends.read);
}

base::unique_fd start_plan::take_results(int index) noexcept {
    if (results_.empty())
        return {};
    auto& ends = results_[static_cast<std::size_t>(index)];
    ends.theirs.reset();
    return std::move(ends.ours);
}

std::string start_plan::exec_text(int error, int index) {
    const auto text = fmt::format("exec(\"{}\")", builder_.program_of(index));
    const auto& user = worker(index).where->limits.user;
    return error == EAGAIN && user
               ? fmt::format("{} as {}, who has as many processes as RLIMIT_NPROC allows", text,
                             user->told)
               : text;
}

start_failure start_plan::failure_of(const start::exec_result& result,
                                     const protocol::worker_order& order, int index) {
    using start::stage;
    const auto item = static_cast<std::uint32_t>(result.item);
    std::string text = start::attempted(result.failed);
    std::string stage_name = start::to_string(result.failed);
    if (result.failed == stage::exec)
        text = exec_text(result.error, index);
    else if (result.failed == stage::chdir)
        text = fmt::format("chdir(\"{}\")", builder_.directory_of(index));
    else if (result.failed == stage::cgroup)
        text = cgroup_text();
    else if (result.failed == stage::setting && item < order.steps.count)
        std::tie(stage_name, text) = protocol::order_builder::step_of(order, result.item);
    else if (result.item >= 0 && item < order.moves.count)
        text = protocol::order_builder::move_of(order, result.item);
    if (result.error == EINTR)
        text += ", during which the child was killed";
    return {{result.error, std::system_category()}, std::move(text), index, std::move(stage_name)};
}

}  // namespace cohort::groups
