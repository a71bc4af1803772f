// SPDX-License-Identifier: BSL-1.0
// A group whose workers and whose user are on different machines.
#include "output/streams/group_streams.hpp"

#include <limits>
#include <memory>
#include <utility>

namespace cohort::output {

void group_streams::relay_to(std::shared_ptr<stream_relay> relay) {
    relay_ = std::move(relay);
    hub_.reset();
}

std::uint64_t group_streams::lost_bytes(int index, stream from) const {
    return hub_ ? hub_->lost_bytes(index, at(index).start.attempt, from) : 0;
}

std::shared_ptr<far_reader> group_streams::expect(int index, stream from,
                                                  far_reader::consumed done) {
    worker& of = at(index);
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    if ((from == stream::out ? routes.out : routes.err).what != stream_route::kind::piped)
        return nullptr;
    auto reader = std::make_shared<far_reader>(loop(), std::move(done));
    reader->set_sinks([weak = weak_from_this(), index, from,
                       to = std::weak_ptr(reader)](int attempt) -> std::shared_ptr<byte_sink> {
        const auto self = weak.lock();
        if (!self)
            return nullptr;
        self->at(index).start.attempt = attempt;
        // What comes over the sinks' room is bounded where it is kept.
        constexpr auto any = std::numeric_limits<std::size_t>::max();
        const auto sinks = self->make_sinks({index, attempt, from}, any);
        sinks->set_reader(to);
        return sinks;
    });
    (from == stream::out ? of.out_reader : of.err_reader) = reader;
    return reader;
}

std::shared_ptr<far_writer> group_streams::feed_by(int index, far_writer::sender send) {
    if (!feeds(index))
        return nullptr;
    auto feed = std::make_shared<far_writer>(std::move(send));
    at(index).feed = feed;
    go_on_feeding(index);
    return feed;
}

}  // namespace cohort::output
