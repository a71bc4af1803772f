// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the files of the stand-in have in common; see device.cpp. It checks no order of streams: all
// work is done when it is given, so nobody is seen to read too early who has forgotten to wait.
// Tests count the calls that wait. It runs no kernels and makes no graphs. What a driver does while
// kernels run is seen on a real one only: tests/integration/cuda_kernels_test.cpp.
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace standin {

using address = std::uint64_t;
using handle = std::uint64_t;

enum error {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    no_device = 100,
    invalid_device = 101,
    invalid_context = 201,
    context_is_destroyed = 709,
    not_supported = 801,
    capture_unsupported = 900,
    capture_invalidated = 901,
    capture_implicit = 906,
    unknown = 999
};

constexpr std::size_t granularity = std::size_t{2} << 20;
constexpr std::size_t device_bytes = std::size_t{1} << 30;

struct location {
    int type, id;
};
struct properties {
    int type, handle_types;
    location where;
    void* windows;
    unsigned char flags[8];
};
struct access_wanted {
    location where;
    int flags;
};
/// Locked by each call.
extern std::mutex mutex;
/// How many devices this process sees.
int devices();
/// Which of the two it is that this process sees by a number below devices().
int physical(int device);
/// The number by which this process sees one of the two; -1: it does not.
int number_of(int physical_device);
/// What a call returns before it does anything; success: it goes on.
int begin(const char* name);

/// What a call returns that needs a current context; success: this thread has one.
int check_context();
/// The device of this thread's current context, of which there is one.
int current_device();

/// What a call returns that CUDA calls potentially unsafe: not success if this thread has to heed a
/// capture of a graph, which is invalid then.
int heed_captures();
/// How many streams there are.
int streams();

inline char* pointer(address at) { return reinterpret_cast<char*>(at); }

}  // namespace standin

#define BEGIN(name)                                                                                \
    if (const int error = standin::begin(name); error != standin::success)                         \
        return error;                                                                              \
    const std::lock_guard guard(standin::mutex)
/// For calls that need a current context.
#define BEGIN_IN_CONTEXT(name)                                                                     \
    BEGIN(name);                                                                                   \
    if (const int error = standin::check_context(); error != standin::success)                     \
    return error
/// For calls that CUDA calls potentially unsafe during captures.
#define HEED_CAPTURES                                                                              \
    if (const int error = standin::heed_captures(); error != standin::success)                     \
    return error
#define EXPORTED extern "C" __attribute__((visibility("default")))
