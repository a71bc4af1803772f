// SPDX-License-Identifier: BSL-1.0
#include "base/files/descriptor.hpp"

#include "base/files/dispose.hpp"
#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace cohort::base {
namespace {

/// The last owner of the number in an attachment.
struct close_own {
    base::table_number table;  // in which the number means the file
    dev_t device;             // 0: it can't be a file with a name
    std::string name;         // in /dev/shm; empty: it has none, or none is known
    bool may_wait = false;    // for another process

    bool is_open() const noexcept { return table == base::descriptor_table(); }
    void operator()(const int* descriptor) const noexcept {
        if (*descriptor >= 0 && is_open()) {
            if (may_wait)
                dispose(base::unique_fd(*descriptor));  // calls this again
            else
                close(*descriptor);
        }
        delete descriptor;
    }

private:
    void close(int descriptor) const noexcept {
        base::unique_fd(descriptor).reset();
        if (name.empty())
            names_sweeper().closed(device);
        else
            (void)remove_unused(name);
    }
};

}  // namespace

std::optional<file_id> id_of(int descriptor) noexcept {
    // What the kernel knows already: the server of a file of FUSE may answer when it wishes.
    struct statx file;
    if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &file) != 0)
        return std::nullopt;
    return file_id{makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino};
}

namespace {

detail::attachment make_owner(base::unique_fd&& descriptor, std::string name, bool may_wait) {
    dev_t device = 0;
    if (name.empty() && may_have_names())
        device = id_of(descriptor.get()).value_or(file_id()).device;
    close_own closer{base::descriptor_table(), device, std::move(name), may_wait};
    auto made = std::make_unique<int>(-1);
    int& number = *made;
    // If there is no memory for the reference count, the constructor calls the deleter.
    const detail::attachment owner(made.release(), std::move(closer));
    number = descriptor.release();
    return owner;
}

}  // namespace

detail::attachment own(base::unique_fd&& descriptor, std::string name) {
    return make_owner(std::move(descriptor), std::move(name), false);
}

detail::attachment own_received(base::unique_fd&& descriptor) {
    const bool is_memory = ::fcntl(descriptor.get(), F_GET_SEALS) >= 0;
    return make_owner(std::move(descriptor), "", !is_memory);
}

void give_name(const detail::attachment& attachment, const std::string& name) {
    auto* const closer = std::get_deleter<close_own>(attachment);
    const std::lock_guard guard(names_sweeper().mutex);
    if (closer != nullptr && closer->name.empty())
        closer->name = name;
}

void close_at_once(const detail::attachment& attachment) noexcept {
    if (auto* const closer = std::get_deleter<close_own>(attachment); closer != nullptr)
        closer->may_wait = false;
}

bool is_open(const detail::attachment& attachment) noexcept {
    const auto* const closer = std::get_deleter<close_own>(attachment);
    return closer != nullptr && closer->is_open();
}

}  // namespace cohort::base
