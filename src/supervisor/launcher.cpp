// SPDX-License-Identifier: BSL-1.0
#include "supervisor/launcher.hpp"

#include "supervisor/stacks_answer.hpp"

#include "orders/environment.hpp"
#include "record/control_file.hpp"
#include "registry/mark.hpp"
#include "registry/registry.hpp"
#include "sys/descriptors.hpp"
#include "sys/memfd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <span>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::supervisor {

namespace {

// In the worker the record stands high enough that scripts, which use single digits, do not meet
// it.
constexpr int record_base = 60;

/// The lowest number from `from` on that no descriptor of the worker's has.
int free_number(const detail::placement& where, int from) {
    while (where.descriptors.contains(from))
        ++from;
    return from;
}

}  // namespace

start_failure launcher::failure(int error, std::string text, int index, exec::stage at) {
    return {{error, std::system_category()}, std::move(text), index, exec::to_string(at)};
}

launcher::launcher(detail::spawn_plan plan, orders::caller from, helpers with)
    : plan_(std::move(plan)), caller_(std::move(from)), with_(with) {}

std::optional<start_failure> launcher::prepare() {
    see_to_guardian();
    if (auto failed = make_group_cgroup())
        return failed;
    if (auto failed = check_limit())
        return failed;
    if (auto failed = make_arguments())
        return failed;
    if (auto failed = make_channels())
        return failed;
    records_.reserve(static_cast<std::size_t>(size()));
    for (int index = 0; index < size(); ++index)
        if (auto failed = make_record(index))
            return failed;
    if (plan_.calls_function())
        shared_template_ = make_template(nullptr);
    else if (plan_.programs.size() == 1)
        shared_template_ = make_template(&plan_.programs.front());
    return std::nullopt;
}

/// Workers that are to outlive this process are not guarded, nor is what runs in its own process
/// group. Before the cgroup is made: the guardian, which may have to be started, hears of it at once.
void launcher::see_to_guardian() {
    const auto& s = plan_.settings;
    const bool has_groups = s.process_group == process_group::own;
    if (s.parent_death_signal == 0 || (!has_groups && s.cgroup_directory.empty()))
        return;
    with_.guardian.ensure();
    guard_of_cgroup_ = with_.guardian.order(guard_message(s, orders::guarded::cgroup));
    if (has_groups)
        guard_ = with_.guardian.order(guard_message(s, orders::guarded::worker));
}

orders::guard_message launcher::guard_message(const detail::group_settings& s,
                                              orders::guarded what) {
    using std::chrono::milliseconds;
    constexpr milliseconds longest{INT_MAX};
    const auto grace = s.daemon                   ? milliseconds(0)
                       : s.grace_period > longest ? longest
                                                  : std::chrono::ceil<milliseconds>(s.grace_period);
    return {what, s.stop_signal, static_cast<std::int32_t>(grace.count())};
}

std::optional<start_failure> launcher::check_limit() const {
    if (size() == 1)
        return std::nullopt;  // what is missing is noticed before its only worker exists
    // A record and a pidfd for each worker, and the pipe of its stacks; the arguments, the event,
    // the order file, and the cgroup of the worker that is being started.
    const bool asks = plan_.settings.stack_on_stop && plan_.calls_function();
    const bool has_cgroups = cgroup_ && cgroup_->counts_memory();
    const auto needed = (asks ? 4 : 2) * static_cast<std::uint64_t>(size()) + runs_function() +
                        is_copy() + uses_server() + has_cgroups;
    const auto limit = sys::descriptor_limit();
    const auto open = sys::open_descriptors();
    if (!open || *open + needed <= limit)
        return std::nullopt;
    return failure(EMFILE,
                   fmt::format("{} workers need {} descriptors, {} of {} are in use", size(),
                               needed, *open, limit),
                   -1, exec::stage::limit);
}

std::optional<start_failure> launcher::make_group_cgroup() {
    auto made = with_.group_cgroups.make(plan_.settings);
    // Without the thread that is to end it, it ends now.
    if (made.owned && !with_.cgroups.start()) {
        made.owned.reset();
        if (!plan_.settings.cgroup_directory.empty())
            made.error = std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    cgroup_ = std::move(made.owned);
    if (cgroup_ && !orders::tell_guardian(guard_of_cgroup_, cgroup_->directory()))
        with_.guardian.tell_late(guard_of_cgroup_, cgroup_->directory());
    return made.error ? std::optional(cgroup_failure(made.error, -1)) : std::nullopt;
}

/// Where memory is counted a worker has a cgroup of its own, else all are in the group's one.
std::optional<start_failure> launcher::make_worker_cgroup(worker_order& into, int index) const {
    if (!cgroup_ || !cgroup_->counts_memory())
        return std::nullopt;
    std::error_code error;
    into.cgroup = cgroups::worker_cgroup::make(cgroup_, index, into.cgroup_directory, error);
    into.order.cgroup = into.cgroup_directory.get();
    return error ? std::optional(cgroup_failure(error, index)) : std::nullopt;
}

start_failure launcher::cgroup_failure(std::error_code error, int index) const {
    return failure(error.value(), fmt::format("cgroup(\"{}\")", plan_.settings.cgroup_directory),
                   index, exec::stage::cgroup);
}

std::optional<start_failure> launcher::make_arguments() {
    if (!runs_function())
        return std::nullopt;
    std::error_code error;
    arguments_ = sys::make_memfd("cohort-arguments", error);
    if (!error)
        error = sys::write_at(arguments_.get(), plan_.arguments, 0);
    if (!error)
        error = sys::add_seals(arguments_.get(),
                               F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    plan_.arguments = {};
    if (!error)
        return std::nullopt;
    return failure(error.value(), "memfd_create for the arguments", -1, exec::stage::memory_file);
}

std::optional<start_failure> launcher::make_record(int index) {
    std::error_code error;
    records_.push_back(sys::make_memfd("cohort-record", error));
    // A program may want to write its error file anew.
    if (!error && plan_.calls_function())
        error = sys::add_seals(records_.back().get(), F_SEAL_SHRINK | F_SEAL_SEAL);
    if (error)
        return failure(error.value(), "memfd_create for the record", index,
                       exec::stage::memory_file);
    if (plan_.settings.stack_on_stop && plan_.calls_function())
        stacks_.push_back(sys::make_pipe(error));
    if (error)
        return failure(error.value(), "pipe2 for the stacks", index, exec::stage::memory_file);
    return std::nullopt;
}

launcher::start_template launcher::make_template(const detail::program* program) const {
    start_template at;
    at.program = program;
    at.where = program ? plan_.settings.where.overridden_by(program->where) : plan_.settings.where;
    // Without what the caller, which may be a worker itself, was told of its own place.
    at.environment = orders::apply(orders::without(caller_.environment, own_variables()), at.where);
    if (program)
        at.candidates =
            orders::candidates(program->argv.front(), orders::find(at.environment, "PATH"));
    else
        at.candidates = {"/proc/self/exe"};
    const bool room = sys::descriptor_limit() > record_base + 4;
    at.record_number = free_number(at.where, room ? record_base : STDERR_FILENO + 1);
    if (runs_function())
        at.arguments_number = free_number(at.where, at.record_number + 1);
    if (is_copy())
        at.started_event_number =
            free_number(at.where, std::max(at.record_number, at.arguments_number) + 1);
    if (!stacks_.empty())
        at.stacks_number = free_number(
            at.where,
            std::max({at.record_number, at.arguments_number, at.started_event_number}) + 1);
    return at;
}

start_report launcher::start(int index, start_slots& slots) {
    auto report = uses_server() ? start_by_server(index, slots) : start_here(index, slots);
    if (!report.failure && !stacks_.empty()) {
        auto& stacks = stacks_[static_cast<std::size_t>(index)];
        stacks.write.reset();  // the worker's alone
        report.stacks = std::move(stacks.read);
    }
    return report;
}

start_report launcher::start_here(int index, start_slots& slots) {
    start_report report;
    report.index = index;
    std::optional<start_template> own_template;
    if (!shared_template_)
        own_template = make_template(&plan_.programs[static_cast<std::size_t>(index)]);
    const start_template& at = shared_template_ ? *shared_template_ : *own_template;
    worker_order worker;
    report.failure = describe(worker, at, index);
    report.record = std::move(records_[static_cast<std::size_t>(index)]);
    if (report.failure)
        return report;
    report.own_cgroup = worker.cgroup;
    report.started = std::chrono::steady_clock::now();
    auto result = plan_.call ? start_by_fork(worker, at, index, report.record.get(), slots)
                             : exec::start_by_exec(worker.order, slots.child);
    if (result.is_unguarded)
        with_.guardian.tell_late(guard_, result.pidfd.get());
    report.pid = result.pid;
    report.pidfd = std::move(result.pidfd);
    if (result.first_child)
        report.unwanted.push_back({std::move(result.first_child), 0});
    if (result.failed != exec::stage::none)
        report.failure = failure_of(result, worker.order, at, index);
    return report;
}

std::optional<start_failure> launcher::describe(worker_order& into, const start_template& at,
                                                int index) {
    const int record = records_[static_cast<std::size_t>(index)].get();
    if (plan_.calls_function()) {
        std::error_code error;
        into.inode = sys::inode(record, error);
        const auto control = order_of(index, at);
        if (!error)
            error = sys::write_at(record, std::as_bytes(std::span(&control, 1)), 0);
        if (error)
            return failure(error.value(), "write of the order", index, exec::stage::memory_file);
    }
    describe_texts(into, at, index);
    describe_descriptors(into.order, at, index, record);
    if (runs_function() && !is_copy())
        into.order.itself = exec::executing_itself(at.record_number, record);
    return make_worker_cgroup(into, index);
}

record::control_order launcher::order_of(int index, const start_template& at) const {
    const auto& s = plan_.settings;
    const auto key = plan_.function ? registry::key_of(*plan_.function) : record::function_key();
    auto order = record::make_order(index, size(), caller_.pid, at.arguments_number, key,
                                    s.stop_signal, s.grace_period);
    order.daemonic = s.daemon;
    order.result_limit = s.result_limit;
    order.crash_record = s.crash_record;
    order.stacks_fd = at.stacks_number;
    order.stacks_signal = asking_signal(s);
    order.parent_death_signal = s.parent_death_signal;
    return order;
}

void launcher::describe_descriptors(exec::exec_order& order, const start_template& at, int index,
                                    int record) {
    const auto& s = plan_.settings;
    order.directory_fd = caller_.directory ? caller_.directory.get() : -1;
    if (at.where.working_directory)
        order.working_directory = at.where.working_directory->c_str();
    if (!at.where.descriptors.contains(STDIN_FILENO))
        order.descriptors.push_back({STDIN_FILENO, -1, "/dev/null", O_RDONLY});
    for (const auto& [number, source] : at.where.descriptors) {
        if (source.fd) {
            order.descriptors.push_back({number, *source.fd, nullptr, 0});
            continue;
        }
        int flags = O_RDONLY;
        if (number != STDIN_FILENO) {
            // Emptied once for the group, then appended to: its workers may share it.
            const auto file = at.where.working_directory.value_or("") + '\0' + source.path;
            flags = O_WRONLY | O_CREAT | O_APPEND | (emptied_.insert(file).second ? O_TRUNC : 0);
        }
        order.descriptors.push_back({number, -1, source.path.c_str(), flags});
    }
    if (!at.program || s.error_file)
        order.descriptors.push_back({at.record_number, record, nullptr, 0, true});
    if (at.arguments_number >= 0)
        order.descriptors.push_back({at.arguments_number, arguments_.get(), nullptr, 0, true});
    if (at.started_event_number >= 0)
        order.descriptors.push_back({at.started_event_number, started_event_.get(), nullptr, 0});
    if (at.stacks_number >= 0)
        order.descriptors.push_back(
            {at.stacks_number, stacks_[static_cast<std::size_t>(index)].write.get(), nullptr, 0});
    if (uses_server())
        describe_inherited(order, at);
    order.affinity = caller_.affinity.empty() ? nullptr : caller_.affinity.data();
    order.affinity_size = caller_.affinity_size();
    order.parent_death_signal = s.parent_death_signal;
    order.parent = caller_.pid;
    order.own_process_group = s.process_group == process_group::own;
    order.cgroup = cgroup_ ? cgroup_->directory() : -1;
    order.cgroup_is_needed = !s.cgroup_directory.empty();
    order.guard = guard_;
}

start_failure launcher::failure_of(const exec::exec_result& result, const exec::exec_order& order,
                                   const start_template& at, int index) const {
    using exec::stage;
    std::string text = exec::attempted(result.failed);
    if (result.failed == stage::exec && at.program)
        text = fmt::format("exec(\"{}\")", at.program->argv.front());
    else if (result.failed == stage::chdir)
        text = fmt::format("chdir(\"{}\")", at.where.working_directory.value_or("."));
    else if (result.failed == stage::cgroup)
        text = fmt::format("cgroup(\"{}\")", plan_.settings.cgroup_directory);
    else if (result.item >= 0 && static_cast<std::size_t>(result.item) < order.descriptors.size()) {
        const auto& move = order.descriptors[static_cast<std::size_t>(result.item)];
        text = move.path ? fmt::format("open(\"{}\")", move.path)
                         : fmt::format("descriptor {}", move.target);
    }
    return failure(result.error, std::move(text), index, result.failed);
}

}  // namespace cohort::supervisor
