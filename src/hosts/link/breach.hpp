// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort::multihost {

/// How the other end of a link broke the protocol. The first breach ends the link.
enum class breach {
    noise,            // so many bytes, and no greeting among them
    echo,             // our own greeting came back
    direction,        // a frame of our own came back
    header_checksum,  // the header is damaged, or is none
    body_checksum,
    length,      // of a frame: too short for a header, or larger than a frame may be
    newline,     // none at the end of a frame
    session,     // a frame of another link
    kind,        // of a frame: unknown, or not one that this end sends
    flags,       // unknown ones
    first,       // the first message is not the one that opens a link
    pieces,      // a piece of a message that does not follow the one before
    large,       // a message larger than this end takes
    body,        // a message's body has not the form that its kind has
    credit,      // more was sent than credit was given
    overcredit,  // more credit was given than there is
    order,       // a message about a part of a group that is not in a state for it
};

/// What stands after "it broke the protocol: ".
const char* to_string(breach b) noexcept;

}  // namespace cohort::multihost
