// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace bench {

/// A launcher of agents on this machine: `env` becomes the agent.
inline cohort::launcher local_hosts(int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i)
        names.push_back(fmt::format("host{}", i));
    const auto make = [](const std::string&, const std::vector<std::string>& agent) {
        return cohort::command("env").args(agent);
    };
    return cohort::launcher(make).hosts(names);
}

/// How a group is started: on `hosts` agents of this machine, or by this process if that is 0.
class place {
public:
    explicit place(int hosts) : hosts_(hosts) {}

    asio::awaitable<void> reach() {
        if (hosts_ > 0)
            machines_ = co_await cohort::reach(local_hosts(hosts_));
    }
    cohort::options options_of(int workers) const {
        cohort::options how(workers);
        if (machines_.valid())
            how.on(machines_);
        return how;
    }
    asio::awaitable<void> leave() {
        if (machines_.valid())
            co_await machines_.leave();
    }

private:
    int hosts_;
    cohort::hosts machines_;
};

}  // namespace bench
