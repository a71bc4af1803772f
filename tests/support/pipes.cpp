// SPDX-License-Identifier: BSL-1.0
#include "pipes.hpp"

#include <asio/buffer.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::test {

pipe_pair::pipe_pair() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe2");
}

pipe_pair::~pipe_pair() {
    close(0);
    close(1);
}

int pipe_pair::release_reads() noexcept { return std::exchange(ends_[0], -1); }

void pipe_pair::close(std::size_t end) noexcept {
    if (ends_[end] >= 0)
        ::close(std::exchange(ends_[end], -1));
}

ready::ready(asio::any_io_executor executor) : ours_(std::move(executor)) {
    ours_.assign(pipe_.reads());
    (void)pipe_.release_reads();
}

asio::awaitable<void> ready::wait(int count) {
    for (char byte = 0; count > 0; --count) {
        asio::error_code error;
        co_await ours_.async_read_some(asio::buffer(&byte, 1),
                                       asio::redirect_error(asio::use_awaitable, error));
        if (error)
            throw std::runtime_error(std::to_string(count) +
                                     " workers never said that they are ready: " + error.message());
    }
}

void say_ready(int fd) {
    const char byte = '\n';
    if (::write(fd, &byte, 1) != 1)
        throw std::system_error(errno, std::generic_category(), "say_ready");
}

}  // namespace cohort::test
