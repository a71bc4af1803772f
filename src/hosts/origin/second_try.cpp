// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/second_try.hpp"

#include "base/sys/patiently.hpp"

#include <exception>
#include <utility>

namespace cohort::multihost {

bool second_try::takes(int host, const unreached& why) {
    const auto command = base::patiently([&] { return detail::gpus_command(plan_); });
    if (!command || !detail::is_refused_for_gpus(plan_, why.words) || !tried_.insert(host).second)
        return false;
    if (!query_) {
        try {
            query_ = std::make_shared<query>(from_, *command);
        } catch (const std::exception&) {
            return false;
        }
        query_->start([this](const query::answer& printed) { answered(printed); });
    }
    ends_.insert(host);
    waiting_.emplace(host, why);
    return true;
}

void second_try::answered(const query::answer& printed) {
    const auto keep = std::exchange(query_, nullptr);
    for (const auto& [host, why] : std::exchange(waiting_, {})) {
        auto command = base::patiently([&, at = static_cast<std::size_t>(host)] {
            return printed.success ? detail::command_with_gpus(plan_, at, printed.printed)
                                   : std::nullopt;
        });
        found_(host, std::move(command), why);
    }
}

void second_try::stop() {
    if (query_)
        query_->stop();
}

}  // namespace cohort::multihost
