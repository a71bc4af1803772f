// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/sys/raw_call.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>

namespace cohort::start {

/// What comes with a message: its descriptor and its sender.
struct ancillary_data {
    int descriptor = -1;
    bool from_own_user = false;
};

/// The descriptor that comes with a message. If there are more, closes them.
inline int first_descriptor(const int* descriptors, unsigned long length) {
    const unsigned long count =
        length < sizeof(cmsghdr) ? 0 : (length - sizeof(cmsghdr)) / sizeof(int);
    for (unsigned long i = 1; i < count; ++i)
        base::raw_call(SYS_close, descriptors[i]);
    return count > 0 ? descriptors[0] : -1;
}

/// @param own_user  the user whose messages count
inline ancillary_data read_ancillary_data(const unsigned char* control, unsigned long length,
                                          unsigned own_user) {
    constexpr unsigned long unit = sizeof(long);
    ancillary_data found;
    for (unsigned long at = 0; at + sizeof(cmsghdr) <= length;) {
        const auto* header = reinterpret_cast<const cmsghdr*>(control + at);
        const void* data = control + at + sizeof(cmsghdr);
        if (header->cmsg_type == SCM_RIGHTS)
            found.descriptor = first_descriptor(static_cast<const int*>(data), header->cmsg_len);
        else if (header->cmsg_type == SCM_CREDENTIALS)
            found.from_own_user = static_cast<const ucred*>(data)->uid == own_user;
        if (header->cmsg_len < sizeof(cmsghdr))
            break;
        at += (header->cmsg_len + unit - 1) / unit * unit;
    }
    return found;
}

}  // namespace cohort::start
