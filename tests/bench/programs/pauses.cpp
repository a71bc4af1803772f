// SPDX-License-Identifier: BSL-1.0
// Lives until a signal ends it.
#include <unistd.h>

int main() {
    for (;;)
        ::pause();
}
