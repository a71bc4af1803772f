// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/frame_reader.hpp"

#include "hosts/link/checksum.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace cohort::multihost {

std::optional<breach> frame_reader::feed(std::span<const std::byte> bytes,
                                         std::vector<message>& into) {
    while (!bytes.empty() && !broken_) {
        std::size_t taken = 0;
        switch (stage_) {
        case stage::greeting:
            taken = take_greeting(bytes);
            break;
        case stage::header:
            taken = take_header(bytes);
            break;
        case stage::body:
            taken = take_body(bytes);
            break;
        case stage::newline:
            taken = take_newline(bytes.front(), into);
            break;
        }
        bytes = bytes.subspan(taken);
    }
    return broken_;
}

std::size_t frame_reader::take_greeting(std::span<const std::byte> bytes) {
    const auto taken = search_.feed(bytes);
    switch (search_.current()) {
    case greeting_search::state::looking:
        break;
    case greeting_search::state::found:
        stage_ = stage::header;
        break;
    case greeting_search::state::too_much_noise:
        broken_ = breach::noise;
        break;
    case greeting_search::state::echo:
        broken_ = breach::echo;
        break;
    }
    return taken;
}

std::size_t frame_reader::take_header(std::span<const std::byte> bytes) {
    const auto taken = std::min(bytes.size(), header_.size() - filled_);
    std::copy_n(bytes.begin(), taken, header_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += taken;
    if (filled_ < header_.size())
        return taken;
    filled_ = 0;
    const auto header = read_header(header_);
    broken_ = header ? check(*header) : breach::header_checksum;
    if (!broken_)
        begin_body(*header);
    return taken;
}

std::optional<breach> frame_reader::check(const frame_header& header) const noexcept {
    if (header.from != from_)
        return breach::direction;
    if (session_ && header.session != *session_)
        return breach::session;
    if (!may_send(from_, header.kind))
        return breach::kind;
    if (header.flags > static_cast<std::uint8_t>(piece::middle) || header.zero != 0)
        return breach::flags;
    if (header.length < counted_header || header.length - counted_header > largest_body)
        return breach::length;
    const auto part = static_cast<piece>(header.flags);
    const frame_name name{static_cast<frame_kind>(header.kind), header.group};
    if (const auto wrong = check_place(name, part))
        return wrong;
    const auto before = begins(part) ? 0 : in_pieces_->body.size();
    if (header.length - counted_header > largest_ - before)
        return breach::large;
    return std::nullopt;
}

/// Whether the frame may follow what has come.
std::optional<breach> frame_reader::check_place(const frame_name& name, piece part) const noexcept {
    const bool opens = name.kind == first_kind(from_);
    if (!is_open_ && !opens)
        return breach::first;
    if (is_open_ && opens)
        return breach::order;
    if (!begins(part))
        return in_pieces_ && in_pieces_->name == name ? std::nullopt
                                                      : std::optional(breach::pieces);
    // One message at a time comes in pieces. Nothing may stand between the pieces of the first.
    if (in_pieces_ && (part == piece::first || !is_open_))
        return breach::pieces;
    return std::nullopt;
}

void frame_reader::begin_body(const frame_header& header) {
    session_ = header.session;
    part_ = static_cast<piece>(header.flags);
    left_ = header.length - counted_header;
    wanted_checksum_ = header.body_checksum;
    checksum_ = 0;
    const frame_name name{static_cast<frame_kind>(header.kind), header.group};
    if (is_whole())
        whole_.name = name;
    else if (part_ == piece::first)
        in_pieces_.emplace().name = name;
    stage_ = stage::body;
    if (left_ == 0)
        end_body();
}

/// A body that has become large gets much more room at once, because a move of what has come holds
/// up the other messages. Not all that it may need, because an allocator may touch what it gives:
/// glibc's does so where MALLOC_PERTURB_ is set.
void frame_reader::make_room(std::vector<std::byte>& body, std::size_t more) const {
    constexpr std::size_t large = std::size_t{8} << 20;
    constexpr std::size_t growth = 8;
    const auto wanted = body.size() + more;
    if (wanted < large || wanted <= body.capacity())
        return;
    try {
        body.reserve(std::min(largest_, growth * wanted));
    } catch (const std::bad_alloc&) {
        // It grows as it comes.
    }
}

std::size_t frame_reader::take_body(std::span<const std::byte> bytes) {
    const auto part = bytes.first(std::min(bytes.size(), left_));
    auto& body = is_whole() ? whole_.body : in_pieces_->body;
    make_room(body, part.size());
    body.insert(body.end(), part.begin(), part.end());
    checksum_ = crc32c(part, checksum_);
    left_ -= part.size();
    if (left_ == 0)
        end_body();
    return part.size();
}

void frame_reader::end_body() noexcept {
    if (wanted_checksum_ != checksum_)
        broken_ = breach::body_checksum;
    stage_ = stage::newline;
}

std::size_t frame_reader::take_newline(std::byte byte, std::vector<message>& into) {
    if (byte != std::byte{'\n'}) {
        broken_ = breach::newline;
        return 1;
    }
    stage_ = stage::header;
    if (!ends(part_))
        return 1;
    is_open_ = true;
    into.push_back(is_whole() ? std::exchange(whole_, {}) : *std::exchange(in_pieces_, {}));
    return 1;
}

std::size_t frame_reader::held() const noexcept {
    return search_.noise().capacity() + whole_.body.capacity() +
           (in_pieces_ ? in_pieces_->body.capacity() : 0);
}

}  // namespace cohort::multihost
