// SPDX-License-Identifier: BSL-1.0
#include "share/descriptor.hpp"

#include "share/named_file.hpp"
#include "sys/fork_mark.hpp"
#include "sys/leaked.hpp"

#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::share {
namespace {

/// Whether this process is the one that owned the first descriptor, or a forked copy of it.
bool in_first_process() noexcept {
    return sys::leaked([] { return sys::fork_mark(); }).same_process();
}

/// The last owner of the number in an attachment.
struct close_own {
    file_id file;
    int access = 0;    // O_RDONLY or O_RDWR, because one file may be open in both ways
    std::string name;  // in /dev/shm; empty: it has none

    bool owns(int descriptor) const noexcept {
        if (in_first_process())
            return true;
        const int flags = ::fcntl(descriptor, F_GETFL);
        return flags >= 0 && (flags & O_ACCMODE) == access && id_of(descriptor) == file;
    }
    void operator()(const int* descriptor) const noexcept {
        if (owns(*descriptor)) {
            sys::unique_fd(*descriptor).reset();
            if (!name.empty())
                (void)remove_unused(name);
        }
        delete descriptor;
    }
};

}  // namespace

std::optional<file_id> id_of(int descriptor) noexcept {
    struct stat file;
    if (::fstat(descriptor, &file) != 0)
        return std::nullopt;
    return file_id{file.st_dev, file.st_ino};
}

detail::attachment own(sys::unique_fd descriptor) {
    (void)in_first_process();  // makes the mark
    const int flags = ::fcntl(descriptor.get(), F_GETFL);
    close_own closer{id_of(descriptor.get()).value_or(file_id()), flags & O_ACCMODE,
                     name_of(descriptor.get())};
    auto number = std::make_unique<const int>(descriptor.get());
    (void)descriptor.release();
    // If there is no memory for the reference count, the constructor calls the deleter.
    return detail::attachment(number.release(), std::move(closer));
}

bool is_open(const detail::attachment& attachment) noexcept {
    const auto* const closer = std::get_deleter<close_own>(attachment);
    return closer != nullptr && closer->owns(*attachment);
}

}  // namespace cohort::share
