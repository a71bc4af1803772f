// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/caller.hpp"
#include "orders/environment.hpp"
#include "orders/order_writer.hpp"
#include "record/control.hpp"

#include <cohort/detail/plan.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace cohort::orders {

/// What orders depend on beside their plan and their caller.
struct host_facts {
    std::uint64_t descriptor_limit = 1024;  // RLIMIT_NOFILE
    std::string program_name;               // argv[0] of function workers
    int stacks_signal = 0;                  // by which the parent asks for stacks; 0: it never does
};

/// The descriptors of this process that one worker needs; -1: none.
struct worker_resources {
    int record = -1;
    ino_t record_inode = 0;
    int arguments = -1;
    int started_event = -1;  // of a copy
    int stacks = -1;         // what the worker writes its stacks to
    int cgroup = -1;         // the directory of its cgroup
    guard_order guard;
    own_program itself;
    // Of a worker that the fork server makes, which has none of this process' own:
    bool is_served = false;
    int standard_output = -1;  // -1: it has none
    int standard_error = -1;
    pid_t process_group = 0;
};

/// Turns a plan into orders: everything that is said about a worker becomes part of its order here.
/// Makes no system call but for memory. Borrows plan and caller.
class order_builder {
public:
    order_builder(const detail::spawn_plan& plan, const caller& from, host_facts facts);

    order_block build(int index, const worker_resources& with);
    /// What the control file of a function worker begins with.
    record::control_order control_of(int index);
    /// The worker's numbers of the descriptors by which a copy tells of its start.
    copy_channel channel_of(int index);
    /// What failed, for an error's text. @param item  which of the order's moves; -1: none
    std::string program_of(int index);
    std::string directory_of(int index);
    static std::string move_of(const worker_order& order, int item);

    /// What the library sets in a worker's environment; the caller's own are not passed on.
    static environment inherited(const environment& callers);

private:
    /// What workers with the same program have in common.
    struct start_template {
        const detail::program* program = nullptr;  // null: a function
        detail::placement where;
        orders::environment environment;
        std::vector<std::string> candidates;
        // The worker's descriptors:
        int record_number = -1;
        int arguments_number = -1;
        int started_event_number = -1;
        int stacks_number = -1;
    };

    bool is_copy() const noexcept;
    start_template make_template(const detail::program* program) const;
    const start_template& template_of(int index);
    void write_texts(order_writer& into, const start_template& from, int index,
                     const worker_resources& with) const;
    void write_moves(order_writer& into, const start_template& from, const worker_resources& with);
    void write_numbers(order_writer& into, const worker_resources& with) const;
    int open_flags(int number, const start_template& from, const std::string& path);

    const detail::spawn_plan& plan_;
    const caller& caller_;
    const host_facts facts_;
    std::optional<start_template> template_;
    int template_index_ = -1;        // whose it is, where each worker has a program of its own
    std::set<std::string> emptied_;  // files that a worker of this group has already emptied
};

}  // namespace cohort::orders
