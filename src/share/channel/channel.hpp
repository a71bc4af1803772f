// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "share/channel/packet.hpp"
#include "share/channel/slots.hpp"

#include <cohort/detail/queue_message.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cohort::share {

/// The descriptors of a received message, as they came. Nothing was asked of their files yet: any
/// process may have sent them, and a call on one of FUSE, or the close of a socket that lingers,
/// takes as long as that process wishes. load() looks at them, on a thread of the user's. What
/// nobody takes is closed in the background.
class arrived {
public:
    arrived() noexcept = default;
    arrived(arrived&&) noexcept = default;
    arrived& operator=(arrived&&) = delete;
    ~arrived();

    std::vector<base::unique_fd> descriptors;
    std::size_t packed = 0;  // how many more are inside the last one, see unpack_all()
    bool spilled = false;    // the payload is in the first one
    std::uint64_t spilled_size = 0;
};

/// Takes the packed descriptors out of their carrier. Not to be called on the engine's thread.
/// @return false: there is no room for them yet
/// @throws codec_error  the carrier is none
bool unpack_all(arrived& with);

}  // namespace cohort::share

// Packets into and out of a queue's descriptors. Nothing here waits, but receive() if it is asked
// to.
namespace cohort::share {

/// Payloads up to this size cross quickly enough to be copied on any thread.
inline constexpr std::size_t largest_quick_payload = std::size_t{1} << 20;

/// One end's descriptors, borrowed.
struct channel {
    int socket = -1;
    share::slots* slots = nullptr;       // null: unbounded
    std::size_t largest_inlined = 0;     // larger payloads are spilled into memory files
    bool carries = false;                // packets may come with descriptors
    detail::make_target make = nullptr;  // for payloads that are received; null: they are copied
};

/// The descriptors of a new queue.
struct channel_pair {
    base::unique_fd reader;
    base::unique_fd writer;
    base::unique_fd slots;  // the file of its slots; empty: unbounded
    std::size_t largest_inlined = 0;
};
/// @param capacity  0: unbounded
/// @throws sharing_error
channel_pair make_channel(std::uint64_t capacity);

/// How far an attempt to send or to receive came.
enum class step {
    done,
    must_wait,     // the socket is full, or has no packet
    must_retry,    // nothing shows when it can be sent
    without_slot,  // the queue holds as many messages as it may
    over,          // there is nobody at the other side
};

/// A message that is ready to be sent. Large payloads are written to a memory file here.
class outgoing {
public:
    /// @throws sharing_error
    outgoing(detail::queue_message message, const channel& on);
    /// For a batch.
    outgoing(std::vector<std::byte> payloads, std::uint64_t type);
    outgoing(const outgoing&) = delete;
    outgoing& operator=(const outgoing&) = delete;

    /// Sends it, if it can be sent at once. To be called again as long as it has to wait.
    /// @throws sharing_error  the kernel refuses it, and waiting does not help
    step send(const channel& on);

    /// Whether letting go of it may take long: it is large, or has what another process has sent.
    bool is_slow_to_free() const noexcept;

private:
    void spill();
    std::error_code pack();
    std::error_code send_now(const channel& on, const slots::ticket* slot);

    detail::queue_message message_;
    std::vector<std::byte> payloads_;
    packet_header header_;
    base::unique_fd memory_;   // of a spilled payload
    base::unique_fd carrier_;  // of more descriptors than one packet carries
};

/// A wait looks again after this time if not all that it waits for has an event: a slot of a
/// process that was killed, a buffer of which only a little is free.
inline constexpr std::chrono::milliseconds look_again_after{100};
/// When a put that waits looks again after a message was received, because the receiver may not
/// have freed the slot yet. The time doubles up to look_again_after.
inline constexpr std::chrono::milliseconds soonest_look{1};

/// Whether packets that were sent at this socket have not been received.
bool has_unread(int socket) noexcept;

/// How many messages wait in a bounded queue, at one of its sockets.
std::size_t waiting_at_reader(int socket, slots& of) noexcept;
std::size_t waiting_at_writer(int socket, slots& of) noexcept;
/// Notes in the slots what has left the socket, if no message waits there. At the reading socket.
void note_if_empty(int socket, slots& of) noexcept;

/// What was received.
struct incoming {
    std::vector<detail::queue_message> messages;           // more than one: a batch
    std::vector<base::unique_fd> refused;                  // came with a packet that was none
    bool was_lost = false;   // a packet is gone, because there was no room for its descriptors
    bool was_reset = false;  // the other side has closed its end, and has left packets unread
};

enum class may_wait { yes, no };
/// Receives one packet and frees its slot. Where descriptors may come, there must be room.
/// @return must_wait  there is none, even if it might wait: try again
/// @throws codec_error    the packet was none; it is gone
/// @throws sharing_error  there is no room for its descriptors: it stays, unless another process
///                        has received another packet in between
step receive(const channel& on, incoming& into, may_wait how);

/// Brings a payload from its memory file into memory.
/// @throws codec_error  it is none that the sender may have made, or no value has this size
void load_payload(detail::queue_message& message, detail::make_target make);
/// load_payload(), and makes attachments of the descriptors. Files of other processes are asked
/// here: not to be called on the engine's thread, nor under a lock that it takes.
/// @return false: there is no room for the descriptors yet, and the message is as good as before
/// @throws what load_payload() throws; the message is gone
bool load(detail::queue_message& message, detail::make_target make);
/// Throws the sharing_error of a value for which there is no room yet.
[[noreturn]] void refuse_for_now();

}  // namespace cohort::share
