// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"
#include "hosts/connection/connection.hpp"
#include "hosts/origin/launcher_end.hpp"
#include "hosts/origin/link_parts.hpp"
#include "hosts/values/messages.hpp"
#include "loop/runtime/runtime.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/plan.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::multihost {

/// Asked where something has run that has not said hello.
inline constexpr const char* question_of_hello =
    " (does its program begin with cohort::worker_main?)";

/// What this process is to its launchers.
struct origin {
    groups::services& services;
    protocol::caller_ref caller;
};

/// Why a host was not reached.
struct unreached {
    std::string host;
    std::string stage;  // "launcher", "hello", "program" or "version"
    std::error_code code;
    std::string text;   // what happened
    std::string words;  // the launcher's last words on stderr
};

/// One host as the origin sees it: its launcher, which is a group of one on this machine, and the
/// link to its agent. Belongs to the engine's thread; its connection to that of the output loop.
class host_link final : public detail::completion_sink,
                        private connection::listener,
                        public std::enable_shared_from_this<host_link> {
public:
    /// What becomes of a host. Called on the engine's thread.
    class listener {
    public:
        /// Its agent is there, and is the same program as this one.
        virtual void reached(int host) = 0;
        /// In place of reached().
        virtual void not_reached(int host, unreached why) = 0;
        /// After reached().
        virtual void lost(int host, std::string why) = 0;
        /// Its launcher has ended and was reaped. The last call.
        virtual void gone(int host) = 0;

    protected:
        ~listener() = default;
    };
    struct settings {
        std::string name;
        detail::program launcher;
        welcome answer;                    // to the agent's hello
        std::shared_ptr<const hello> own;  // what an agent of this program says of itself
    };

    /// Makes the pipes and the launcher's group; starts nothing.
    /// @throws what make_group() throws
    host_link(const origin& from, listener& of, int number, settings how);
    ~host_link() override;

    const std::string& name() const noexcept { return how_.name; }

    void start();
    /// Time is up.
    void give_up(const std::string& why);
    /// The agent is to end, then the launcher.
    void leave();
    /// The launcher is to end now.
    void stop();
    bool is_gone() const noexcept { return is_.gone; }

    // For the parts of groups on a host that was reached:

    std::chrono::steady_clock::duration host_timeout() const noexcept {
        return how_.answer.host_timeout;
    }
    link_parts& parts() noexcept { return *parts_; }
    /// Opens a part. If the link has been lost before, the part is told so.
    void open_part(std::uint32_t group, const std::shared_ptr<part_listener>& part,
                   std::size_t largest);
    /// The agent does not do what it must: the host is lost.
    void give_up_agent(const std::string& why);
    /// Set if something else than the origin has told the agent to end: "its agent was ...".
    const link_loss* told_to_end() const noexcept {
        return is_.told_to_end ? &*loss_ : nullptr;
    }

    detail::delivery complete(detail::operation_id id,
                              const detail::completion& result) noexcept override;

private:
    enum operation : detail::operation_id { start_operation = 1, end_operation = 2 };

    void heard(message what) override;
    void ended(const connection_end& how) override;

    template <class Then>
    void on_engine(Then then);
    void greeted(const read_value<hello>& said);
    void answered(const detail::start_failure* why);
    void told_to_end(int signo);
    void link_ended(const connection_end& how, time_point last_heard);
    template <class Then>
    void with_noise(Then then);
    void fail_with_noise(std::error_code code, std::string text);
    void launcher_ended(const detail::completion& result);
    void fail(const char* stage, std::error_code code, std::string text);
    void fail_by_end(const std::string& noise);
    void fail_by_cut();
    void tell_failure();
    void note_loss(const connection_end& how, time_point last_heard);
    void tell_lost();
    void go_on();
    void after(std::chrono::steady_clock::duration pause, void (host_link::*then)());
    void cancel_timer();

    loop::runtime& runtime_;
    listener& listener_;
    const int number_;
    const settings how_;
    detail::group_ref launcher_;
    std::shared_ptr<connection> link_;
    std::shared_ptr<link_parts> parts_;
    int heard_ = 0;  // messages of no group; the output thread's
    launcher_end launcher_end_{nullptr};
    std::optional<unreached> failure_;  // until it is told
    std::optional<link_loss> loss_;     // told when the link ends
    std::optional<loop::timer_id> timer_;
    struct {
        bool started = false;
        bool greeted = false;  // a hello has come
        bool reached = false;
        bool told_to_end = false;  // its agent was, and has told so: that is loss_
        bool leaving = false;
        bool link_over = false;
        bool launcher_over = false;
        bool told = false;  // not_reached() or lost()
        bool gone = false;
    } is_;
};

}  // namespace cohort::multihost
