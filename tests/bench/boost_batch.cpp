// SPDX-License-Identifier: BSL-1.0
#include "batch.hpp"

// Boost 1.81 does not include two of its own headers when it uses std::filesystem.
#define BOOST_PROCESS_USE_STD_FS
#include <boost/asio/io_context.hpp>
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>

#include <boost/process/v2.hpp>

#include <list>

namespace bench {
namespace {

namespace net = boost::asio;
namespace process = boost::process::v2;

class batch_loop {
public:
    batch_loop(net::io_context& io, const batch_job& todo) : io_(io), todo_(todo) {}

    void start_next() {
        if (started_ == todo_.commands)
            return;
        ++started_;
        const auto child = children_.emplace(children_.end(), io_, todo_.program,
                                             std::initializer_list<std::string>{});
        child->async_wait([this, child](boost::system::error_code error, int) {
            if (error)
                throw boost::system::system_error(error);
            net::post(io_, [this, child] {
                children_.erase(child);
                start_next();
            });
        });
    }

private:
    net::io_context& io_;
    const batch_job& todo_;
    std::list<process::process> children_;
    int started_ = 0;
};

}  // namespace

void batch_by_boost(const batch_job& todo) {
    net::io_context io(1);
    batch_loop all(io, todo);
    for (int i = 0; i < todo.at_once; ++i)
        all.start_next();
    io.run();
}

}  // namespace bench
