// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/order_builder.hpp"

#include "base/files/settings.hpp"
#include "protocol/order/limits.hpp"
#include "protocol/record/control.hpp"
#include "protocol/registry/mark.hpp"
#include "protocol/registry/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::protocol {
namespace {

// The record's descriptor number in the worker: above the single digits that scripts use.
constexpr int record_base = 60;
// The record, the arguments, the pipe for reports, the pipe for stacks, the socket for results.
constexpr int own_descriptors = 5;

// The error file's number in a command. A variable names it for as long as the command runs, and
// the command may close it and open files of its own. So it is a number that no script chooses, and
// that no program gets which has fewer files open. It is below 1,024, the usual limit.
constexpr int error_file_base = 960;

constexpr std::string_view error_file_variables[] = {"COHORT_ERROR_FILE",
                                                     "TORCHELASTIC_ERROR_FILE"};
constexpr std::string_view share_prefix = "COHORT_SHARED_";
constexpr std::string_view own_variables[] = {"COHORT_INDEX", "COHORT_SIZE", "COHORT_ATTEMPT",
                                              "COHORT_ERROR_FILE", "TORCHELASTIC_ERROR_FILE"};
// What a worker of a group is told besides.
constexpr std::string_view rank_variables[] = {"COHORT_HOST",
                                               "LOCAL_RANK",
                                               "LOCAL_WORLD_SIZE",
                                               "RANK",
                                               "WORLD_SIZE",
                                               "TORCHELASTIC_RESTART_COUNT",
                                               "TORCHELASTIC_MAX_RESTARTS"};
// What workers of several hosts are told besides. Somebody else may have set these for a program
// that is no worker of hosts.
constexpr std::string_view host_variables[] = {"GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR",
                                               "MASTER_PORT"};

/// The lowest number from `from` on that is none of the worker's descriptors.
int free_number(const detail::placement& where, int from) {
    while (where.descriptors.contains(from))
        ++from;
    return from;
}

}  // namespace

order_builder::order_builder(const detail::spawn_plan& plan, worker_plans& workers,
                             const caller& from, host_facts facts)
    : plan_(plan), workers_(workers), caller_(from), facts_(std::move(facts)) {}

environment order_builder::inherited(const environment& callers) {
    auto passed =
        without(without(callers, own_variables, share_prefix), rank_variables, share_prefix);
    return find(callers, "COHORT_HOST") ? without(passed, host_variables, share_prefix) : passed;
}

order_builder::start_template order_builder::make_template(const worker_plan& worker) const {
    const auto& where = *worker.where;
    start_template made;
    made.command = worker.command;
    made.own = worker.own;
    // The caller may be a worker itself: its own COHORT_INDEX and the like are not passed on. A
    // command of execute() has the ranks of its caller, and COHORT_HOST says whose they are.
    auto passed = plan_.has_ranks ? inherited(caller_.environment)
                                  : without(caller_.environment, own_variables, share_prefix);
    if (!plan_.host_variables.empty())  // of a name that stands twice, getenv() finds the first
        passed = without(passed, host_variables, share_prefix);
    made.environment = apply(passed, where);
    if (worker.command)
        made.candidates = candidates(worker.command->argv.front(), find(made.environment, "PATH"));
    else
        made.candidates = {where.limits.executable.value_or("/proc/self/exe")};
    const auto end_of_own = record_base + own_descriptors + where.shared.size();
    int last = facts_.descriptor_limit >= end_of_own ? record_base - 1 : STDERR_FILENO;
    const auto next = [&] { return last = free_number(where, last + 1); };
    const bool has_high_number =
        worker.command != nullptr && end_of_own + where.descriptors.size() <= error_file_base &&
        limit_now_ > error_file_base + where.descriptors.size();
    made.record_number = has_high_number ? free_number(where, error_file_base) : next();
    if (plan_.function)
        made.arguments_number = next();
    if (worker.is_copy())
        made.reports_number = next();
    if (facts_.stacks_signal != 0)
        made.stacks_number = next();
    if (plan_.results_carry)
        made.results_number = next();
    for (const auto& [name, item] : where.shared)
        made.shared_numbers.emplace(name, next());
    if (!plan_.attachments.empty()) {
        const auto& taken = where.descriptors;
        made.first_attachment =
            taken.empty() ? last + 1 : std::max(last, taken.rbegin()->first) + 1;
    }
    return made;
}

const order_builder::start_template& order_builder::template_of(const worker_plan& worker) {
    if (!template_ || template_->command != worker.command || template_->own != worker.own)
        template_ = make_template(worker);
    return *template_;
}

order_block order_builder::build(int index, const worker_resources& with, maker_state maker) {
    const auto worker = workers_.of(index);
    order_writer order;
    if (maker.thread != nullptr)
        add_caller(order, caller_, *maker.thread);
    write_numbers(order, worker, with);
    write_texts(order, worker, index, with);
    write_moves(order, worker, with);
    const auto& from = template_of(worker);
    const bool has_record = worker.calls_function() || plan_.settings.error_file;
    limited_worker limited{worker.is_copy(), has_record ? from.record_number : -1, {}};
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
        if (with.streams[static_cast<std::size_t>(number)].is_own_pipe)
            limited.pipes.push_back(number);
    add_limits(order, worker.where->limits, limited);
    if (!maker.is_dumpable)  // last, because the child may not open its own files in /proc then
        order.call("dumpable", "prctl(PR_SET_DUMPABLE)", SYS_prctl, {PR_SET_DUMPABLE, 0});
    order.head.own_session = worker.where->limits.session;
    if (worker.where->limits.user)
        order.head.changes_user = 1;
    order.head.channel = {from.record_number, from.reports_number, with.ticket};
    return order.finish();
}

void order_builder::write_numbers(order_writer& into, const worker_plan& worker,
                                  const worker_resources& with) const {
    const auto& s = plan_.settings;
    auto& head = into.head;
    head.cgroup = into.add_descriptor(with.cgroup);
    head.cgroup_is_needed = !s.cgroup_directory.empty() || s.group_memory_max || s.group_cpu_max ||
                            worker.where->limits.need_cgroup();
    into.set_guard(with.guard);
    head.directory = into.add_descriptor(caller_.directory.get());
    into.set_affinity(with.cpus.empty() ? caller_.affinity : with.cpus);
    head.affinity_is_needed = !with.cpus.empty();
    head.itself = with.itself;
    head.record_inode = with.record_inode;
    head.parent_death_signal = s.parent_death_signal;
    head.parent = caller_.pid;
    head.own_process_group = s.process_group == process_group::own;
    head.process_group = head.own_process_group != 0 ? 0 : with.process_group;
}

void order_builder::write_texts(order_writer& into, const worker_plan& worker, int index,
                                const worker_resources& with) {
    const start_template& from = template_of(worker);
    for (const auto& path : from.candidates)
        into.add_candidate(path);
    const auto& own_name = worker.command ? worker.command->argv.front() : facts_.program_name;
    into.add_argument(worker.where->limits.argv0.value_or(own_name));
    if (worker.command) {
        for (const auto& text : std::span(worker.command->argv).subspan(1))
            into.add_argument(text);
    } else {
        into.add_argument(protocol::to_string({from.record_number, with.record_inode}));
    }
    for (const char* entry : from.environment.entries())
        into.add_variable(entry);
    const auto told = plan_.told_to(index);
    into.add_variable(fmt::format("COHORT_INDEX={}", told.index));
    into.add_variable(fmt::format("COHORT_SIZE={}", told.size));
    // The user's choice for these wins, even if it is to unset them.
    const auto add_unless_chosen = [&](std::string_view name, const auto& value) {
        if (!worker.where->changes_variable(name))
            into.add_variable(fmt::format("{}={}", name, value));
    };
    for (const auto& [name, value] : plan_.host_variables)
        if (value)
            add_unless_chosen(name, *value);
    if (plan_.has_ranks) {
        const auto local = plan_.local_to(index);
        add_unless_chosen("RANK", told.index);
        add_unless_chosen("WORLD_SIZE", told.size);
        add_unless_chosen("LOCAL_RANK", local.index);
        add_unless_chosen("LOCAL_WORLD_SIZE", local.size);
    }
    if (const auto& restarts = plan_.settings.restarts) {
        add_unless_chosen("COHORT_ATTEMPT", with.attempt);
        add_unless_chosen("TORCHELASTIC_RESTART_COUNT", with.attempt);
        add_unless_chosen("TORCHELASTIC_MAX_RESTARTS", restarts->most);
    }
    for (const auto& [name, item] : worker.where->shared)
        into.add_variable(fmt::format("{}{}={{\"fd\":{}{}", share_prefix, name,
                                      from.shared_numbers.at(name), item.description));
    // The path contains the worker's pid, so that it is valid in the worker and in its children.
    if (worker.command && plan_.settings.error_file)
        for (const auto name : error_file_variables)
            into.add_variable_with_pid(fmt::format("{}=/proc/", name),
                                       fmt::format("/fd/{}", from.record_number));
}

void order_builder::write_moves(order_writer& into, const worker_plan& worker,
                                const worker_resources& with) {
    const start_template& from = template_of(worker);
    const auto& where = *worker.where;
    if (where.umask)
        into.head.umask = static_cast<std::int32_t>(*where.umask);
    else if (caller_.umask)
        into.head.umask = static_cast<std::int32_t>(*caller_.umask);
    if (where.working_directory)
        into.set_working_directory(*where.working_directory);
    write_streams(into, with);
    for (const auto& [number, fd] : where.descriptors)
        if (number > STDERR_FILENO)
            into.place(number, *fd);
    if (worker.calls_function() || plan_.settings.error_file)
        into.place_memory_file(from.record_number, with.record);
    if (from.arguments_number >= 0)
        into.place_memory_file(from.arguments_number, with.arguments);
    if (from.reports_number >= 0)
        into.place(from.reports_number, with.reports);
    if (from.stacks_number >= 0)
        into.place(from.stacks_number, with.stacks);
    if (from.results_number >= 0)
        into.place(from.results_number, with.results);
    for (const auto& [name, item] : where.shared)
        into.place(from.shared_numbers.at(name), *item.descriptor);
    for (int number = from.first_attachment; const auto& attached : plan_.attachments)
        into.place(number++, *attached);
}

void order_builder::write_streams(order_writer& into, const worker_resources& with) {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
        const stream_source& source = with.streams[static_cast<std::size_t>(number)];
        switch (source.what) {
        case stream_source::kind::inherit:
            // An executed worker inherits this process's present streams; the fork server's copy
            // does not.
            if (with.own_streams)
                into.place(number, (*with.own_streams)[static_cast<std::size_t>(number)]);
            break;
        case stream_source::kind::place:
            into.place(number, source.fd);
            break;
        case stream_source::kind::open:
            into.open(number, source.path, source.flags);
            break;
        case stream_source::kind::join:
            into.join(number, STDOUT_FILENO);
            break;
        }
    }
}

protocol::control_order order_builder::control_of(int index, int attempt) {
    const auto& s = plan_.settings;
    const start_template& from = template_of(workers_.of(index));
    protocol::function_key key;
    if (plan_.function)
        key = workers_.of(index).where->limits.executable ? named_key_of(*plan_.function)
                                                          : key_of(*plan_.function);
    const auto told = plan_.told_to(index);
    auto order = protocol::make_order(told.index, told.size, caller_.pid, from.arguments_number,
                                      key, s.stop_signal, s.grace_period);
    const auto local = plan_.local_to(index);
    order.local_index = local.index;
    order.local_size = local.size;
    order.attempt = attempt;
    order.daemonic = s.daemon;
    order.result_limit = s.result_limit;
    order.crash_record = s.crash_record;
    order.stacks_fd = from.stacks_number;
    order.stacks_signal = facts_.stacks_signal;
    order.sharing_strategy = static_cast<std::int32_t>(get_sharing_strategy());
    order.sharing_session = base::session();
    order.results_fd = from.results_number;
    order.first_attachment = from.first_attachment;
    order.attachments = static_cast<std::uint32_t>(plan_.attachments.size());
    order.parent_death_signal = s.parent_death_signal;
    return order;
}

int order_builder::record_number_of(int index) {
    return template_of(workers_.of(index)).record_number;
}

std::string order_builder::program_of(int index) {
    const auto worker = workers_.of(index);
    return worker.command ? worker.command->argv.front() : template_of(worker).candidates.front();
}

std::string order_builder::directory_of(int index) {
    return workers_.of(index).where->working_directory.value_or(".");
}

std::string order_builder::move_of(const worker_order& order, int item) {
    const auto& move = order.all_moves()[static_cast<std::size_t>(item)];
    const char* const path = order.text(move.path);
    return path != nullptr ? fmt::format("open(\"{}\")", path)
                           : fmt::format("descriptor {}", move.target);
}

std::pair<std::string, std::string> order_builder::step_of(const worker_order& order, int item) {
    const auto& step = order.all_steps()[static_cast<std::size_t>(item)];
    return {order.text(step.stage), order.text(step.told)};
}

}  // namespace cohort::protocol
