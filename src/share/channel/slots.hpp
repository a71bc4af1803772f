// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

namespace cohort::share {

/// The bound of a queue with a capacity: shared memory with one slot for each message that may
/// wait. A put takes a slot and sends its number with the message; whoever receives the message
/// frees the slot.
///
/// No process can leave the bound wrong for good, wherever it is killed or stopped, because a slot
/// is also free when its message has provably left the socket. The proof needs a clock in the
/// shared memory, which each step advances. A message is stamped *after* it was sent, and says
/// what the clock said *before* it was sent. The socket keeps the order of sends. So whoever
/// receives a message knows that all with stamps up to the one it names were received before.
/// Whoever finds the socket empty knows that of all stamps up to what the clock said before the
/// look. The newest time that is known in this way is `all_received_until`.
///
/// A slot that is taken and has no stamp belongs to a put that is about to send. If it stays so for
/// `patience`, that put was killed or stopped, and anybody may write the stamp for it: if the
/// message was ever sent by a process that is dead, it was sent before. A process that was only
/// stopped may still send, and then one message more than the capacity waits until it is received.
/// Its number is no longer that of the slot, so receiving it frees nothing.
///
/// Until the proof is there, a slot that nobody uses counts as used: while no message is received
/// and some wait, nobody can know whether the message of a killed process is one of them.
///
/// Nothing here blocks, and each loop has an end whatever another process writes into the memory.
/// The bound holds between processes that keep to these rules.
class slots {
public:
    /// What a message carries in front of its header.
    struct ticket {
        std::uint32_t mark = expected_mark;
        std::uint32_t slot = 0;
        std::uint64_t number = 0;  // of the taking; no slot has it twice
        std::uint64_t before = 0;  // what the clock said before the message was sent

        static constexpr std::uint32_t expected_mark = 0x53514F43;  // "COQS"
    };

    /// No queue has more, because its socket cannot hold more messages.
    static constexpr std::size_t largest_count = (std::size_t{1} << 14) + 1;
    /// The most slots of killed puts that one look gives up.
    static constexpr std::size_t most_stamps = 256;

    /// @param most  how many messages the socket can hold at all
    static base::unique_fd make_file(std::uint64_t capacity, std::size_t most,
                                     std::error_code& error) noexcept;
    /// @throws codec_error    no queue has such a file
    /// @throws sharing_error  there is no memory
    explicit slots(int file, std::uint64_t capacity);
    slots(const slots&) = delete;
    slots& operator=(const slots&) = delete;
    ~slots();

    /// Whether no message waits in the queue's socket; false also where that can't be known.
    using is_empty = bool (*)(int socket) noexcept;
    using time = std::chrono::steady_clock::time_point;

    /// For how long a put may be between taking its slot and sending. Far longer than a process
    /// that runs on a busy machine needs.
    static constexpr std::chrono::seconds patience{1};

    /// Takes a slot before a message is sent.
    /// @return empty: as many messages wait as may
    std::optional<ticket> take(int socket, is_empty empty, time now) noexcept;
    /// To be called after the message was sent.
    void sent(const ticket& of) noexcept;
    /// The message could not be sent.
    void give_back(const ticket& of) noexcept { free(of); }
    /// The message was received. Its ticket may be made up.
    void received(const ticket& of) noexcept;
    /// A receive found no message. Proves that all that was sent before has left the socket, also
    /// what was received by a process that was killed before it freed the slot.
    void found_none(int socket, is_empty empty) noexcept;
    /// How many messages wait.
    std::size_t waiting(int socket, is_empty empty, time now) noexcept;

private:
    struct page;
    struct slot;

    bool is_free(const slot& one, std::uint64_t word) const noexcept;
    std::optional<ticket> take_free(time now) noexcept;
    void stamp_forsaken(time now) noexcept;
    void look(int socket, is_empty empty, time now) noexcept;
    void free(const ticket& of) noexcept;

    page* page_ = nullptr;
    slot* slots_ = nullptr;
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace cohort::share
