// SPDX-License-Identifier: BSL-1.0
#include "base/sys/memfd.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U  // Linux 6.3
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 16U  // Linux 6.3
#endif

namespace cohort::base {
namespace {

/// memfd_create, with MFD_NOEXEC_SEAL where the kernel knows it. EINVAL means an unknown flag, or a
/// name that is too long.
int create(const char* name, unsigned flags) noexcept {
    static std::atomic<bool> noexec_known{true};
    if (noexec_known.load(std::memory_order_relaxed)) {
        const int fd = ::memfd_create(name, flags | MFD_NOEXEC_SEAL);
        if (fd >= 0 || errno != EINVAL)
            return fd;
    }
    const int fd = ::memfd_create(name, flags);
    if (fd >= 0)
        noexec_known.store(false, std::memory_order_relaxed);
    return fd;
}

/// Makes a file by `create` and takes away the rights that memfd_create gives to all users. Another
/// thread may change the user in between, who then does not own the file, so that it is made anew.
template <class Create>
unique_fd make_private(Create create, std::error_code& error) noexcept {
    constexpr int most_tries = 100;
    for (int i = 1;; ++i) {
        auto file = out_of_stdio(unique_fd(create()), error);
        if (error)
            return {};
        if (::fchmod(file.get(), 0600) == 0)
            return file;
        error = last_error();
        if (errno != EPERM || i == most_tries)
            return {};
    }
}

}  // namespace

unique_fd make_memfd(const char* name, std::error_code& error) noexcept {
    return make_private([&] { return create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); }, error);
}

unique_fd make_huge_memfd(const char* name, std::error_code& error) noexcept {
    return make_private(
        [&] { return ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB); }, error);
}

unique_fd make_program_memfd(const char* name, std::error_code& error) noexcept {
    int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = ::memfd_create(name, MFD_CLOEXEC);
    return out_of_stdio(unique_fd(fd), error);
}

std::error_code set_length(int fd, std::size_t bytes) noexcept {
    const no_file_size_signal guard;
    return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? std::error_code() : last_error();
}

std::error_code reserve(int fd, std::size_t bytes) noexcept {
    // In one call at first, because the kernel then refuses what is too much before it has taken
    // anything. A signal makes a call of fallocate(2) undo all that it has done, so after one the
    // calls become smaller: signals that keep coming can't keep it from its end.
    constexpr std::size_t smallest_piece = std::size_t{64} << 10;
    const no_file_size_signal guard;
    std::size_t piece = bytes;
    for (std::size_t done = 0; done < bytes;) {
        piece = std::min(piece, bytes - done);
        if (::fallocate(fd, 0, static_cast<off_t>(done), static_cast<off_t>(piece)) == 0)
            done += piece;
        else if (errno != EINTR)
            return last_error();
        else
            piece = std::max(piece / 2, smallest_piece);
    }
    return {};
}

std::error_code write_at(int fd, std::span<const std::byte> bytes, off_t offset) noexcept {
    const no_file_size_signal guard;
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), offset);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return last_error();
        }
        if (n == 0)
            return std::make_error_code(std::errc::io_error);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        offset += n;
    }
    return {};
}

std::size_t read_at(int fd, std::span<std::byte> bytes, off_t offset,
                    std::error_code& error) noexcept {
    error.clear();
    std::size_t count = 0;
    while (count < bytes.size()) {
        const ssize_t n = ::pread(fd, bytes.data() + count, bytes.size() - count,
                                  offset + static_cast<off_t>(count));
        if (n == 0)
            break;
        if (n > 0)
            count += static_cast<std::size_t>(n);
        else if (errno != EINTR) {
            error = last_error();
            break;
        }
    }
    return count;
}

std::error_code add_seals(int fd, int seals) noexcept {
    return ::fcntl(fd, F_ADD_SEALS, seals) == 0 ? std::error_code{} : last_error();
}

ino_t inode(int fd, std::error_code& error) noexcept {
    struct stat file;
    if (::fstat(fd, &file) != 0) {
        error = last_error();
        return 0;
    }
    error.clear();
    return file.st_ino;
}

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
