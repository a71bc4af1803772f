// SPDX-License-Identifier: BSL-1.0
// Boost.Process v2 with pipes: the output of its children line by line, and read to the end.
#include "stream_starts.hpp"
#include "tee.hpp"

// Boost 1.81 does not include two of its own headers when it uses std::filesystem.
#define BOOST_PROCESS_USE_STD_FS
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>

#include <boost/process/v2.hpp>

#include <cstdio>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {
namespace {

namespace net = boost::asio;
namespace process = boost::process::v2;

void check(boost::system::error_code error) {
    if (error && error != net::error::eof)
        throw boost::system::system_error(error);
}

/// Writes each line of one child, with a tag, to a buffered FILE.
class tagged_child {
public:
    tagged_child(net::io_context& io, const tee_job& todo, int index, std::FILE* to)
        : pipe_(io),
          child_(io, todo.program, {todo.bytes_of_one()}, process::process_stdio{{}, pipe_, {}}),
          tag_("[" + std::to_string(index) + "]: "), to_(to) {
        next();
        child_.async_wait([](boost::system::error_code error, int) { check(error); });
    }

    long long seen = 0;

private:
    void next() {
        net::async_read_until(pipe_, text_, '\n',
                              [this](boost::system::error_code error, std::size_t size) {
                                  check(error);
                                  if (!error)
                                      pass(size);
                              });
    }

    void pass(std::size_t size) {
        std::fwrite(tag_.data(), 1, tag_.size(), to_);
        std::fwrite(text_.data().data(), 1, size, to_);
        text_.consume(size);
        seen += static_cast<long long>(size);
        next();
    }

    net::readable_pipe pipe_;
    process::process child_;
    net::streambuf text_;
    std::string tag_;
    std::FILE* to_;
};

/// Both streams of one child after another, read to the end.
class starts {
public:
    starts(net::io_context& io, std::string program, int count)
        : io_(io), program_(std::move(program)), count_(count) {}

    void next() {
        if (static_cast<int>(took.size()) == count_)
            return;
        before_ = std::chrono::steady_clock::now();
        out_ = std::make_unique<stream>(io_);
        err_ = std::make_unique<stream>(io_);
        child_ =
            std::make_unique<process::process>(io_, program_, std::initializer_list<std::string>{},
                                               process::process_stdio{{}, out_->pipe, err_->pipe});
        left_ = 3;
        read(*out_);
        read(*err_);
        child_->async_wait([this](boost::system::error_code error, int) { done(error); });
    }

    std::vector<duration> took;

private:
    struct stream {
        explicit stream(net::io_context& io) : pipe(io) {}
        net::readable_pipe pipe;
        std::string text;
    };

    void read(stream& from) {
        net::async_read(from.pipe, net::dynamic_buffer(from.text),
                        [this](boost::system::error_code error, std::size_t) { done(error); });
    }

    void done(boost::system::error_code error) {
        check(error);
        if (--left_ > 0)
            return;
        took.push_back(std::chrono::steady_clock::now() - before_);
        net::post(io_, [this] { next(); });
    }

    net::io_context& io_;
    std::string program_;
    int count_;
    int left_ = 0;
    std::chrono::steady_clock::time_point before_;
    std::unique_ptr<stream> out_, err_;
    std::unique_ptr<process::process> child_;
};

}  // namespace

void tee_by_boost(const tee_job& todo) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> to(std::fopen("/dev/null", "we"),
                                                             std::fclose);
    std::setvbuf(to.get(), nullptr, _IOFBF, 65'536);
    net::io_context io(1);
    std::list<tagged_child> children;
    for (int i = 0; i < todo.workers; ++i)
        children.emplace_back(io, todo, i, to.get());
    io.run();
    long long seen = 0;
    for (const auto& each : children)
        seen += each.seen;
    check_bytes(todo, seen);
}

std::vector<duration> start_by_boost(const std::string& program, int count) {
    net::io_context io(1);
    starts all(io, program, count);
    net::post(io, [&] { all.next(); });
    io.run();
    return std::move(all.took);
}

}  // namespace bench
