// SPDX-License-Identifier: BSL-1.0
#include "base/sys/mapping.hpp"

#include "base/sys/unique_fd.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::base {
namespace {

/// Reads the address range at the start of each line: "55d0c3000000-55d0c3021000 rw-p ...".
class range_reader {
public:
    /// Takes the next character. @return whether it completes a range
    bool take(char c) noexcept {
        if (c == '\n') {
            *this = {};
            return false;
        }
        if (part_ == part::rest)
            return false;
        if (c == '-') {
            part_ = part::end;
            return false;
        }
        if (c == ' ') {
            part_ = part::rest;
            return true;
        }
        auto& number = part_ == part::begin ? begin_ : end_;
        number = number * 16 + static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
        return false;
    }
    bool contains(std::uintptr_t address) const noexcept {
        return begin_ <= address && address < end_;
    }

private:
    enum class part { begin, end, rest };
    part part_ = part::begin;
    std::uintptr_t begin_ = 0;
    std::uintptr_t end_ = 0;
};

}  // namespace

bool share_mapping(std::uintptr_t one, std::uintptr_t other) noexcept {
    // Not /proc/self, because that belongs to the main thread, which may have ended.
    const unique_fd file(::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
    if (!file)
        return false;
    std::array<char, 512> buffer;  // a signal handler's stack may be small
    range_reader range;
    for (;;) {
        const ssize_t length = ::read(file.get(), buffer.data(), buffer.size());
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            return false;
        for (ssize_t i = 0; i < length; ++i)
            if (range.take(buffer[static_cast<std::size_t>(i)]) && range.contains(one))
                return range.contains(other);
    }
}

}  // namespace cohort::base
