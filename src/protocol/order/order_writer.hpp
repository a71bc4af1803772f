// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/worker_order.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>

namespace cohort::protocol {

/// Builds an order piece by piece; finish() makes the block. Settings that are single numbers are
/// set in `head` directly.
class order_writer {
public:
    worker_order head;

    /// Adds a descriptor of this process. @return its slot; -1 if `fd` is negative
    slot add_descriptor(int fd);
    void add_candidate(std::string_view path) { add(candidates_, path); }
    void add_argument(std::string_view text) { add(argv_, text); }
    void add_variable(std::string_view entry) { add(envp_, entry); }
    /// Adds a variable made of `entry`, the child's pid in decimal, and `suffix`.
    void add_variable_with_pid(std::string_view entry, std::string_view suffix);

    /// The child gets a copy of `fd` at `target`; if `fd` is -1, `target` is closed.
    void place(int target, int fd);
    /// Like place(), for a file in memory: see descriptor_move::memory_file.
    void place_memory_file(int target, int fd);
    /// The child gets at `target` what it has at `joined`, which was placed or opened before, or is
    /// inherited.
    void join(int target, int joined);
    /// The child opens `path` at `target`. @param flags  of open(2)
    void open(int target, std::string_view path, int flags);

    /// The child makes a system call, with at most four arguments.
    /// @param stage  of spawn_error, if it fails
    /// @param told   what an error's text calls it
    void call(std::string_view stage, std::string_view told, long number,
              std::initializer_list<std::int64_t> arguments);
    /// Like call(), with the address of `data` as argument number `at`.
    void call_with(std::string_view data, int at, std::string_view stage, std::string_view told,
                   long number, std::initializer_list<std::int64_t> arguments);
    /// Like call_with(), for a call that takes two addresses: that of `data`, and that of its part
    /// which begins at `rest`.
    void call_with_two(std::string_view data, std::size_t rest, std::string_view stage,
                       std::string_view told, long number);
    /// The start goes on when the last step fails.
    void let_fail() { steps_.back().may_fail = 1; }
    /// The steps so far are taken before the child opens a directory or a file.
    void open_files_now() { head.first_steps = static_cast<std::uint32_t>(steps_.size()); }
    /// The child writes `content` to a file that is there.
    void write(std::string_view stage, std::string_view file, std::string_view content);

    void set_working_directory(std::string_view path) { head.working_directory = text(path); }
    void set_affinity(std::span<const cpu_set_t> mask);
    void set_guard(const guard_order& guard);

    /// @throws std::system_error  E2BIG: more text than any program could be given
    order_block finish() const;

private:
    text_ref text(std::string_view content);
    void add(std::vector<text_ref>& list, std::string_view content) {
        list.push_back(text(content));
    }

    // Offsets into texts_ are one too high until finish(), so that 0 means none.
    std::string texts_;
    std::vector<text_ref> candidates_;
    std::vector<text_ref> argv_;
    std::vector<text_ref> envp_;
    std::vector<pid_field> pid_fields_;
    std::vector<std::int32_t> slots_;
    std::vector<descriptor_move> moves_;
    std::vector<child_step> steps_;
    std::span<const cpu_set_t> affinity_;  // borrowed until finish()
};

}  // namespace cohort::protocol
