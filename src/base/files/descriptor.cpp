// SPDX-License-Identifier: BSL-1.0
#include "base/files/descriptor.hpp"

#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace cohort::base {
namespace {

/// The last owner of the number in an attachment.
struct close_own {
    base::table_number table;  // in which the number means the file
    dev_t device;             // 0: it can't be a file with a name
    std::string name;         // in /dev/shm; empty: it has none, or none is known

    bool is_open() const noexcept { return table == base::descriptor_table(); }
    void operator()(const int* descriptor) const noexcept {
        if (is_open()) {
            base::unique_fd(*descriptor).reset();
            if (name.empty())
                names_sweeper().closed(device);
            else
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

detail::attachment own(base::unique_fd descriptor, std::string name) {
    dev_t device = 0;
    if (name.empty() && may_have_names())
        device = id_of(descriptor.get()).value_or(file_id()).device;
    close_own closer{base::descriptor_table(), device, std::move(name)};
    auto number = std::make_unique<const int>(descriptor.get());
    (void)descriptor.release();
    // If there is no memory for the reference count, the constructor calls the deleter.
    return detail::attachment(number.release(), std::move(closer));
}

void give_name(const detail::attachment& attachment, const std::string& name) {
    auto* const closer = std::get_deleter<close_own>(attachment);
    const std::lock_guard guard(names_sweeper().mutex);
    if (closer != nullptr && closer->name.empty())
        closer->name = name;
}

bool is_open(const detail::attachment& attachment) noexcept {
    const auto* const closer = std::get_deleter<close_own>(attachment);
    return closer != nullptr && closer->is_open();
}

}  // namespace cohort::base
