// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace bench {

/// A forked copy of this process that runs one function. It must end by itself.
class forked {
public:
    template <class Function>
    explicit forked(Function work) : pid_(::fork()) {
        if (pid_ < 0)
            throw std::system_error(errno, std::system_category(), "fork");
        if (pid_ == 0) {
            work();
            ::_exit(0);
        }
    }
    ~forked() { ::waitpid(pid_, nullptr, 0); }
    forked(const forked&) = delete;
    forked& operator=(const forked&) = delete;

private:
    pid_t pid_;
};

}  // namespace bench
