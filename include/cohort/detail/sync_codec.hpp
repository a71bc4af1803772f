// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/array_codec.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/codec_core.hpp>
#include <cohort/detail/sync_handles.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

// How events, barriers and mutexes travel.
namespace cohort COHORT_ASIO_NAMESPACE {

class event;
class barrier;
class mutex;

}  // namespace cohort COHORT_ASIO_NAMESPACE

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Makes public handles of inner ones, and gives the inner one of a public handle.
struct sync_access {
    template <class Handle>
    static const auto& part(const Handle& of) noexcept {
        return of.handle_;
    }
    template <class Handle, class Part>
    static Handle make(Part part) noexcept {
        return Handle(std::move(part));
    }
};

template <class Handle>
concept sync_handle =
    std::same_as<Handle, event> || std::same_as<Handle, barrier> || std::same_as<Handle, mutex>;

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

namespace cohort::detail::inline v0_1 {

template <sync_handle Handle>
struct codec<Handle> {
    static constexpr bool carries = true;
    static void write(encoder& to, const Handle& value) { sync_access::part(value).write(to); }
    static Handle read(decoder& from) {
        using part = std::remove_cvref_t<decltype(sync_access::part(std::declval<Handle>()))>;
        return sync_access::make<Handle>(part::read(from));
    }
};

}  // namespace cohort::detail::inline v0_1

namespace cohort COHORT_ASIO_NAMESPACE {

/// For the user's own types that contain events, barriers or mutexes and travel by nlohmann-json.
/// A type that is read must have one already, which is replaced.
template <class Json, detail::sync_handle Handle>
void to_json(Json& to, const Handle& handle) {
    detail::handle_to_json(to, handle);
}
/// Reads what to_json wrote.
template <class Json, detail::sync_handle Handle>
void from_json(const Json& from, Handle& handle) {
    detail::handle_from_json(from, handle);
}

/// For where_it_runs::share.
template <std::same_as<event> Event>
detail::shared_item item_to_share(const Event& shared) {
    return detail::sync_access::part(shared).item();
}

}  // namespace cohort COHORT_ASIO_NAMESPACE
