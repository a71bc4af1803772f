// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "hosts/link/breach.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/link/lease.hpp"
#include "loop/engine/engine.hpp"
#include "output/pipes/pipe_reader.hpp"
#include "output/pipes/pipe_writer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace cohort::multihost {

/// Why a connection has ended.
struct connection_end {
    enum class kind {
        left,       // after the other end's bye
        cut,        // without
        silent,     // its lease has ended
        broken,     // it broke the protocol, see `how`
        no_memory,  // there was none here for what it has sent
    };
    kind why;
    std::optional<breach> how = {};

    friend bool operator==(const connection_end&, const connection_end&) = default;
};

/// One end of a link: two pipes (or sockets), the frames on them, and the lease. Belongs to the
/// thread of its loop, on which it also takes the frames apart.
class connection final : public output::byte_sink, public std::enable_shared_from_this<connection> {
public:
    class listener {
    public:
        /// A message other than a beat.
        virtual void heard(message what) = 0;
        /// Comes once. Nothing is heard or sent after it.
        virtual void ended(const connection_end& how) = 0;

    protected:
        ~listener() = default;
    };
    struct settings {
        side ours;
        std::optional<std::uint64_t> session;  // the agent chooses it; empty: the other end does
        std::size_t largest;                   // size of the largest message that is taken
        lease_rules lease;
    };
    /// @param in   what the other end sends is read from it
    /// @param out  what is sent is written to it; non-blocking
    connection(loop::engine& loop, base::unique_fd in, std::shared_ptr<base::unique_fd> out,
               const settings& how);
    ~connection() override;

    /// Sends the greeting, and begins to read.
    /// @param to  kept by the caller until the end
    void begin(std::weak_ptr<listener> to);
    /// Sends a message behind those that were sent before. Only what is urgent overtakes others:
    /// beats, stops, signals and credits.
    void send(const frame_name& name, std::span<const std::byte> body = {});
    /// The same without a copy.
    void send(const frame_name& name, std::vector<std::byte>&& body);
    /// Closes the way out when all is sent, and then calls `then`, unless the link ends before.
    void finish(loop::task then = {});
    /// The other end broke the protocol by a message: ends it.
    void refuse(breach how) { over({connection_end::kind::broken, how}); }
    /// Ends it now, and tells nobody.
    void abandon();
    void set_host_timeout(duration timeout) noexcept { lease_.set_host_timeout(timeout); }
    /// From now on messages of this size are taken, too.
    void take_messages_of(std::size_t size) noexcept { reader_.take_messages_of(size); }

    /// Nothing is read any more, until read_on() has been called as often. Silence does not end the
    /// lease meanwhile.
    void stop_reading() noexcept { ++not_reading_; }
    void read_on();

    /// How many bytes have come and gone. On any thread.
    std::uint64_t moved() const noexcept { return bytes_.moved.load(std::memory_order_relaxed); }
    /// How many bytes wait to be written.
    std::size_t unsent() const noexcept { return bytes_.unsent; }
    /// What came before the other end's greeting.
    const std::string& noise() const noexcept { return reader_.noise(); }
    bool has_greeting() const noexcept { return reader_.has_greeting(); }
    std::uint64_t session() const noexcept { return session_; }
    const lease& times() const noexcept { return lease_; }

private:
    struct waiting {
        frame_name name;
        std::vector<std::byte> body;
        std::size_t done = 0;
    };

    void take(std::string_view bytes) override;
    bool has_room() override { return !is_.over && not_reading_ == 0; }
    void leave_room() override {}
    void end(std::error_code why) override;

    void hear(message what);
    void pump();
    void add_next(frame_writer& frames);
    void write(frame_writer& frames);
    void wrote(std::error_code error);
    void look_at_lease();
    void arm();
    void over(const connection_end& how);

    loop::engine& loop_;
    const side ours_;
    std::uint64_t session_ = 0;
    bool knows_session_;
    frame_reader reader_;
    lease lease_;
    std::weak_ptr<listener> listener_;
    // Until begin(). What never begins is closed by any thread that lets go of it.
    base::unique_fd in_fd_;
    std::shared_ptr<base::unique_fd> out_fd_;
    std::shared_ptr<output::pipe_reader> in_;
    std::shared_ptr<output::pipe_writer> out_;
    std::deque<waiting> waiting_;  // to be written
    struct {
        std::size_t unsent = 0;
        std::atomic<std::uint64_t> moved = 0;
    } bytes_;
    std::optional<loop::timer_id> timer_;
    loop::task finished_;
    struct {
        bool opened = false;  // the first message was given, and beats may follow it
        bool first_written = false;
        bool writing = false;
        bool finishing = false;
        bool deaf = false;  // the other end: it hears nothing any more
        bool left = false;  // it has said bye
        bool over = false;
    } is_;
    int not_reading_ = 0;  // how many have asked for that
};

}  // namespace cohort::multihost
