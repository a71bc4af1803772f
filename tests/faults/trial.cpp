// SPDX-License-Identifier: BSL-1.0
#include "trial.hpp"

#include "process_tree.hpp"
#include "result_check.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>

#include <poll.h>
#include <unistd.h>

namespace faults {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// One host, from its start to the end of its last descendant.
class trial {
public:
    trial(const start_kind& kind, const std::optional<fault>& wanted,
          const std::map<std::string, int>& usual, const conditions& where)
        : wanted_(wanted), usual_(usual), where_(where), until_(clock::now() + where.bound),
          host_({"host", kind.what, kind.is_warm ? "warm" : "cold"}, where.output) {}

    trial_result run() {
        if (await_results() && check_results())
            check_leftovers();
        if (injector_)
            found_.counts = injector_->counts();
        found_.happened = !wanted_ || (injector_ && injector_->has_injected());
        return std::move(found_);
    }

private:
    /// Serves the host until is_done() is true. @return false: time is up
    template <class Done>
    bool serve_until(Done is_done) {
        while (!is_done()) {
            if (clock::now() > until_)
                return false;
            serve_once();
        }
        return true;
    }

    void serve_once() {
        constexpr int look_again_ms = 2;
        std::array<pollfd, 2> polled{pollfd{host_.channel(), POLLIN, 0},
                                     pollfd{host_.listener(), POLLIN, 0}};
        if (::poll(polled.data(), polled.size(), look_again_ms) <= 0)
            return;
        if ((polled[1].revents & POLLIN) != 0)
            injector_->answer();
        else if ((polled[1].revents & POLLHUP) != 0)
            host_.close_listener();
        if ((polled[0].revents & (POLLIN | POLLHUP)) != 0)
            host_.receive();
        if (!injector_ && host_.listener() >= 0)
            injector_ = std::make_unique<fault_injector>(host_.listener(), host_.pid(), wanted_);
        if (injector_ && host_.take_first_group_ended()) {
            injector_->stop_injecting();
            host_.let_continue();
        }
    }

    /// Waits for the results of both groups.
    bool await_results() {
        const bool in_time =
            serve_until([&] { return host_.results().size() == 2 || host_.is_disconnected(); });
        if (!in_time)
            found_.wrong =
                fmt::format("it hangs: {} of 2 groups have ended", host_.results().size());
        return in_time;
    }

    bool check_results() {
        const auto& results = host_.results();
        if (!results.empty() && results[0].starts_with("refused\t"))
            found_.refused = results[0].substr(8);
        else if (results.size() < 2)
            found_.wrong = fmt::format("the host ended early: {}; {}", host_.await_status(),
                                       results.empty() ? "no result" : results[0]);
        else
            found_.wrong =
                check_first_result(found_.first = results[0], wanted_ ? wanted_->at.actor : "");
        if (found_.wrong.empty() && results.size() == 2 && results[1] != "ok")
            found_.wrong = "the next group: " + results[1] + "; the first one: " + results[0];
        return found_.wrong.empty() && found_.refused.empty();
    }

    /// Checks what is left after a while, because some things end a little later than the groups.
    void check_leftovers() {
        std::string wrong;
        until_ = clock::now() + where_.bound;
        if (!serve_until([&] { return (wrong = host_.leftovers(usual_, where_.cgroup)).empty(); }))
            found_.wrong = "left when the groups had ended: " + wrong;
        found_.descriptors = host_.descriptors();
        host_.let_continue();
        until_ = clock::now() + where_.bound;
        if (!serve_until([&] { return host_.has_ended(); }))
            found_.wrong += " left when the host was to end: " + host_.listing();
        else if (host_.await_status() != "exit code 0")
            found_.wrong += " the host's end: " + host_.await_status();
        process_tree::remove_cgroups(where_.cgroup);
    }

    const std::optional<fault>& wanted_;
    const std::map<std::string, int>& usual_;
    const conditions& where_;
    clock::time_point until_;
    process_tree host_;
    std::unique_ptr<fault_injector> injector_;
    trial_result found_;
};

}  // namespace

trial_result run_trial(const start_kind& kind, const std::optional<fault>& wanted,
                       const std::map<std::string, int>& usual, const conditions& where) {
    return trial(kind, wanted, usual, where).run();
}

}  // namespace faults
