// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/connection/send_queue.hpp"
#include "hosts/connection/windows.hpp"
#include "hosts/link/breach.hpp"
#include "hosts/link/credits.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "loop/engine/engine.hpp"
#include "output/streams/group_streams.hpp"
#include "output/streams/stream_sinks.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace cohort::multihost {

/// The streams of one group at a host: sends to the origin what the workers print, as the origin
/// gives credit, and feeds the workers what the origin sends. Belongs to the output thread.
///
/// Each stream has a queue and a credit of its own, so that one that nobody reads holds up no
/// other. Where the credit runs out, a stream that blocks is not read any more, and of those that
/// drop the oldest text of the one that has most here is dropped, when they have more than the
/// buffer together.
class agent_streams final : public output::stream_relay,
                            public std::enable_shared_from_this<agent_streams> {
public:
    using say = base::callback<void(frame_kind, std::vector<std::byte>)>;

    /// @param group  of routes at a host (create_group_at_host()), not started yet
    /// @param to     sends a message of the group to the origin. Not called after close()
    agent_streams(const std::shared_ptr<output::group_streams>& group, say to);

    /// On any thread, before the group is started: from then on the group's streams come here.
    void begin();
    /// A message of the kinds data_credit or input. @return how it breaks the protocol
    [[nodiscard]] std::optional<breach> heard(const message& what);
    /// To be called when the last worker has ended, once. Calls `then` when all was sent, after the
    /// group's flush_timeout at the latest: what is not sent then is dropped.
    void when_sent(loop::task then);
    /// The link has ended, or the group is not needed any more: what the workers print is dropped.
    void close();

    // For the group's streams:

    void take(const output::stream_origin& of, when_full full, std::string_view bytes) override;
    bool has_room(const output::stream_origin& of) const override;
    void when_room(const output::stream_origin& of, base::callback<bool()> then) override;
    void end_stream(const output::stream_origin& of) override;

private:
    struct stream_state {
        explicit stream_state(std::uint64_t reserve) : credit(stream_window, reserve) {}

        send_queue queue;
        sender_credit credit;
        base::callback<bool()> when_room;
        bool drops = false;     // when the buffer is full
        bool is_ready = false;  // stands in ready_
    };
    static std::size_t place_of(int index, stream from) noexcept {
        return 2 * static_cast<std::size_t>(index) + (from == stream::err ? 1 : 0);
    }
    stream_state& at(const output::stream_origin& of) {
        return streams_[place_of(of.index, of.from)];
    }

    std::optional<breach> heard_credit(const message& what);
    std::optional<breach> heard_input(const message& what);
    void answer(int index, std::size_t cost, bool is_taken);
    bool send_at_once(stream_state& by, const output::stream_origin& of, std::string_view bytes);
    std::vector<std::byte> pay_for(std::size_t place, const send_queue::piece& which);
    void make_ready(std::size_t place);
    void pump();
    bool send_next(std::size_t place);
    void tell_room(stream_state& of);
    void make_room();
    void give_up();
    void look_whether_sent();

    const std::weak_ptr<output::group_streams> group_;
    loop::engine& loop_;
    const struct {
        int workers;
        std::size_t buffer;
        std::size_t buffer_while_read;
        std::size_t most_at_end;  // of a stream that blocks
        loop::time_point::duration flush_timeout;
    } how_;
    say to_;  // null: closed
    std::vector<stream_state> streams_;
    std::vector<std::uint64_t> input_;  // by index: what was not answered
    sender_credit data_{data_window};
    std::deque<std::size_t> ready_;           // streams with something to send, and credit
    std::size_t droppable_ = 0;               // bytes of streams that drop
    std::size_t unread_ = 0;                  // what was added since some were sent
    loop::task sent_;
    std::optional<loop::timer_id> timer_;
};

}  // namespace cohort::multihost
