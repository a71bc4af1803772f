// SPDX-License-Identifier: BSL-1.0
// The stand-in's streams. All work is done at once. What counts is what the driver refuses while a
// stream captures a graph, as the documentation of cuStreamBeginCapture,
// cuThreadExchangeStreamCaptureMode and cuStreamIsCapturing says.
#include "standin.hpp"

#include <cstring>
#include <map>
#include <thread>
#include <utility>

using namespace standin;

namespace {

using stream = void*;
enum mode { global, thread_local_only, relaxed };

struct capture {
    std::thread::id of;
    int how;
    bool is_valid = true;
};

std::map<stream, bool> known;        // whether the stream is non-blocking
std::map<stream, capture> captures;  // by the stream that captures
thread_local int mode_here = global;

bool is_non_blocking(stream used) {
    const auto found = known.find(used);
    return found != known.end() && found->second;
}

bool heeds(const capture& c) {
    if (mode_here == relaxed)
        return false;
    const bool is_own = c.of == std::this_thread::get_id();
    return is_own ? c.how != relaxed : mode_here == global && c.how == global;
}

/// Makes the captures invalid that `is_broken` names. @return `error` if there is one
template <class Which>
int break_captures(int error, Which is_broken) {
    bool breaks = false;
    for (auto& [by, c] : captures)
        if (is_broken(by, c)) {
            c.is_valid = false;
            breaks = true;
        }
    return breaks ? error : static_cast<int>(success);
}

/// What work of a stream returns that is done at once, and so can't go into a graph.
int use(stream used) {
    if (used == nullptr)
        return break_captures(capture_implicit,
                              [](stream by, const capture&) { return !is_non_blocking(by); });
    return break_captures(capture_unsupported,
                          [used](stream by, const capture&) { return by == used; });
}

}  // namespace

int standin::heed_captures() {
    return break_captures(capture_unsupported, [](stream, const capture& c) { return heeds(c); });
}

int standin::streams() { return static_cast<int>(known.size()); }

EXPORTED int cuStreamCreate(stream* made, unsigned flags) {
    BEGIN_IN_CONTEXT("cuStreamCreate");
    HEED_CAPTURES;
    known[*made = new char] = flags == 1;
    return success;
}
EXPORTED int cuStreamDestroy_v2(stream gone) {
    BEGIN_IN_CONTEXT("cuStreamDestroy_v2");
    if (known.erase(gone) == 0)
        return invalid_value;
    delete static_cast<char*>(gone);
    return success;
}
EXPORTED int cuStreamBeginCapture_v2(stream by, int how) {
    BEGIN_IN_CONTEXT("cuStreamBeginCapture_v2");
    if (known.count(by) == 0 || captures.count(by) != 0)
        return invalid_value;
    captures[by] = {std::this_thread::get_id(), how};
    return success;
}
EXPORTED int cuStreamEndCapture(stream by, void** graph) {
    BEGIN_IN_CONTEXT("cuStreamEndCapture");
    const auto found = captures.find(by);
    if (found == captures.end())
        return invalid_value;
    const bool is_valid = found->second.is_valid;
    captures.erase(found);
    *graph = nullptr;
    return is_valid ? success : capture_invalidated;
}
EXPORTED int cuStreamIsCapturing(stream which, int* status) {
    BEGIN_IN_CONTEXT("cuStreamIsCapturing");
    if (which == nullptr)
        for (const auto& [at, c] : captures)
            if (!is_non_blocking(at))
                return capture_implicit;
    const auto found = captures.find(which);
    *status = found == captures.end() ? 0 : found->second.is_valid ? 1 : 2;
    return success;
}
EXPORTED int cuThreadExchangeStreamCaptureMode(int* how) {
    BEGIN("cuThreadExchangeStreamCaptureMode");
    std::swap(*how, mode_here);
    return success;
}

EXPORTED int cuCtxSynchronize() {
    BEGIN_IN_CONTEXT("cuCtxSynchronize");
    return break_captures(capture_unsupported, [](stream, const capture&) { return true; });
}
EXPORTED int cuStreamSynchronize(stream which) {
    BEGIN_IN_CONTEXT("cuStreamSynchronize");
    HEED_CAPTURES;
    return use(which);
}

EXPORTED int cuMemsetD8Async(address at, unsigned char value, std::size_t bytes, stream by) {
    BEGIN_IN_CONTEXT("cuMemsetD8Async");
    if (const int error = use(by); error != success)
        return error;
    std::memset(pointer(at), value, bytes);
    return success;
}
EXPORTED int cuMemcpyHtoDAsync_v2(address to, const void* from, std::size_t bytes, stream by) {
    BEGIN_IN_CONTEXT("cuMemcpyHtoDAsync_v2");
    if (const int error = use(by); error != success)
        return error;
    std::memcpy(pointer(to), from, bytes);
    return success;
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, address from, std::size_t bytes, stream by) {
    BEGIN_IN_CONTEXT("cuMemcpyDtoHAsync_v2");
    if (const int error = use(by); error != success)
        return error;
    std::memcpy(to, pointer(from), bytes);
    return success;
}
EXPORTED int cuMemcpyDtoDAsync_v2(address to, address from, std::size_t bytes, stream by) {
    BEGIN_IN_CONTEXT("cuMemcpyDtoDAsync_v2");
    if (const int error = use(by); error != success)
        return error;
    std::memcpy(pointer(to), pointer(from), bytes);
    return success;
}
