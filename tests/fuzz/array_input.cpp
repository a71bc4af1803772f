// SPDX-License-Identifier: BSL-1.0
#include "array_input.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/shareable.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <random>

namespace cohort::fuzz {

using detail::decoder;
using detail::encoder;
using detail::memory_access;

namespace {

using number = detail::cbor_reader::integer_value;

struct triple {
    float x, y, z;
};
struct alignas(64) line {
    int of_a_cache[16];
};

template <class T>
element element_of() {
    return {sizeof(T), alignof(T), detail::dtype_of<T>()};
}

/// What array_base::write writes; the numbers can be any.
struct description {
    std::optional<number> file;
    number offset;
    std::vector<number> shape;
    std::vector<number> strides;
    std::string dtype;
};

std::vector<number> numbers(decoder& from) {
    std::vector<number> found(from.array());
    for (number& n : found)
        n = from.integer();
    return found;
}

std::optional<description> parsed(bytes cbor) {
    decoder from(cbor);
    description found;
    try {
        from.array(5);
        if (!from.take_null())
            found.file = from.integer();
        found.offset = from.integer();
        found.shape = numbers(from);
        found.strides = numbers(from);
        found.dtype = from.text();
    } catch (const std::exception&) {
        return std::nullopt;
    }
    return found;
}

void write(encoder& to, number n) {
    if (n.negative)
        to.integer(static_cast<std::int64_t>(~n.magnitude | std::uint64_t{1} << 63));
    else
        to.unsigned_integer(n.magnitude);
}

void write(encoder& to, const std::vector<number>& numbers) {
    to.array(numbers.size());
    for (const number n : numbers)
        write(to, n);
}

std::vector<std::byte> written(const description& from) {
    encoder to;
    to.array(5);
    if (from.file)
        write(to, *from.file);
    else
        to.null();
    write(to, from.offset);
    write(to, from.shape);
    write(to, from.strides);
    to.text(from.dtype);
    return to.take();
}

number number_of(std::int64_t value) {
    return {value < 0, static_cast<std::uint64_t>(value < 0 ? ~value : value)};
}

/// Small, at an edge, or a neighbour of what it was.
number odd_number(number was, std::minstd_rand& random) {
    constexpr auto highest = std::numeric_limits<std::int64_t>::max();
    switch (random() % 4) {
    case 0:
        return {was.negative, was.magnitude + (random() % 2 == 0 ? 1 : -1)};
    case 1:
        return {random() % 2 == 0, std::uint64_t{1} << random() % 64};
    case 2:
        return number_of(std::int64_t{-4} + static_cast<std::int64_t>(random() % 12));
    default:
        return number_of(random() % 2 == 0 ? highest : -highest - 1);
    }
}

void change_dimensions(description& of, std::minstd_rand& random) {
    auto& one = random() % 2 == 0 ? of.shape : of.strides;
    switch (random() % 4) {
    case 0:
        of.shape.insert(of.shape.begin(), number_of(1 + random() % 3));
        of.strides.insert(of.strides.begin(), odd_number({}, random));
        break;
    case 1:
        of.shape.resize(random() % 34, number_of(1));
        of.strides.resize(of.shape.size(), number_of(0));
        break;
    default:
        if (!one.empty())
            one[random() % one.size()] = odd_number(one[random() % one.size()], random);
    }
}

void change(description& of, std::minstd_rand& random) {
    switch (random() % 8) {
    case 0:
        of.file = random() % 8 == 0 ? std::nullopt : std::optional(number_of(random() % 4));
        break;
    case 1:
        of.offset = odd_number(of.offset, random);
        break;
    case 2:
        of.dtype = elements()[random() % elements().size()].dtype;
        break;
    default:
        change_dimensions(of, random);
    }
}

}  // namespace

const std::vector<element>& elements() {
    static const std::vector<element> all{element_of<std::uint8_t>(), element_of<float>(),
                                          element_of<double>(), element_of<triple>(),
                                          element_of<line>()};
    return all;
}

std::vector<detail::attachment> coming_along(bytes input,
                                             const std::vector<detail::attachment>& files) {
    std::vector<detail::attachment> found;
    for (auto digits = std::to_integer<unsigned>(input[0]) & 63U; digits != 0; digits >>= 2)
        if ((digits & 3) != 0)
            found.push_back(files[(digits & 3) - 1]);
    return found;
}

expected expected_by(bytes input) {
    const auto given = std::to_integer<unsigned>(input[1]);
    return {elements()[given / 2 % elements().size()],
            given % 2 == 0 ? memory_access::read_write : memory_access::read_only};
}

}  // namespace cohort::fuzz

using namespace cohort::fuzz;

/// Most changes of a byte leave no description: mostly a part is changed as a whole.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t limit, unsigned seed) {
    std::minstd_rand random(seed);
    const bytes input(reinterpret_cast<const std::byte*>(data), size);
    auto whole = size < head_size ? std::nullopt : parsed(input.subspan(head_size));
    if (random() % 4 == 0 || !whole)
        return LLVMFuzzerMutate(data, size, limit);
    if (random() % 4 == 0)
        data[random() % head_size] = static_cast<std::uint8_t>(random());
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
        change(*whole, random);
    const auto cbor = written(*whole);
    if (head_size + cbor.size() > limit)
        return LLVMFuzzerMutate(data, size, limit);
    std::ranges::transform(cbor, data + head_size,
                           [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    return head_size + cbor.size();
}
