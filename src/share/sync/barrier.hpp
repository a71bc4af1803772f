// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/sync/wakeup.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/detail/shared_memory.hpp>
#include <cohort/exit_status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>
#include <time.h>

namespace cohort::share {

/// Why a barrier is broken. What fits into one atomic word, because whoever breaks a barrier may be
/// killed at any moment.
struct barrier_cause {
    enum class kind : unsigned char { none, worker_ended, timed_out, not_started };
    kind what = kind::none;
    int index = -1;      // of the worker that has ended
    exit_status status;  // of that worker

    /// With the phase in which it breaks the barrier: of another phase it does not count.
    std::uint64_t packed(std::uint32_t phase) const noexcept;
    static barrier_cause unpacked(std::uint64_t from, std::uint32_t phase) noexcept;
};

/// A barrier in shared memory. All parties, and the engines that watch them, work on it with atomic
/// operations alone: nobody holds anything that a killed process could keep.
///
/// A party that writes nonsense into it can break the barrier, and wake others too early or never.
/// It can't harm the memory of others, nor hold up the engine.
class barrier_page {
public:
    static constexpr std::size_t most_parties = 0xffff;
    static std::size_t bytes_for(std::size_t parties) noexcept;

    /// @param memory  of bytes_for(some number of parties) bytes
    barrier_page(std::byte* memory, std::size_t bytes) noexcept;
    static bool fits(std::size_t bytes) noexcept;
    /// For new memory, all zero.
    void begin(std::size_t parties) noexcept;

    /// How far the barrier has come. `phase` is another number after each completed phase.
    struct state {
        std::uint32_t phase = 0;
        bool broken = false;
        unsigned arrived = 0;
        unsigned parties = 0;
    };
    state now() const noexcept;

    enum class arrival {
        completes,  // the last one: the phase is complete
        waits,
        broken,
        no_party,  // every party has dropped out
    };
    /// @param index  of the worker; -1: of no worker
    /// @param phase  gets the phase at which this party has arrived
    arrival arrive(int index, std::uint32_t& phase) noexcept;
    /// Takes an arrival back. @return false: the phase is over, or the barrier broken
    bool withdraw(int index, std::uint32_t phase) noexcept;
    /// One party fewer, from the present phase on.
    /// @param pid  of the worker, for take_drop()
    /// @return whether that completes the phase
    bool drop(int index, pid_t pid) noexcept;
    /// Whether this process has dropped out. Forgets that, because its number will be used again.
    bool take_drop(pid_t pid) noexcept;

    enum class progress { waits, complete, broken };
    /// How an arrival stands. A phase that was complete before the barrier broke is complete.
    progress look(std::uint32_t phase) const noexcept;
    /// Waits until it is over. @return progress::waits: the deadline has passed
    progress wait(std::uint32_t phase, const timespec* deadline) const noexcept;

    /// Breaks the barrier for ever. The first cause stays.
    void break_by(const barrier_cause& cause) noexcept;
    /// Breaks the barrier if this phase is not over. @return false: it is, or the barrier broke
    /// before
    bool break_phase(std::uint32_t phase, const barrier_cause& cause) noexcept;
    /// Wakes who waits in wait(). Called after whatever changed the phase.
    void wake() const noexcept;
    barrier_cause cause() const noexcept;
    /// The index to be reported for a broken barrier, and the reason in words.
    int culprit() const noexcept;
    std::string reason() const;

    /// The engine says how many workers the barrier was given to.
    void note_workers(int count) noexcept;
    /// Somebody waits by an eventfd: it is to be set whenever a phase is over.
    void note_awaited() noexcept;
    bool is_awaited() const noexcept;

private:
    struct header;
    struct slot;
    slot& at(std::size_t i) const noexcept;
    bool has_slot(int index) const noexcept;
    bool try_to_break(std::uint64_t& seen, const barrier_cause& cause) noexcept;
    int first_missing() const noexcept;
    std::string missing_ones() const;

    header& head_;
    std::size_t slots_;
};

/// A barrier as one process has it.
struct barrier {
    barrier(detail::shared_memory m, std::shared_ptr<wakeup> w) noexcept
        : memory(std::move(m)), news(std::move(w)), page(memory.data(), memory.size()) {}

    /// Tells all parties that the phase is over.
    void announce() noexcept;
    void break_by(const barrier_cause& cause) noexcept;
    /// @return false: the phase was over before
    bool break_phase(std::uint32_t phase, const barrier_cause& cause) noexcept;

    const detail::shared_memory memory;
    const std::shared_ptr<wakeup> news;  // for operations that wait
    barrier_page page;
};

/// The barriers among descriptors that a group's workers get. Whoever watches the workers breaks
/// them when one ends.
std::vector<std::shared_ptr<barrier>> barriers_among(std::span<const detail::attachment> passed);

}  // namespace cohort::share
