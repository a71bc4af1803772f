// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/uncopied.hpp"

#include "loop/runtime/runtime.hpp"

#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace cohort::loop {

std::shared_ptr<base::unique_fd> uncopied_descriptors::own(runtime& owner, base::unique_fd fd) {
    struct stat is {};
    const int number = fd.get();
    if (::fstat(number, &is) != 0)
        return std::make_shared<base::unique_fd>(std::move(fd));
    auto& here = owner.uncopied();
    {
        const std::lock_guard lock(here.mutex_);
        here.entries_.push_back({number, is.st_dev, is.st_ino});
    }
    auto gone = [&owner, number, file = is.st_ino](base::unique_fd* last) {
        if (!owner.is_own())
            (void)last->release();  // in a forked copy the number may be another file's
        delete last;
        if (!owner.is_own())
            return;
        auto& entries = owner.uncopied().entries_;
        const std::lock_guard lock(owner.uncopied().mutex_);
        std::erase_if(entries, [&](const entry& e) { return e.fd == number && e.file == file; });
    };
    return {new base::unique_fd(std::move(fd)), std::move(gone)};
}

void uncopied_descriptors::close_in_copy() noexcept {
    for (const auto& [fd, device, file] : entries_) {
        struct stat is {};
        if (::fstat(fd, &is) == 0 && is.st_dev == device && is.st_ino == file)
            ::close(fd);
    }
}

}  // namespace cohort::loop
