// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// What the two ends of a link send each other: a greeting, then frames. All integers are little
// endian. A frame is
//
//     u32  length of what follows, without the newline
//     u32  direction mark: a frame that comes back to its sender is known by it
//     u64  session: the number of the link
//     u32  group: the number of a group, 0: the host
//     u8   kind
//     u8   flags: see `piece`
//     u16  0
//     u32  CRC32C of the body
//     u32  CRC32C of all that stands before, the length included
//     ...  body, at most 1 MiB
//     u8   newline, because some launchers hold back what follows the last newline
//
// A larger message goes as several frames, its pieces. Whole messages may stand between the pieces
// of one other message, so that nothing urgent waits for a large one.
namespace cohort::multihost {

/// The ends of a link: the origin is where the user's group lives, the agent runs the workers.
enum class side : std::uint8_t { origin, agent };

constexpr side other(side s) noexcept { return s == side::origin ? side::agent : side::origin; }

enum class frame_kind : std::uint8_t {
    hello = 1,          // from the agent, its first: who it is
    welcome = 2,        // from the origin, its first: the answer to the hello
    start = 3,          // from the origin: the orders of a group's workers
    started = 4,        // from the agent: all workers of the group have started
    not_started = 5,    // from the agent: they could not be, and none is left; its last report
    gate = 6,           // from the origin: all hosts have started theirs; without it a start fails
    ended = 7,          // from the agent: one worker has ended
    reported = 8,       // from the agent: all workers have ended and were told; its last report
    data = 9,           // from the agent: what workers write
    data_credit = 10,   // from the origin: how many more bytes of data may come
    input = 11,         // from the origin: what workers read
    input_credit = 12,  // from the agent: the oldest input was taken, or refused
    signal = 13,        // from the origin: to be sent to one worker or all
    stop = 14,          // from the origin: the spans of the ladder
    beat = 15,          // from both: the link is alive
    leave = 16,         // from the origin: it needs the group no more, or the host
    bye = 17,           // from the agent, its last
    failed = 18,        // from the agent: one worker has failed; how it has ended follows
    usage = 19,         // from the origin: what do the live workers use?
    used = 20,          // from the agent: the answer
    told_to_end = 21,   // from the agent: a signal ends it; it stops its groups, then says bye
    begun = 22,         // from the agent: one worker has started later than the group
    hold = 23,          // from the origin: a worker elsewhere has failed; start nobody any more
};

/// @return false: no frame kind, or one that this end never sends
bool may_send(side from, std::uint8_t kind) noexcept;
/// The kind of the first message that this end sends.
frame_kind first_kind(side from) noexcept;

/// Which part of a message a frame carries. Bit 0: more pieces follow, bit 1: pieces came before.
enum class piece : std::uint8_t { whole = 0, first = 1, last = 2, middle = 3 };

constexpr bool begins(piece p) noexcept { return p == piece::whole || p == piece::first; }
constexpr bool ends(piece p) noexcept { return p == piece::whole || p == piece::last; }

/// What a message is, and of which group it speaks.
struct frame_name {
    frame_kind kind;
    std::uint32_t group = 0;

    friend bool operator==(const frame_name&, const frame_name&) = default;
};

/// The header of a frame, without its checksum.
struct frame_header {
    side from;
    std::uint64_t session;
    std::uint8_t kind;
    std::uint8_t flags;
    std::uint16_t zero;
    std::uint32_t group;
    std::uint32_t length;
    std::uint32_t body_checksum;
};

inline constexpr std::size_t header_size = 32;
inline constexpr std::size_t largest_body = std::size_t{1} << 20;  // of a frame
/// What the length counts besides the body.
inline constexpr std::size_t counted_header = header_size - sizeof(std::uint32_t);

inline constexpr std::size_t greeting_size = 16;
using greeting_bytes = std::array<std::byte, greeting_size>;
/// What each end sends before its first frame. Its first byte does not occur again in it.
const greeting_bytes& greeting(side from) noexcept;

using header_bytes = std::array<std::byte, header_size>;
header_bytes write_header(const frame_header& header) noexcept;
/// @return empty: its checksum is wrong, or it has no direction mark
std::optional<frame_header> read_header(const header_bytes& from) noexcept;

/// Writes what one end sends. Frames that follow each other stand in one buffer, so that they go
/// out in one write: some launchers delay the second of two writes by 40 ms.
class frame_writer {
public:
    frame_writer(side from, std::uint64_t session) noexcept : from_(from), session_(session) {}

    // All of these throw std::bad_alloc; nothing has been added then.
    void add_greeting();
    /// The whole message, in pieces where it must be.
    void add(const frame_name& name, std::span<const std::byte> body);
    /// The next piece of a message: at most `longest` bytes, and at most largest_body.
    /// @param done  how many bytes of it have been added before
    /// @return how many bytes have been added then
    std::size_t add_piece(const frame_name& name, std::span<const std::byte> body, std::size_t done,
                          std::size_t longest = largest_body);

    bool empty() const noexcept { return written_.empty(); }
    std::size_t size() const noexcept { return written_.size(); }
    /// What was added since the last call.
    std::vector<std::byte> take() noexcept;

private:
    side from_;
    std::uint64_t session_;
    std::vector<std::byte> written_;
};

}  // namespace cohort::multihost
