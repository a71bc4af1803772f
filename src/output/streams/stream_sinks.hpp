// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/engine/engine.hpp"
#include "output/lines/capture.hpp"
#include "output/lines/splitter.hpp"
#include "output/pipes/pipe.hpp"
#include "output/routes/routes.hpp"
#include "output/streams/line_hub.hpp"
#include "output/targets/target.hpp"

#include <cohort/output.hpp>
#include <cohort/policies.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace cohort::output {

/// One stream of one start of one worker.
struct stream_origin {
    int index;    // of the worker
    int attempt;  // how often it was started before
    stream from;
    std::shared_ptr<const std::string> host = {};  // null: this machine
};

/// Brings streams to another machine, which has the group's queue. Used on the output thread.
class stream_relay {
public:
    virtual ~stream_relay() = default;
    /// Takes bytes, also without room.
    virtual void take(const stream_origin& of, when_full full, std::string_view bytes) = 0;
    /// Asked only for a stream that waits for room.
    virtual bool has_room(const stream_origin& of) const = 0;
    /// Calls `then` once, when there is room.
    virtual void when_room(const stream_origin& of, base::callback<bool()> then) = 0;
    virtual void end_stream(const stream_origin& of) = 0;
};

/// For a note: how many bytes of a stream are missing, and why. Empty: none.
std::string left_out(std::uint64_t bytes, stream from, std::string_view why);

/// One stream of one worker on its way from the pipe to its sinks. Each text is split once for all
/// sinks that want it split in the same way, and they share the result. Belongs to the output
/// thread.
class stream_sinks final : public byte_sink, public std::enable_shared_from_this<stream_sinks> {
public:
    /// What the group's streams have in common.
    struct of_group {
        std::span<const std::shared_ptr<target>> targets;
        std::span<const target_plan> plans;
        std::shared_ptr<line_hub> hub;
        std::shared_ptr<stream_relay> relay;  // takes what else is the hub's; may be null
        std::shared_ptr<run_pool> pool;
    };
    /// @param most_left  how many bytes the stream may have left at its end
    stream_sinks(loop::engine& loop, const stream_origin& whose, const stream_route& route,
                 const of_group& group, std::size_t most_left);

    /// Whose reading goes on when there is room again.
    void set_reader(std::weak_ptr<stream_reader> reader) { reader_ = std::move(reader); }

    /// Calls `exceeded` once, with the limit, when more was read than capture().at_most() allows.
    void on_limit(base::callback<void(std::uint64_t)> exceeded) { exceeded_ = std::move(exceeded); }

    void take(std::string_view bytes) override;
    void lose(std::uint64_t lines, std::uint64_t bytes) override;
    bool has_room() override;
    void leave_room() override;
    void end(std::error_code why) override;

    /// What capture() kept. Once, after the end.
    captured take_captured();
    /// The targets that it has written to, and when the last text for each was read.
    const auto& written() const noexcept { return written_; }
    /// What is missing, for a note. Empty: nothing.
    std::string trouble() const;

private:
    struct consumer {
        std::shared_ptr<target> to;  // null: the group's queue
        when_full full;
        std::size_t over = 0;  // bytes that it got without having room
    };
    /// Sinks that want the text split in the same way.
    struct cut {
        std::optional<splitter::settings> how;  // empty: the bytes as they come
        std::optional<splitter> cutter;
        std::vector<consumer> consumers;
        std::size_t unpassed = 0;  // bytes that came without room, and are not in a line yet
    };

    void add_consumer(std::optional<splitter::settings> how, consumer added);
    void pass_on(cut& to, std::shared_ptr<const detail::line_run> run);
    bool takes(consumer& each, std::size_t bytes);
    std::shared_ptr<detail::line_run> new_run(std::size_t size) const;
    void split(cut& by, std::string_view bytes);
    void finish(cut& of);
    void check_limit();

    loop::engine& loop_;
    const stream_origin origin_;
    std::optional<capture_buffer> capture_;
    std::optional<std::uint64_t> at_most_;  // of capture()
    base::callback<void(std::uint64_t)> exceeded_;
    std::vector<cut> cuts_;
    std::map<std::shared_ptr<target>, loop::time_point> written_;
    std::shared_ptr<line_hub> hub_;
    struct {
        std::shared_ptr<stream_relay> to;  // null: the stream stays on this machine
        when_full full = when_full::block;
    } relay_;
    std::shared_ptr<run_pool> pool_;
    const std::size_t most_over_;
    bool uses_hub_ = false;
    std::weak_ptr<stream_reader> reader_;
    std::error_code error_;
};

}  // namespace cohort::output
