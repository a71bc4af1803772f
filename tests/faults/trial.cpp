// SPDX-License-Identifier: BSL-1.0
#include "trial.hpp"

#include "tree.hpp"
#include "verdict.hpp"

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
    trial(const form& kind, const std::optional<fault>& wanted,
          const std::map<std::string, int>& usual, const conditions& where)
        : wanted_(wanted), usual_(usual), where_(where), until_(clock::now() + where.bound),
          host_({"host", kind.what, kind.is_warm ? "warm" : "cold"}, where.output) {}

    finding run() {
        if (await_words() && judge_words())
            judge_rest();
        if (watch_)
            found_.counts = watch_->counts();
        found_.happened = !wanted_ || (watch_ && watch_->has_failed_one());
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
            watch_->answer();
        else if ((polled[1].revents & POLLHUP) != 0)
            host_.forget_listener();
        if ((polled[0].revents & (POLLIN | POLLHUP)) != 0)
            host_.hear();
        if (!watch_ && host_.listener() >= 0)
            watch_ = std::make_unique<watch>(host_.listener(), host_.pid(), wanted_);
        if (watch_ && host_.take_finished()) {
            watch_->end_phase();
            host_.let_go();
        }
    }

    /// Waits for the results of both groups.
    bool await_words() {
        const bool in_time =
            serve_until([&] { return host_.words().size() == 2 || host_.has_hung_up(); });
        if (!in_time)
            found_.wrong = fmt::format("it hangs: {} of 2 groups have ended", host_.words().size());
        return in_time;
    }

    bool judge_words() {
        const auto& words = host_.words();
        if (!words.empty() && words[0].starts_with("refused\t"))
            found_.refused = words[0].substr(8);
        else if (words.size() < 2)
            found_.wrong = fmt::format("the host ended early: {}; {}", host_.await_status(),
                                       words.empty() ? "no word of it" : words[0]);
        else
            found_.wrong =
                wrong_with_first(found_.first = words[0], wanted_ ? wanted_->at.actor : "");
        if (found_.wrong.empty() && words.size() == 2 && words[1] != "ok")
            found_.wrong = "the next group: " + words[1] + "; the first one: " + words[0];
        return found_.wrong.empty() && found_.refused.empty();
    }

    /// Checks what is left after a while, because some things end a little later than the groups.
    void judge_rest() {
        std::string wrong;
        until_ = clock::now() + where_.bound;
        if (!serve_until([&] { return (wrong = host_.leftovers(usual_, where_.cgroup)).empty(); }))
            found_.wrong = "left when the groups had ended: " + wrong;
        found_.descriptors = host_.descriptors();
        host_.let_go();
        until_ = clock::now() + where_.bound;
        if (!serve_until([&] { return host_.is_gone(); }))
            found_.wrong += " left when the host was to end: " + host_.listing();
        else if (host_.await_status() != "exit code 0")
            found_.wrong += " the host's end: " + host_.await_status();
        tree::remove_leaves(where_.cgroup);
    }

    const std::optional<fault>& wanted_;
    const std::map<std::string, int>& usual_;
    const conditions& where_;
    clock::time_point until_;
    tree host_;
    std::unique_ptr<watch> watch_;
    finding found_;
};

}  // namespace

finding try_host(const form& kind, const std::optional<fault>& wanted,
                 const std::map<std::string, int>& usual, const conditions& where) {
    return trial(kind, wanted, usual, where).run();
}

}  // namespace faults
