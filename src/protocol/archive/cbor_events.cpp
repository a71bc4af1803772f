// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/cbor_events.hpp>

#include <cohort/errors.hpp>

#include <nlohmann/json.hpp>

#include <utility>

namespace cohort::detail::inline v0_1 {

cbor_events::~cbor_events() = default;

namespace {

using json = nlohmann::json;

/// Passes the events of nlohmann-json on, and ends the parse when the nesting is too deep.
class bounded_events final : public nlohmann::json_sax<json> {
public:
    explicit bounded_events(cbor_events& to) noexcept : to_(to) {}

    bool null() override { return to_.null(), true; }
    bool boolean(bool value) override { return to_.boolean(value), true; }
    bool number_integer(number_integer_t value) override { return to_.integer(value), true; }
    bool number_unsigned(number_unsigned_t value) override {
        return to_.unsigned_integer(value), true;
    }
    bool number_float(number_float_t value, const string_t&) override {
        return to_.floating(value), true;
    }
    bool string(string_t& value) override { return to_.string(std::move(value)), true; }
    bool binary(binary_t& value) override { return to_.binary(std::move(value)), true; }
    bool start_object(std::size_t) override { return open() && (to_.start_object(), true); }
    bool start_array(std::size_t) override { return open() && (to_.start_array(), true); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override { return to_.key(std::move(name)), true; }
    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& e) override {
        problem_ = e.what();
        return false;
    }

    const std::string& problem() const noexcept { return problem_; }

private:
    bool open() {
        if (depth_ == cbor_depth_limit) {
            problem_ = "nested more than " + std::to_string(cbor_depth_limit) + " deep";
            return false;
        }
        ++depth_;
        return true;
    }
    bool close() {
        --depth_;
        to_.end();
        return true;
    }

    cbor_events& to_;
    std::size_t depth_ = 0;
    std::string problem_;
};

}  // namespace

void read_cbor(std::span<const std::byte> bytes, cbor_events& to) {
    bounded_events events(to);
    const auto* first = reinterpret_cast<const char*>(bytes.data());
    bool whole = false;
    std::string thrown;
    try {
        whole =
            json::sax_parse(first, first + bytes.size(), &events, json::input_format_t::cbor, true);
    } catch (const json::exception& e) {
        thrown = e.what();
    }
    if (!whole)
        throw codec_error("not valid CBOR: " + (thrown.empty() ? events.problem() : thrown));
}

}  // namespace cohort::detail::inline v0_1
