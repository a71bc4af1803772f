// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/cbor.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/errors.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// A value on its way to another process.
struct encoded_value {
    std::vector<std::byte> cbor;
    std::vector<attachment> attachments;  // the CBOR names them by their index here
};

/// An end of a queue can't be passed because this process has given it up. Reaches the caller as it
/// is, not as a codec_error.
class COHORT_API given_up_end : public std::logic_error {
public:
    using std::logic_error::logic_error;
    ~given_up_end() override;
};

/// An end of a queue can't be passed because this process does not have it any more.
class COHORT_API gone_end : public sharing_error {
public:
    static constexpr const char* reason = "this process has closed that end of the queue";
    /// @param what  what can't be passed; comes before the reason, if it is not empty
    explicit gone_end(const std::string& what = {});
    ~gone_end() override;
};

/// The output of a codec: CBOR, and the descriptors that travel with it.
class encoder : public cbor_writer {
public:
    encoder() : attachments_(&own_) {}
    /// For a part of a value that is encoded on its own: its descriptors travel with the whole.
    explicit encoder(encoder& whole) : attachments_(whole.attachments_) {}
    encoder(const encoder&) = delete;
    encoder& operator=(const encoder&) = delete;

    /// Sends a descriptor with the value, once, however often it is attached.
    /// @return its index, to be written into the value
    std::size_t attach(const attachment& descriptor) {
        for (std::size_t i = 0; i < attachments_->size(); ++i)
            if ((*attachments_)[i] == descriptor)
                return i;
        attachments_->push_back(descriptor);
        return attachments_->size() - 1;
    }
    encoded_value finish() { return {take(), std::move(own_)}; }

private:
    std::vector<attachment> own_;
    std::vector<attachment>* attachments_;
};

/// The input of a codec.
class decoder : public cbor_reader {
public:
    /// @param attachments  the descriptors that came with the value; both must outlive the decoder
    explicit decoder(std::span<const std::byte> cbor,
                     std::span<const attachment> attachments = {}) noexcept
        : cbor_reader(cbor), attachments_(attachments) {}

    std::span<const attachment> attachments() const noexcept { return attachments_; }
    /// A descriptor by its index; null: none with this index came.
    attachment descriptor(std::uint64_t index) const noexcept {
        return index < attachments_.size() ? attachments_[index] : nullptr;
    }

private:
    std::span<const attachment> attachments_;
};

/// What the user's to_json and from_json are called for at present, on this thread; null: for
/// nothing that travels.
COHORT_API encoder*& current_encoder() noexcept;
COHORT_API decoder*& current_decoder() noexcept;

/// Sets one of these for the duration of a scope.
template <class T>
class current_scope {
public:
    current_scope(T*& current, T& now) noexcept
        : current_(current), before_(std::exchange(current, &now)) {}
    current_scope(const current_scope&) = delete;
    current_scope& operator=(const current_scope&) = delete;
    ~current_scope() { current_ = before_; }

private:
    T*& current_;
    T* const before_;
};

}  // namespace cohort::detail::inline v0_1
