// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/work.hpp"

#include "base/files/settings.hpp"

#include <cerrno>

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

}  // namespace cohort::share::device
