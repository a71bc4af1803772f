// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/array_codec.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/detail/queue_value.hpp>

#include <cstddef>
#include <utility>

// How handles of queues travel.
namespace cohort COHORT_ASIO_NAMESPACE {

template <class T>
class queue;
template <class T>
class queue_reader;
template <class T>
class queue_writer;

}  // namespace cohort COHORT_ASIO_NAMESPACE

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Makes public handles of inner ones, and gives the inner one of a public handle.
struct queue_access {
    template <class T>
    static queue_reader<T> reader(queue_end end) noexcept {
        return queue_reader<T>(std::move(end));
    }
    template <class T>
    static queue_writer<T> writer(queue_end end) noexcept {
        return queue_writer<T>(std::move(end));
    }
    template <class T>
    static queue<T> both(queue_ends ends) noexcept {
        return queue<T>(std::move(ends));
    }
    template <class Handle>
    static const queue_end& end(const Handle& handle) noexcept {
        return handle.end_;
    }
    template <class T>
    static const queue_ends& ends(const queue<T>& handle) noexcept {
        return handle.ends_;
    }
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

namespace cohort::detail::inline v0_1 {

template <class T>
queue_description queue_description_of(std::size_t capacity = 0) {
    queue_description made;
    made.type = type_hash_of<T>();
    made.capacity = capacity;
    made.carries = packet_carries<T>;
    made.make = &target_of<T>;
    return made;
}

template <class T>
struct codec<queue_reader<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const queue_reader<T>& value) {
        queue_access::end(value).write(to);
    }
    static queue_reader<T> read(decoder& from) {
        return queue_access::reader<T>(
            queue_end::read(from, queue_side::reader, queue_description_of<T>()));
    }
};
template <class T>
struct codec<queue_writer<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const queue_writer<T>& value) {
        queue_access::end(value).write(to);
    }
    static queue_writer<T> read(decoder& from) {
        return queue_access::writer<T>(
            queue_end::read(from, queue_side::writer, queue_description_of<T>()));
    }
};
template <class T>
struct codec<queue<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const queue<T>& value) { queue_access::ends(value).write(to); }
    static queue<T> read(decoder& from) {
        return queue_access::both<T>(queue_ends::read(from, queue_description_of<T>()));
    }
};

}  // namespace cohort::detail::inline v0_1

namespace cohort COHORT_ASIO_NAMESPACE {

/// For the user's own types that contain ends of queues and travel by nlohmann-json.
template <class Json, class T>
void to_json(Json& to, const queue_reader<T>& reader) {
    detail::handle_to_json(to, reader);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, queue_reader<T>& reader) {
    detail::handle_from_json(from, reader);
}
/// For the user's own types that contain writing ends of queues.
template <class Json, class T>
void to_json(Json& to, const queue_writer<T>& writer) {
    detail::handle_to_json(to, writer);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, queue_writer<T>& writer) {
    detail::handle_from_json(from, writer);
}
/// For the user's own types that contain queues. from_json assigns to an existing queue, because a
/// queue has no empty state.
template <class Json, class T>
void to_json(Json& to, const queue<T>& both) {
    detail::handle_to_json(to, both);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, queue<T>& both) {
    detail::handle_from_json(from, both);
}

/// For where_it_runs::share.
template <class T>
detail::shared_item item_to_share(const queue_reader<T>& reader) {
    return detail::used(detail::queue_access::end(reader)).item("queue_reader");
}
/// For where_it_runs::share.
template <class T>
detail::shared_item item_to_share(const queue_writer<T>& writer) {
    return detail::used(detail::queue_access::end(writer)).item("queue_writer");
}

}  // namespace cohort COHORT_ASIO_NAMESPACE
