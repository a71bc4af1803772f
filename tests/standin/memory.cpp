// SPDX-License-Identifier: BSL-1.0
// The stand-in's memory of devices: handles, mappings and descriptors of memfds.
#include "standin.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace standin;

namespace {

struct memory {      // known to this process
    int fd, device;  // as this process counts
    std::size_t bytes;
    int references;  // handles and mappings
    int handle_types = 1;
};
struct range {
    std::size_t bytes;
    handle mapped;   // 0: only reserved
    bool is_simple;  // of cuMemAlloc or opened, not of cuMemMap
};

std::map<handle, memory> memories;
std::map<address, range> ranges;
handle last_handle = 0;

int make_memory(std::size_t bytes, int device, handle& made) {
    if (device < 0 || device >= devices())
        return invalid_device;
    if (bytes > device_bytes)
        return out_of_memory;
    // The guard of the tests looks for this name among the mappings.
    const auto name = "cohort-array-device-" + std::to_string(physical(device));
    const int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
        return out_of_memory;
    memories[made = ++last_handle] = {fd, device, bytes, 1};
    return success;
}

/// Takes over a descriptor that came from elsewhere.
int know_memory(int fd, handle& made) {
    char name[128] = "";
    struct stat file {};
    const auto link = "/proc/self/fd/" + std::to_string(fd);
    int known = 0;
    if (::readlink(link.c_str(), name, sizeof name - 1) < 0 || ::fstat(fd, &file) != 0 ||
        std::sscanf(name, "/memfd:cohort-array-device-%d", &known) != 1)
        return invalid_value;
    const int device = number_of(known);
    if (device < 0)
        return invalid_device;
    const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return out_of_memory;
    memories[made = ++last_handle] = {own, device, static_cast<std::size_t>(file.st_size), 1};
    return success;
}

int drop(handle which) {
    const auto found = memories.find(which);
    if (found == memories.end())
        return invalid_value;
    if (--found->second.references == 0) {
        ::close(found->second.fd);
        memories.erase(found);
    }
    return success;
}

std::map<address, range>::iterator around(address at) {
    auto next = ranges.upper_bound(at);
    if (next == ranges.begin())
        return ranges.end();
    --next;
    return at - next->first < next->second.bytes ? next : ranges.end();
}

/// Maps memory as cuMemAlloc and cuIpcOpenMemHandle do: to be used at once.
int map_simply(handle which, address* at) {
    const auto& found = memories.at(which);
    void* const mapped =
        ::mmap(nullptr, found.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, found.fd, 0);
    if (mapped == MAP_FAILED)
        return out_of_memory;
    *at = reinterpret_cast<address>(mapped);
    ranges[*at] = {found.bytes, which, true};
    return success;
}

int unmap_simply(address at) {
    const auto found = ranges.find(at);
    if (found == ranges.end() || !found->second.is_simple)
        return invalid_value;
    ::munmap(pointer(at), found->second.bytes);
    const handle which = found->second.mapped;
    ranges.erase(found);
    return drop(which);
}

struct ipc_handle {
    pid_t pid;
    int fd;
    char rest[56];
};

}  // namespace

// For the tests: how many handles, mappings, reserved ranges of addresses and streams there are.
EXPORTED int standin_held() {
    const std::lock_guard guard(standin::mutex);
    int held = static_cast<int>(ranges.size()) + streams();
    for (const auto& [which, known] : memories)
        held += known.references;
    return held;
}

EXPORTED int cuMemGetAllocationGranularity(std::size_t* bytes, const properties*, int) {
    BEGIN("cuMemGetAllocationGranularity");
    *bytes = granularity;
    return success;
}
EXPORTED int cuMemCreate(handle* made, std::size_t bytes, const properties* wanted,
                         unsigned long long) {
    BEGIN("cuMemCreate");
    HEED_CAPTURES;
    if (bytes == 0 || bytes % granularity != 0 || wanted->type != 1 || wanted->where.type != 1 ||
        (wanted->handle_types & ~1) != 0)
        return invalid_value;
    const int error = make_memory(bytes, wanted->where.id, *made);
    if (error == success)
        memories[*made].handle_types = wanted->handle_types;
    return error;
}
EXPORTED int cuMemRelease(handle which) {
    BEGIN("cuMemRelease");
    return drop(which);
}
EXPORTED int cuMemExportToShareableHandle(void* to, handle which, int type, unsigned long long) {
    BEGIN("cuMemExportToShareableHandle");
    if (type != 1 || memories.count(which) == 0 || memories[which].handle_types != 1)
        return invalid_value;
    const int fd = ::dup(memories[which].fd);  // to be inherited, in the worst case
    std::memcpy(to, &fd, sizeof fd);
    return fd < 0 ? out_of_memory : success;
}
EXPORTED int cuMemImportFromShareableHandle(handle* made, void* descriptor, int type) {
    BEGIN("cuMemImportFromShareableHandle");
    return type == 1
               ? know_memory(static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor)), *made)
               : invalid_value;
}
EXPORTED int cuMemGetAllocationPropertiesFromHandle(properties* found, handle which) {
    BEGIN("cuMemGetAllocationPropertiesFromHandle");
    if (memories.count(which) == 0)
        return invalid_value;
    *found = {1, memories[which].handle_types, {1, memories[which].device}, nullptr, {}};
    return success;
}
EXPORTED int cuMemRetainAllocationHandle(handle* found, void* at) {
    BEGIN("cuMemRetainAllocationHandle");
    const auto mapped = around(reinterpret_cast<address>(at));
    if (mapped == ranges.end() || mapped->second.is_simple || mapped->second.mapped == 0)
        return invalid_value;
    ++memories[*found = mapped->second.mapped].references;
    return success;
}
EXPORTED int cuMemAddressReserve(address* made, std::size_t bytes, std::size_t, address,
                                 unsigned long long) {
    BEGIN("cuMemAddressReserve");
    HEED_CAPTURES;
    if (bytes == 0 || bytes % granularity != 0)
        return invalid_value;
    void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return out_of_memory;
    ranges[*made = reinterpret_cast<address>(at)] = {bytes, 0, false};
    return success;
}
EXPORTED int cuMemAddressFree(address at, std::size_t bytes) {
    BEGIN("cuMemAddressFree");
    HEED_CAPTURES;
    const auto found = ranges.find(at);
    if (found == ranges.end() || found->second.bytes != bytes || found->second.mapped != 0)
        return invalid_value;
    ranges.erase(found);
    return ::munmap(pointer(at), bytes) == 0 ? success : invalid_value;
}
EXPORTED int cuMemMap(address at, std::size_t bytes, std::size_t offset, handle which,
                      unsigned long long) {
    BEGIN("cuMemMap");
    HEED_CAPTURES;
    const auto found = ranges.find(at);
    if (found == ranges.end() || memories.count(which) == 0 || offset != 0 ||
        found->second.mapped != 0 || found->second.bytes != bytes || bytes > memories[which].bytes)
        return invalid_value;
    // Nobody may use it before cuMemSetAccess.
    if (::mmap(pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memories[which].fd, 0) ==
        MAP_FAILED)
        return out_of_memory;
    ++memories[which].references;
    found->second.mapped = which;
    return success;
}
EXPORTED int cuMemUnmap(address at, std::size_t bytes) {
    BEGIN("cuMemUnmap");
    HEED_CAPTURES;
    const auto found = ranges.find(at);
    if (found == ranges.end() || found->second.bytes != bytes || found->second.mapped == 0)
        return invalid_value;
    ::mmap(pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    const handle which = found->second.mapped;
    found->second.mapped = 0;
    return drop(which);
}
EXPORTED int cuMemSetAccess(address at, std::size_t bytes, const access_wanted* wanted,
                            std::size_t) {
    BEGIN("cuMemSetAccess");
    HEED_CAPTURES;
    const auto found = ranges.find(at);
    if (found == ranges.end() || found->second.mapped == 0 || found->second.is_simple ||
        wanted->where.id < 0 || wanted->where.id >= devices())
        return invalid_value;
    return ::mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE) == 0 ? success : invalid_value;
}

EXPORTED int cuMemAlloc_v2(address* made, std::size_t bytes) {
    BEGIN_IN_CONTEXT("cuMemAlloc_v2");
    HEED_CAPTURES;
    handle which = 0;
    if (const int error = make_memory(bytes, current_device(), which); error != success)
        return error;
    return map_simply(which, made);
}
EXPORTED int cuMemFree_v2(address at) {
    BEGIN_IN_CONTEXT("cuMemFree_v2");
    HEED_CAPTURES;
    return unmap_simply(at);
}
EXPORTED int cuPointerGetAttribute(void* to, int attribute, address at) {
    BEGIN("cuPointerGetAttribute");
    const auto found = around(at);
    if (attribute != 9 || found == ranges.end() || found->second.mapped == 0)
        return invalid_value;
    std::memcpy(to, &memories[found->second.mapped].device, sizeof(int));
    return success;
}
EXPORTED int cuMemGetAddressRange_v2(address* begin_of, std::size_t* bytes, address at) {
    BEGIN_IN_CONTEXT("cuMemGetAddressRange_v2");
    const auto found = around(at);
    if (found == ranges.end())
        return invalid_value;
    *begin_of = found->first;
    *bytes = found->second.bytes;
    return success;
}
EXPORTED int cuIpcGetMemHandle(ipc_handle* made, address at) {
    BEGIN_IN_CONTEXT("cuIpcGetMemHandle");
    const auto found = ranges.find(at);
    if (found == ranges.end() || !found->second.is_simple)
        return invalid_value;
    *made = {::getpid(), memories[found->second.mapped].fd, {}};
    return success;
}
EXPORTED int cuIpcOpenMemHandle_v2(address* made, ipc_handle from, unsigned) {
    BEGIN_IN_CONTEXT("cuIpcOpenMemHandle_v2");
    HEED_CAPTURES;
    if (from.pid == ::getpid())
        return invalid_context;
    const auto path = "/proc/" + std::to_string(from.pid) + "/fd/" + std::to_string(from.fd);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    handle which = 0;
    const int error = fd < 0 ? static_cast<int>(invalid_value) : know_memory(fd, which);
    ::close(fd);
    return error != success ? error : map_simply(which, made);
}
EXPORTED int cuIpcCloseMemHandle(address at) {
    BEGIN_IN_CONTEXT("cuIpcCloseMemHandle");
    HEED_CAPTURES;
    return unmap_simply(at);
}
