// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "arguments.hpp"

namespace bench {

// Each section measures one thing in this process and prints one line of JSON. Its arguments:

/// peer= program= waves= at_once= ticker=0|1 memory=<MiB> descriptors=
void short_lived(const arguments&);

/// peer=cohort|raw program= workers= idle_ms=
void scale(const arguments&);

/// peer=cohort|epoll program= workers= runs=   one worker: after its exit; more: after a failure
void latency(const arguments&);

/// peer=spawn|fork|forkserver workers= runs= memory=<MiB>   from request to inside the function
void methods(const arguments&);

/// peer=host|worker throws= depth=   a throw that is caught
void throws(const arguments&);

}  // namespace bench
