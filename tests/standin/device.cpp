// SPDX-License-Identifier: BSL-1.0
// A stand-in for libcuda.so.1: two devices whose memory is memfds, so that the host can read it
// too. As in the driver, memory lives while a handle, a mapping or a descriptor of it does, in any
// process, and nothing works in a forked copy of a process that has called cuInit.
//   COHORT_STANDIN_DEVICES=N     sees so many devices, at most 2
//   COHORT_STANDIN_VISIBLE=1,0   sees only these, numbered from 0 in this order, as by
//                                CUDA_VISIBLE_DEVICES; each keeps its UUID
//   COHORT_STANDIN_NO_PEER=1     no device may use the memory of another
//   COHORT_STANDIN_FAIL=NAME:N   the N-th call of NAME from now on fails, counted from 1;
//                                NAME:N:E with the error E
#include "standin.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace standin {

std::mutex mutex;

namespace {

std::map<std::string, int> counts;
std::string failing;  // the value of COHORT_STANDIN_FAIL that `left` belongs to
int left = 0;         // calls until that fails
pid_t initialised_in = 0;
thread_local std::vector<void*> contexts;
struct primary_context {
    bool active = false;
} primary[2];

/// The devices that this process sees.
std::vector<int> visible() {
    const char* const count = std::getenv("COHORT_STANDIN_DEVICES");
    const int all = count != nullptr ? std::clamp(std::atoi(count), 0, 2) : 2;
    const char* const chosen = std::getenv("COHORT_STANDIN_VISIBLE");
    std::istringstream numbers(chosen != nullptr ? chosen : "0,1");
    std::vector<int> seen;
    for (std::string number; std::getline(numbers, number, ',');)
        if (const int device = std::atoi(number.c_str()); device >= 0 && device < all)
            seen.push_back(device);
    return seen;
}

}  // namespace

int devices() { return static_cast<int>(visible().size()); }

int physical(int device) { return visible().at(static_cast<std::size_t>(device)); }

int number_of(int physical_device) {
    const auto seen = visible();
    const auto found = std::find(seen.begin(), seen.end(), physical_device);
    return found == seen.end() ? -1 : static_cast<int>(found - seen.begin());
}

/// What a call returns before it does anything; success: it goes on.
int begin(const char* name) {
    if (initialised_in != ::getpid() && (initialised_in != 0 || std::strcmp(name, "cuInit") != 0))
        return not_initialized;
    const std::lock_guard guard(mutex);
    ++counts[name];
    const char* const wanted = std::getenv("COHORT_STANDIN_FAIL");
    if (wanted == nullptr || *wanted == '\0') {
        failing.clear();
        return success;
    }
    char symbol[64] = "";
    int nth = 0;
    int error = unknown;
    std::sscanf(wanted, "%63[^:]:%d:%d", symbol, &nth, &error);
    if (failing != wanted) {
        failing = wanted;
        left = nth;
    }
    return std::strcmp(symbol, name) == 0 && --left == 0 ? error : success;
}

int check_context() {
    if (contexts.empty())
        return invalid_context;
    return static_cast<primary_context*>(contexts.back())->active ? success : context_is_destroyed;
}

int current_device() {
    return static_cast<int>(static_cast<primary_context*>(contexts.back()) - primary);
}

}  // namespace standin

using namespace standin;

// For the tests: how often a call was made, and how many contexts this thread has pushed.
EXPORTED int standin_count(const char* name) {
    const std::lock_guard guard(mutex);
    return counts[name];
}
EXPORTED int standin_contexts() { return static_cast<int>(contexts.size()); }

EXPORTED int cuGetErrorName(int error, const char** name) {
    static const std::map<int, const char*> names{
        {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
        {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
        {no_device, "CUDA_ERROR_NO_DEVICE"},
        {invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
        {not_supported, "CUDA_ERROR_NOT_SUPPORTED"},
        {capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
        {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
        {context_is_destroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
        {unknown, "CUDA_ERROR_UNKNOWN"}};
    const auto found = names.find(error);
    *name = found == names.end() ? nullptr : found->second;
    return found == names.end() ? invalid_value : success;
}

EXPORTED int cuInit(unsigned) {
    if (const int error = begin("cuInit"); error != success)
        return error;
    if (devices() == 0)
        return no_device;
    initialised_in = ::getpid();
    return success;
}
EXPORTED int cuDeviceGetCount(int* count) {
    BEGIN("cuDeviceGetCount");
    *count = devices();
    return success;
}
EXPORTED int cuDeviceGet(int* device, int ordinal) {
    BEGIN("cuDeviceGet");
    *device = ordinal;
    return ordinal >= 0 && ordinal < devices() ? success : invalid_device;
}
EXPORTED int cuDeviceGetUuid_v2(std::array<unsigned char, 16>* uuid, int device) {
    BEGIN("cuDeviceGetUuid_v2");
    uuid->fill(static_cast<unsigned char>(physical(device) + 1));
    return success;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
    BEGIN("cuDeviceTotalMem_v2");
    *bytes = device_bytes;
    return success;
}
EXPORTED int cuDeviceCanAccessPeer(int* can, int, int) {
    BEGIN("cuDeviceCanAccessPeer");
    *can = std::getenv("COHORT_STANDIN_NO_PEER") == nullptr;
    return success;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
    BEGIN("cuDevicePrimaryCtxRetain");
    primary[device].active = true;
    *context = &primary[device];
    return success;
}
EXPORTED int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    BEGIN("cuDevicePrimaryCtxGetState");
    *flags = 0;
    *active = primary[device].active;
    return success;
}
EXPORTED int cuDevicePrimaryCtxReset_v2(int device) {
    BEGIN("cuDevicePrimaryCtxReset_v2");
    primary[device].active = false;
    return success;
}
EXPORTED int cuCtxPushCurrent_v2(void* context) {
    BEGIN("cuCtxPushCurrent_v2");
    contexts.push_back(context);
    return success;
}
EXPORTED int cuCtxPopCurrent_v2(void** context) {
    BEGIN("cuCtxPopCurrent_v2");
    if (contexts.empty())
        return invalid_context;
    *context = contexts.back();
    contexts.pop_back();
    return success;
}
