// SPDX-License-Identifier: BSL-1.0
// Boost.Process v2 with its default launcher: fork, every descriptor above stdio closed in the
// child, stdio inherited, a pipe that reports a failed exec, then a pidfd on the loop.
#include "peer.hpp"

// Boost 1.81 does not include two of its own headers when it uses std::filesystem.
#define BOOST_PROCESS_USE_STD_FS
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>

#include <boost/process/v2.hpp>

#include <list>
#include <stdexcept>

namespace bench {
namespace {

namespace net = boost::asio;
namespace process = boost::process::v2;
using std::chrono::steady_clock;

class waves {
public:
    waves(net::io_context& io, const job& todo) : io_(io), todo_(todo), ticks_(io) {
        if (todo_.beside != nullptr) {
            ticks_.assign(todo_.beside->fd());
            todo_.beside->arm();
            tick();
        }
    }

    void next() {
        if (static_cast<int>(took.size()) == todo_.waves) {
            if (todo_.beside != nullptr)
                ticks_.release();
            return;
        }
        children_.clear();
        before_ = steady_clock::now();
        left_ = todo_.at_once;
        for (int i = 0; i < todo_.at_once; ++i)
            children_.emplace_back(io_, todo_.program, std::initializer_list<std::string>{});
        for (auto& child : children_)
            child.async_wait([this](boost::system::error_code error, int) {
                if (error)
                    throw boost::system::system_error(error);
                if (--left_ == 0) {
                    took.push_back(steady_clock::now() - before_);
                    net::post(io_, [this] { next(); });
                }
            });
    }

    std::vector<duration> took;

private:
    void tick() {
        ticks_.async_wait(net::posix::stream_descriptor::wait_read,
                          [this](boost::system::error_code error) {
                              if (error)
                                  return;
                              todo_.beside->served();
                              tick();
                          });
    }

    net::io_context& io_;
    const job& todo_;
    net::posix::stream_descriptor ticks_;
    std::list<process::process> children_;
    steady_clock::time_point before_;
    int left_ = 0;
};

}  // namespace

std::vector<duration> run_boost(const job& todo) {
    net::io_context io(1);
    waves all(io, todo);
    net::post(io, [&] { all.next(); });
    io.run();
    return std::move(all.took);
}

}  // namespace bench
