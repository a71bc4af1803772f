// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/session.hpp"

#include "base/files/settings.hpp"
#include "base/sys/leaked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <unistd.h>

namespace cohort::share::device {
namespace {

bool is_of_capture(driver::result error) noexcept {
    return error == driver::capture_unsupported || error == driver::capture_implicit;
}

[[noreturn]] void refuse_for_capture(const operation& with) {
    base::refuse(with.what(), EBUSY,
                 "a stream captures a graph, and its device or stream can't be waited for before "
                 "the capture has ended; send_after() another stream");
}

}  // namespace

own_stream::own_stream(const operation& with) : calls_(with.calls()) {
    with.require(calls_.make_stream, &made_, driver::non_blocking);
}

own_stream::~own_stream() { (void)calls_.destroy_stream(made_); }

bool default_stream_is_blocked(const operation& with) {
    int status = 0;
    const auto error = with.calls().is_capturing(nullptr, &status);
    if (error != 0 && error != driver::capture_implicit)
        refuse(with.what(), with.calls().is_capturing.symbol(), error);
    return error != 0;
}

void await_stream(const operation& with, driver::stream stream) {
    int status = 0;
    const auto error = with.calls().is_capturing(stream, &status);
    if (is_of_capture(error) || (error == 0 && status != 0))
        refuse_for_capture(with);
    if (error != 0)
        refuse(with.what(), with.calls().is_capturing.symbol(), error);
    with.require(with.calls().synchronize_stream, stream);
}

void await_device(const operation& with) {
    // The call below would make such a capture invalid.
    if (default_stream_is_blocked(with))
        refuse_for_capture(with);
    const auto error = with.calls().synchronize_context();
    if (is_of_capture(error))
        refuse_for_capture(with);
    if (error != 0)
        refuse(with.what(), with.calls().synchronize_context.symbol(), error);
}

namespace {

constexpr auto forked = "Cannot re-initialize CUDA in forked subprocess: the driver works in no "
                        "forked copy of a process that has used it; use start_method::spawn or "
                        "start_method::forkserver";

const pid_t loaded_in = ::getpid();

std::string name_of(driver::result error) {
    const char* name = nullptr;
    if (driver::loaded().error_name(error, &name) != 0 || name == nullptr)
        return fmt::format("error {}", error);
    return name;
}

int errno_of(driver::result error) noexcept {
    switch (error) {
    case driver::invalid_value:
        return EINVAL;
    case driver::out_of_memory:
        return ENOMEM;
    case driver::no_device:
    case driver::invalid_device:
        return ENODEV;
    case driver::not_permitted:
        return EPERM;
    case driver::not_supported:
        return ENOTSUP;
    default:
        return EIO;
    }
}

}  // namespace

void refuse(const std::string& what, const char* symbol, driver::result error, const char* why) {
    base::refuse(what, errno_of(error), fmt::format("{}: {}{}", symbol, name_of(error), why));
}

std::string array_of(std::size_t bytes, int device) {
    return fmt::format("shared array of {} on CUDA device {}", base::size_text(bytes), device);
}

session::session() : calls_(driver::loaded()), trouble_(calls_.from.trouble()) {
    if (trouble_.empty())
        trouble_ = initialise();
}

std::string session::initialise() {
    const auto failure = [](const auto& call, driver::result error) {
        return fmt::format("{}: {}", call.symbol(), name_of(error));
    };
    if (const auto error = calls_.init(0); error != 0) {
        const auto why = failure(calls_.init, error);
        // The program itself may have used the driver before the fork.
        const bool may_be_the_fork = error == driver::not_initialized && ::getpid() != loaded_in;
        return may_be_the_fork ? fmt::format("{}: {}", why, forked) : why;
    }
    int count = 0;
    if (const auto error = calls_.device_count(&count); error != 0)
        return failure(calls_.device_count, error);
    if (count <= 0)
        return "the driver sees no device";
    devices_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        auto& made = devices_[static_cast<std::size_t>(i)];
        if (const auto error = calls_.device(&made.handle, i); error != 0)
            return failure(calls_.device, error);
        if (const auto error = calls_.device_uuid(&made.uuid, made.handle); error != 0)
            return failure(calls_.device_uuid, error);
    }
    return "";
}

const session& session::only() {
    return base::leaked([] { return session(); });
}

const session& session::open() {
    const auto& opened = only();
    if (!opened.trouble_.empty())
        base::refuse("CUDA", ENODEV, opened.trouble_);
    if (!opened.mark_.same_process())
        base::refuse("CUDA", ENODEV, forked);
    return opened;
}

bool session::is_usable() {
    const auto& opened = only();
    return opened.trouble_.empty() && opened.mark_.same_process();
}

std::string session::why_not_loaded() { return driver::loaded().from.trouble(); }

int session::handle_of(int device) const {
    if (device < 0 || static_cast<std::size_t>(device) >= devices_.size())
        base::refuse(fmt::format("CUDA device {}", device), ENODEV,
                     fmt::format("this process sees {}, numbered from 0", devices_.size()));
    return devices_[static_cast<std::size_t>(device)].handle;
}

const driver::uuid& session::uuid_of(int device) const {
    (void)handle_of(device);
    return devices_[static_cast<std::size_t>(device)].uuid;
}

int session::device_with(const driver::uuid& wanted) const noexcept {
    const auto found = std::ranges::find(devices_, wanted, &device_facts::uuid);
    return found == devices_.end() ? -1 : static_cast<int>(found - devices_.begin());
}

bool session::is_active(int handle) const noexcept {
    unsigned flags = 0;
    int active = 1;
    return calls_.context_state(handle, &flags, &active) != 0 || active != 0;
}

driver::context session::context_of(int device, const std::string& what,
                                    driver::context but_not) const {
    const int handle = handle_of(device);
    const std::lock_guard guard(mutex_);
    auto& context = devices_[static_cast<std::size_t>(device)].context;
    if (context != nullptr && context != but_not && is_active(handle))
        return context;
    if (const auto error = calls_.retain_context(&context, handle); error != 0) {
        context = nullptr;
        refuse(what, calls_.retain_context.symbol(), error);
    }
    return context;
}

operation::operation(const session& in, int device, std::string what)
    : in_(in), device_(device), what_(std::move(what)), mode_(in.calls()) {
    const auto context = in_.context_of(device_, what_);
    const auto error = calls().push_context(context);
    if (error == driver::context_is_destroyed || error == driver::invalid_context)
        require(calls().push_context, in_.context_of(device_, what_, context));
    else if (error != 0)
        refuse(what_, calls().push_context.symbol(), error);
}

operation::~operation() {
    driver::context ours = nullptr;
    (void)calls().pop_context(&ours);
}

}  // namespace cohort::share::device
