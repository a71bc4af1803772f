// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "programs/stamps.hpp"

#include <cerrno>
#include <new>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace bench {

/// The memory file of the workers' stamps, mapped. Not close-on-exec: raw children inherit it.
class shared_stamps {
public:
    shared_stamps() : fd_(::memfd_create("stamps", 0)) {
        void* memory = MAP_FAILED;
        if (fd_ >= 0 && ::ftruncate(fd_, sizeof(stamps)) == 0)
            memory = ::mmap(nullptr, sizeof(stamps), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory == MAP_FAILED)
            throw std::system_error(errno, std::system_category(), "shared stamps");
        stamps_ = new (memory) stamps{};
    }
    ~shared_stamps() {
        ::munmap(stamps_, sizeof(stamps));
        ::close(fd_);
    }
    shared_stamps(const shared_stamps&) = delete;
    shared_stamps& operator=(const shared_stamps&) = delete;

    int fd() const { return fd_; }
    const stamps& operator*() const { return *stamps_; }
    void clear() { new (stamps_) stamps{}; }

private:
    int fd_;
    stamps* stamps_ = nullptr;
};

}  // namespace bench
