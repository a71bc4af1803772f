// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/breach.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/greeting_search.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cohort::multihost {

/// One message of the other end, its pieces joined.
struct message {
    frame_name name;
    std::vector<std::byte> body;

    friend bool operator==(const message&, const message&) = default;
};

/// Makes messages of the bytes that the other end sends. Trusts nothing: the first breach of the
/// protocol is the last thing that it tells.
///
/// How the bytes are cut changes nothing, and each is looked at once. The memory that it uses grows
/// by what has arrived, not by what a header says: at most twice the sum of
/// greeting_search::most_noise, of the largest message and of the largest frame.
class frame_reader {
public:
    /// @param from     the end that sends
    /// @param largest  size of the largest message that is taken
    /// @param session  the number of the link; empty: that of the first frame
    frame_reader(side from, std::size_t largest, std::optional<std::uint64_t> session = {}) noexcept
        : search_(from), from_(from), largest_(largest), session_(session) {}

    /// Takes the next bytes. After a breach it takes nothing.
    /// @param into  gets the messages that are complete now, those before a breach too
    /// @return the breach, from then on with every call
    /// @throws std::bad_alloc  bytes may be lost then: the link must end.
    std::optional<breach> feed(std::span<const std::byte> bytes, std::vector<message>& into);

    /// From now on messages of this size are taken, too.
    void take_messages_of(std::size_t size) noexcept { largest_ = std::max(largest_, size); }

    std::optional<breach> broken() const noexcept { return broken_; }
    bool has_greeting() const noexcept {
        return search_.current() == greeting_search::state::found;
    }
    /// What came before the greeting.
    const std::string& noise() const noexcept { return search_.noise(); }
    /// Empty: no frame has come yet, and the constructor was given none.
    std::optional<std::uint64_t> session() const noexcept { return session_; }
    /// How many bytes of memory it holds.
    std::size_t held() const noexcept;

private:
    enum class stage { greeting, header, body, newline };

    std::size_t take_greeting(std::span<const std::byte> bytes);
    std::size_t take_header(std::span<const std::byte> bytes);
    void make_room(std::vector<std::byte>& body, std::size_t more) const;
    std::size_t take_body(std::span<const std::byte> bytes);
    std::size_t take_newline(std::byte byte, std::vector<message>& into);
    std::optional<breach> check(const frame_header& header) const noexcept;
    std::optional<breach> check_place(const frame_name& name, piece part) const noexcept;
    void begin_body(const frame_header& header);
    void end_body() noexcept;
    bool is_whole() const noexcept { return part_ == piece::whole; }

    greeting_search search_;
    side from_;
    std::size_t largest_;
    std::optional<std::uint64_t> session_;
    std::optional<breach> broken_;
    stage stage_ = stage::greeting;
    header_bytes header_{};
    std::size_t filled_ = 0;  // of the header
    piece part_ = piece::whole;
    std::size_t left_ = 0;               // of the frame's body
    std::uint32_t wanted_checksum_ = 0;  // of the body
    std::uint32_t checksum_ = 0;         // of what of it is here
    bool is_open_ = false;               // the first message is complete
    message whole_;                      // of the frame that is being read
    std::optional<message> in_pieces_;   // some of its pieces are here
};

}  // namespace cohort::multihost
