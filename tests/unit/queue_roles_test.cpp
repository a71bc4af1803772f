// SPDX-License-Identifier: BSL-1.0
// Which end of a queue a process uses.
#include "share/queue/end.hpp"

#include <doctest/doctest.h>

namespace queue_roles_test {

using namespace cohort::share;

TEST_CASE("queue roles: until it is shared a process uses both ends, then its first use decides") {
    using answer = roles::answer;
    for (const bool reads : {true, false}) {
        const auto use = [reads](roles& r, bool same) {
            return reads == same ? r.read() : r.write();
        };
        roles made;
        CHECK(use(made, true) == answer::allowed);
        CHECK(use(made, false) == answer::allowed);
        made.share();
        CHECK(made.may_read());
        CHECK(made.may_write());
        CHECK(use(made, true) == answer::gives_up_other);
        CHECK(use(made, true) == answer::allowed);
        CHECK(use(made, false) == answer::refused);
        CHECK(made.may_read() == reads);
        CHECK(made.may_write() != reads);
        CHECK_FALSE(made.keep_both());

        roles keeps;
        CHECK(keeps.keep_both());
        keeps.share();
        CHECK(use(keeps, true) == answer::allowed);
        CHECK(use(keeps, false) == answer::allowed);
        CHECK(keeps.keep_both());
    }
}

}  // namespace queue_roles_test
