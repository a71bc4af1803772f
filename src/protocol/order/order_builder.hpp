// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/caller.hpp"
#include "protocol/order/order_writer.hpp"
#include "protocol/order/worker_order.hpp"
#include "protocol/order/worker_plan.hpp"
#include "protocol/record/control.hpp"

#include <cohort/detail/plan.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::protocol {

/// What orders depend on besides the plan and the caller.
struct host_facts {
    std::uint64_t descriptor_limit = 1024;  // RLIMIT_NOFILE
    std::string program_name;               // argv[0] of function workers
    int stacks_signal = 0;                  // the signal that asks for stacks; 0: never sent
};

/// The resources of this process that one worker needs. A descriptor of -1: none.
struct worker_resources {
    int attempt = 0;  // how often the worker was started before
    int record = -1;
    ino_t record_inode = 0;
    int arguments = -1;
    int reports = -1;          // the write end of the pipe for copy_report; copies only
    std::uint32_t ticket = 0;  // copies only
    int stacks = -1;           // the write end of the pipe for its stacks
    int results = -1;          // the socket for descriptors that its result holds
    stream_sources streams;
    int cgroup = -1;  // the directory of its cgroup
    cpu_mask cpus;    // empty: the caller's
    guard_order guard;
    own_program itself;
    // For a worker that the fork server makes, because it inherits nothing from this process:
    std::optional<std::array<int, 3>> own_streams;  // of this process; -1: it has none
    pid_t process_group = 0;
};

/// What a worker has from what makes it.
struct maker_state {
    const thread_state* thread = nullptr;  // null: it has what the caller has
    bool is_dumpable = true;               // the worker's memory, if it is a copy of the server
};

/// Turns a plan into orders: every setting of a worker becomes part of its order here. Makes no
/// system calls except for memory. Borrows its arguments.
class order_builder {
public:
    order_builder(const detail::spawn_plan& plan, worker_plans& workers, const caller& from,
                  host_facts facts);

    order_block build(int index, const worker_resources& with, maker_state maker = {});
    /// RLIMIT_NOFILE has this value from now on. The numbers of function workers stay, because a
    /// file for all of them has some.
    void set_descriptor_limit(std::uint64_t limit) {
        if (std::exchange(limit_now_, limit) != limit)
            template_.reset();
    }
    /// The order that the control file of a function worker begins with.
    protocol::control_order control_of(int index, int attempt = 0);
    /// The number of its record in the worker.
    int record_number_of(int index);
    /// For an error's text: the program, the directory, or the move that failed.
    /// @param item  the index of the move in the order
    std::string program_of(int index);
    std::string directory_of(int index);
    static std::string move_of(const worker_order& order, int item);
    /// The stage of a step that failed, and what it did.
    static std::pair<std::string, std::string> step_of(const worker_order& order, int item);

    /// The caller's environment without the variables that the library sets for each worker of a
    /// group. Those that it sets on several hosts only, such as MASTER_ADDR, are left out where
    /// COHORT_HOST says that the caller is such a worker.
    static environment inherited(const environment& callers);

private:
    /// What the orders of workers with the same program and settings have in common.
    struct start_template {
        const detail::program* command = nullptr;  // null: a function
        const detail::placement* own = nullptr;    // see worker_plan
        protocol::environment environment;
        std::vector<std::string> candidates;
        // Numbers of descriptors in the worker; -1: none.
        int record_number = -1;
        int arguments_number = -1;
        int reports_number = -1;
        int stacks_number = -1;
        int results_number = -1;
        int first_attachment = -1;                  // the others follow it
        std::map<std::string, int> shared_numbers;  // by the name given to share()
    };

    start_template make_template(const worker_plan& worker) const;
    const start_template& template_of(const worker_plan& worker);
    void write_texts(order_writer& into, const worker_plan& worker, int index,
                     const worker_resources& with);
    void write_moves(order_writer& into, const worker_plan& worker, const worker_resources& with);
    void write_numbers(order_writer& into, const worker_plan& worker,
                       const worker_resources& with) const;
    static void write_streams(order_writer& into, const worker_resources& with);

    const detail::spawn_plan& plan_;
    worker_plans& workers_;
    const caller& caller_;
    const host_facts facts_;
    std::uint64_t limit_now_ = facts_.descriptor_limit;
    std::optional<start_template> template_;
};

}  // namespace cohort::protocol
