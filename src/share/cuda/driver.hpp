// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

/// The driver of CUDA devices, libcuda.so.1, as far as it is used here. Its types and constants are
/// declared as the driver's binary interface has them, so that no cuda.h is needed.
namespace cohort::share::device::driver {

using result = int;  // CUresult: 0 is success
using context = void*;
using stream = void*;
using address = std::uint64_t;     // CUdeviceptr
using allocation = std::uint64_t;  // CUmemGenericAllocationHandle
using uuid = std::array<std::byte, 16>;
/// CUipcMemHandle
struct ipc_handle {
    std::array<std::byte, 64> bytes;
};

inline constexpr result invalid_value = 1;
inline constexpr result out_of_memory = 2;
inline constexpr result not_initialized = 3;
inline constexpr result no_device = 100;
inline constexpr result invalid_device = 101;
inline constexpr result invalid_context = 201;
inline constexpr result context_is_destroyed = 709;
inline constexpr result not_permitted = 800;
inline constexpr result not_supported = 801;
inline constexpr result capture_unsupported = 900;
inline constexpr result capture_implicit = 906;

struct location {
    int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
    int id = 0;    // of the device
};
/// CUmemAllocationProp
struct allocation_properties {
    int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED
    int handle_types = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    location where;
    void* only_on_windows = nullptr;
    std::array<std::byte, 8> flags{};
};
/// CUmemAccessDesc
struct access {
    location where;
    int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};
inline constexpr int posix_descriptor = 1;  // as allocation_properties::handle_types
inline constexpr int smallest_granularity = 0;
inline constexpr int device_of_pointer = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr unsigned lazy_peer_access = 1;
inline constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr int relaxed = 2;            // CU_STREAM_CAPTURE_MODE_RELAXED

/// The shared library of the driver.
class library {
public:
    /// Loads it: the file that COHORT_CUDA_LIBRARY names, else libcuda.so.1.
    library();
    /// The address of a function; null is noted in trouble().
    void* find(const char* symbol);
    /// Why the driver can't be used; empty: it can.
    const std::string& trouble() const noexcept { return trouble_; }

private:
    void* loaded_ = nullptr;  // never unloaded
    std::string name_;
    std::string trouble_;
};

/// A function of the driver.
template <class... Parameters>
class call {
public:
    call(library& from, const char* symbol)
        : symbol_(symbol), function_(reinterpret_cast<function>(from.find(symbol))) {}

    result operator()(Parameters... values) const { return function_(values...); }
    const char* symbol() const noexcept { return symbol_; }

private:
    using function = result (*)(Parameters...);
    const char* symbol_;
    function function_;
};

/// All functions of the driver that are used.
struct calls {
    library from;  // first: the others are found in it

    call<unsigned> init{from, "cuInit"};
    call<result, const char**> error_name{from, "cuGetErrorName"};
    call<int*> device_count{from, "cuDeviceGetCount"};
    call<int*, int> device{from, "cuDeviceGet"};
    call<uuid*, int> device_uuid{from, "cuDeviceGetUuid_v2"};
    call<std::size_t*, int> device_bytes{from, "cuDeviceTotalMem_v2"};
    call<int*, int, int> can_access_peer{from, "cuDeviceCanAccessPeer"};

    call<context*, int> retain_context{from, "cuDevicePrimaryCtxRetain"};
    call<int, unsigned*, int*> context_state{from, "cuDevicePrimaryCtxGetState"};
    call<context> push_context{from, "cuCtxPushCurrent_v2"};
    call<context*> pop_context{from, "cuCtxPopCurrent_v2"};
    call<> synchronize_context{from, "cuCtxSynchronize"};
    call<stream*, unsigned> make_stream{from, "cuStreamCreate"};
    call<stream> destroy_stream{from, "cuStreamDestroy_v2"};
    call<stream> synchronize_stream{from, "cuStreamSynchronize"};
    call<stream, int*> is_capturing{from, "cuStreamIsCapturing"};
    call<int*> exchange_capture_mode{from, "cuThreadExchangeStreamCaptureMode"};

    call<std::size_t*, const allocation_properties*, int> granularity{
        from, "cuMemGetAllocationGranularity"};
    call<allocation*, std::size_t, const allocation_properties*, unsigned long long> create{
        from, "cuMemCreate"};
    call<allocation> release{from, "cuMemRelease"};
    call<void*, allocation, int, unsigned long long> export_descriptor{
        from, "cuMemExportToShareableHandle"};
    call<allocation*, void*, int> import_descriptor{from, "cuMemImportFromShareableHandle"};
    call<allocation_properties*, allocation> properties{from,
                                                        "cuMemGetAllocationPropertiesFromHandle"};
    call<allocation*, void*> retain_allocation{from, "cuMemRetainAllocationHandle"};

    call<address*, std::size_t, std::size_t, address, unsigned long long> reserve{
        from, "cuMemAddressReserve"};
    call<address, std::size_t> free_address{from, "cuMemAddressFree"};
    call<address, std::size_t, std::size_t, allocation, unsigned long long> map{from, "cuMemMap"};
    call<address, std::size_t> unmap{from, "cuMemUnmap"};
    call<address, std::size_t, const access*, std::size_t> set_access{from, "cuMemSetAccess"};

    call<void*, int, address> pointer_attribute{from, "cuPointerGetAttribute"};
    call<address*, std::size_t*, address> address_range{from, "cuMemGetAddressRange_v2"};
    call<ipc_handle*, address> get_ipc_handle{from, "cuIpcGetMemHandle"};
    call<address*, ipc_handle, unsigned> open_ipc_handle{from, "cuIpcOpenMemHandle_v2"};
    call<address> close_ipc_handle{from, "cuIpcCloseMemHandle"};

    call<address, unsigned char, std::size_t, stream> set_bytes{from, "cuMemsetD8Async"};
    call<address, const void*, std::size_t, stream> copy_from_host{from, "cuMemcpyHtoDAsync_v2"};
    call<void*, address, std::size_t, stream> copy_to_host{from, "cuMemcpyDtoHAsync_v2"};
    call<address, address, std::size_t, stream> copy_on_device{from, "cuMemcpyDtoDAsync_v2"};
};

/// The functions, looked up at the first use. Nothing of the driver is called for that.
const calls& loaded();

}  // namespace cohort::share::device::driver
