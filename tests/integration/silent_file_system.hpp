// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pipes.hpp"
#include "reporter.hpp"
#include "start_support.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>

namespace cohort::test {

/// Mounts a FUSE file system that answers only its first request. A process that asks it for
/// anything hangs and cannot even be killed, see fuse(4).
class silent_file_system {
public:
    /// The processes without an answer. If two hang, all_but_the_oldest gives the older one EIO.
    enum class to { all, all_but_the_oldest };

    silent_file_system(const std::string& path, to whom) : whom_(whom), path_(path) {
        const auto data = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", device_.get());
        if (::mount("cohort-test", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, data.c_str()) != 0)
            throw std::system_error(errno, std::generic_category(), "mount");
        server_ = std::thread([this] { serve(); });
    }
    ~silent_file_system() {
        const std::uint64_t one = 1;
        (void)!::write(stop_.get(), &one, sizeof one);
        server_.join();
        device_.close();  // ends all requests
        ::umount2(path_.c_str(), MNT_DETACH);
    }
    /// A pipe that gets a byte for each request that hangs.
    int taken() const noexcept { return taken_.reads(); }

private:
    class event_fd {
    public:
        event_fd() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
        ~event_fd() { ::close(fd_); }
        int get() const noexcept { return fd_; }

    private:
        int fd_;
    };

    void serve() {
        std::array<pollfd, 2> polled{pollfd{device_.get(), POLLIN, 0},
                                     pollfd{stop_.get(), POLLIN, 0}};
        alignas(fuse_in_header) static std::array<char, 1 << 17> request;
        while (::poll(polled.data(), polled.size(), -1) >= 0 && polled[1].revents == 0) {
            if (::read(device_.get(), request.data(), request.size()) <
                static_cast<ssize_t>(sizeof(fuse_in_header)))
                continue;
            const auto* header = reinterpret_cast<const fuse_in_header*>(request.data());
            if (header->opcode == FUSE_INIT)
                answer_init(*header);
            else if (header->opcode != FUSE_INTERRUPT)
                take(*header);
        }
    }
    void take(const fuse_in_header& request) {
        if (whom_ == to::all_but_the_oldest) {
            if (!first_)
                first_ = request;
            else if (first_->pid != request.pid)
                refuse(first_->pid < request.pid ? *first_ : request);
        }
        say_ready(taken_.writes());
    }
    void refuse(const fuse_in_header& request) {
        const fuse_out_header answer{sizeof answer, -EIO, request.unique};
        (void)!::write(device_.get(), &answer, sizeof answer);
    }
    void answer_init(const fuse_in_header& request) {
        struct {
            fuse_out_header header;
            fuse_init_out body;
        } answer{};
        answer.header.len = sizeof answer;
        answer.header.unique = request.unique;
        answer.body.major = FUSE_KERNEL_VERSION;
        answer.body.minor = FUSE_KERNEL_MINOR_VERSION;
        answer.body.flags = FUSE_PARALLEL_DIROPS;  // or the second look-up waits for the first
        answer.body.max_write = 4096;
        (void)!::write(device_.get(), &answer, sizeof answer);
    }

    const to whom_;
    std::optional<fuse_in_header> first_;
    std::string path_;
    open_file device_{"/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK};
    event_fd stop_;
    pipe_pair taken_;
    std::thread server_;
};

/// @return null: a FUSE file system cannot be mounted here; the case is marked as skipped
inline std::unique_ptr<silent_file_system> mount_or_skip(
    const std::string& path, silent_file_system::to whom = silent_file_system::to::all) {
    try {
        return std::make_unique<silent_file_system>(path, whom);
    } catch (const std::system_error& e) {
        skip(fmt::format("needs root and FUSE: {}", e.what()));
        return nullptr;
    }
}

}  // namespace cohort::test
