// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"

#include <cohort/detail/cbor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Values as CBOR, one after the other. A function walk(wire, value) names the members of a value
// once, with their limits: with a wire_writer it writes them, with a wire_reader it reads them.
// Both ends of a link are the same build, so the bytes have no names and no versions.
namespace cohort::multihost {

/// A text or a list that only the size of its message bounds.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// Says why bytes can't be read. Never leaves this room: read_whole() makes a value of it.
class unreadable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Writes values. The limits are for the reader; of a longer list the end is written.
class wire_writer {
public:
    static constexpr bool reads = false;
    template <class T>
    using of = const T;

    void flag(bool value) { to_.boolean(value); }
    template <std::integral N>
    void number(N value, std::type_identity_t<N> = 0, std::type_identity_t<N> = 0) {
        if constexpr (std::is_signed_v<N>)
            to_.integer(value);
        else
            to_.unsigned_integer(value);
    }
    void index(int value) { to_.integer(value); }
    void real(double value, double, double) { to_.floating(value); }
    template <class E>
        requires std::is_enum_v<E>
    void one_of(E value, E) {
        to_.integer(static_cast<int>(value));
    }
    void span(duration value) { to_.integer(std::chrono::nanoseconds(value).count()); }
    void moment(far_clock value) { span(value); }
    void text(std::string_view value, std::size_t = unlimited) {
        to_.binary(std::as_bytes(std::span(value)));
    }
    void word(std::string_view value) { text(value); }
    void bytes(std::span<const std::byte> value, std::size_t = unlimited) { to_.binary(value); }
    void shared(const std::shared_ptr<const std::string>& value);

    template <class T, class Each>
    void maybe(const std::optional<T>& value, Each each) {
        to_.boolean(value.has_value());
        if (value)
            each(*value);
    }
    template <class T, class Each>
    void list(const std::vector<T>& values, std::size_t most, Each each) {
        const auto all = std::span(values);
        const auto written = all.last(std::min(most, all.size()));
        to_.array(written.size());
        for (const auto& value : written)
            each(value);
    }
    template <class T, class Each>
    void set(const std::set<T>& values, Each each) {
        to_.array(values.size());
        for (const auto& value : values)
            each(value);
    }
    template <class Key, class T, class Each>
    void map(const std::map<Key, T>& values, Each each) {
        to_.array(values.size());
        for (const auto& [key, value] : values)
            each(key, value);
    }
    template <class... T, class Each>
    void either(const std::variant<T...>& value, Each each) {
        to_.unsigned_integer(value.index());
        std::visit(each, value);
    }

    std::vector<std::byte> take() noexcept { return to_.take(); }

private:
    detail::cbor_writer to_;
    std::map<const std::string*, std::size_t> shared_;  // the texts that were written, numbered
};

/// Reads what a wire_writer has written, or anything else. Takes memory for what came only, never
/// for a length that was claimed. Throws unreadable or codec_error.
class wire_reader {
public:
    static constexpr bool reads = true;
    template <class T>
    using of = T;

    /// @param bytes    must outlive the reader
    /// @param workers  how many there are: an index is less
    explicit wire_reader(std::span<const std::byte> bytes, int workers = 0) noexcept
        : from_(bytes), workers_(workers) {}

    void flag(bool& value) { value = from_.boolean(); }
    template <std::integral N>
    void number(N& value, std::type_identity_t<N> lowest = std::numeric_limits<N>::min(),
                std::type_identity_t<N> highest = std::numeric_limits<N>::max()) {
        const auto found = from_.integer_as<N>();
        if (found < lowest || found > highest)
            throw unreadable(fmt::format("{} is not within {} and {}", +found, +lowest, +highest));
        value = found;
    }
    void index(int& value) {
        if (workers_ <= 0)
            throw unreadable("there are no workers");
        number(value, 0, workers_ - 1);
    }
    void real(double& value, double lowest, double highest);
    template <class E>
        requires std::is_enum_v<E>
    void one_of(E& value, E last) {
        int number = 0;
        this->number(number, 0, static_cast<int>(last));
        value = static_cast<E>(number);
    }
    /// Never negative.
    void span(duration& value);
    void moment(far_clock& value);
    void text(std::string& value, std::size_t most = unlimited);
    /// A text without a NUL, which would end it early in a system call.
    void word(std::string& value);
    void bytes(std::vector<std::byte>& value, std::size_t most = unlimited);
    void shared(std::shared_ptr<const std::string>& value);

    template <class T, class Each>
    void maybe(std::optional<T>& value, Each each) {
        value.reset();
        if (from_.boolean())
            each(value.emplace());
    }
    template <class T, class Each>
    void list(std::vector<T>& values, std::size_t most, Each each) {
        values.clear();
        for (auto left = size_of_list(most); left > 0; --left)
            each(values.emplace_back());
    }
    template <class T, class Each>
    void set(std::set<T>& values, Each each) {
        values.clear();
        for (auto left = size_of_list(unlimited); left > 0; --left) {
            T value{};
            each(value);
            values.insert(std::move(value));
        }
    }
    template <class Key, class T, class Each>
    void map(std::map<Key, T>& values, Each each) {
        values.clear();
        for (auto left = size_of_list(unlimited); left > 0; --left) {
            Key key{};
            T value{};
            each(key, value);
            values.insert_or_assign(std::move(key), std::move(value));
        }
    }
    template <class... T, class Each>
    void either(std::variant<T...>& value, Each each) {
        using variant = std::variant<T...>;
        using maker = variant (*)();
        static constexpr maker make[] = {[] { return variant(std::in_place_type<T>); }...};
        std::size_t which = 0;
        number(which, 0, sizeof...(T) - 1);
        value = make[which]();
        std::visit(each, value);
    }

    int workers() const noexcept { return workers_; }
    /// Leaves out all that is left.
    void skip() noexcept { from_ = detail::cbor_reader({}); }
    void end() const { from_.end(); }

private:
    std::size_t size_of_list(std::size_t most);

    detail::cbor_reader from_;
    int workers_;
    std::vector<std::shared_ptr<const std::string>> shared_;  // those that came, by their numbers
};

template <class T>
concept wire = std::derived_from<T, wire_writer> || std::derived_from<T, wire_reader>;

/// What was read, or why it could not be.
template <class T>
struct read_value {
    std::optional<T> value;
    std::string problem;  // a sentence; empty if there is a value

    explicit operator bool() const noexcept { return value.has_value(); }
    T& operator*() noexcept { return *value; }
    T* operator->() noexcept { return &*value; }
};

/// Calls `read(reader, value)` and requires that nothing is left then.
/// @param what  for the sentence: "the end of a worker"
template <class T, class Reader, class Read>
read_value<T> read_whole(const char* what, Reader from, Read read) {
    read_value<T> result;
    try {
        T value{};
        read(from, value);
        from.end();
        result.value.emplace(std::move(value));
    } catch (const std::bad_alloc&) {  // its size is the other end's choice
        throw;
    } catch (const std::exception& e) {
        result.problem = fmt::format("{} can't be read: {}", what, e.what());
    }
    return result;
}

}  // namespace cohort::multihost
