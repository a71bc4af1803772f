// SPDX-License-Identifier: BSL-1.0
// The end of a group: what it waits for, and in which order it comes.
#include "group/lifecycle/ending.hpp"

#include <doctest/doctest.h>

#include <ostream>

namespace cohort::groups {
std::ostream& operator<<(std::ostream& out, ending_step s) { return out << to_string(s); }
}  // namespace cohort::groups

namespace ending_test {

using cohort::groups::ending;
using cohort::groups::ending_step;
using cohort::groups::reason;

TEST_CASE("ending: a group waits for its workers from the beginning") {
    ending end;
    CHECK(end.is_held(reason::workers));
    CHECK(end.next() == ending_step::wait);
    end.release(reason::workers);
    CHECK_FALSE(end.is_held(reason::workers));
    CHECK(end.next() == ending_step::report);
}

TEST_CASE("ending: each reason holds the report back until it is released as often as held") {
    for (const auto why : {reason::unreaped, reason::outcomes}) {
        ending end;
        end.hold(why);
        end.hold(why);
        end.release(reason::workers);
        CHECK(end.next() == ending_step::wait);
        end.release(why);
        CHECK(end.next() == ending_step::wait);
        end.release(why);
        CHECK(end.next() == ending_step::report);
    }
}

TEST_CASE("ending: the cgroup is ended when all else is over, and once") {
    ending end;
    end.has_cgroup();
    end.hold(reason::outcomes);
    CHECK(end.next() == ending_step::wait);
    end.release(reason::workers);
    CHECK(end.next() == ending_step::wait);
    end.release(reason::outcomes);
    CHECK(end.next() == ending_step::end_cgroup);
    CHECK(end.next() == ending_step::wait);
    end.release(reason::cgroup);
    CHECK(end.next() == ending_step::report);
}

TEST_CASE("ending: a reason that comes while the cgroup is ended is waited for too") {
    ending end;
    end.has_cgroup();
    end.release(reason::workers);
    REQUIRE(end.next() == ending_step::end_cgroup);
    end.hold(reason::unreaped);
    end.release(reason::cgroup);
    CHECK(end.next() == ending_step::wait);
    end.release(reason::unreaped);
    CHECK(end.next() == ending_step::report);
}

TEST_CASE("ending: the report comes once, whatever happens later") {
    ending end;
    end.release(reason::workers);
    CHECK(end.next() == ending_step::report);
    end.release(reason::workers);
    end.hold(reason::outcomes);
    end.release(reason::outcomes);
    CHECK(end.next() == ending_step::wait);
}

TEST_CASE("ending: a release of what is not held changes nothing") {
    ending end;
    end.release(reason::unreaped);
    end.hold(reason::unreaped);
    end.release(reason::workers);
    CHECK(end.next() == ending_step::wait);
}

TEST_CASE("ending: giving up is remembered, and holds nothing back") {
    ending end;
    CHECK_FALSE(end.gave_up());
    end.give_up();
    CHECK(end.gave_up());
    end.release(reason::workers);
    CHECK(end.next() == ending_step::report);
}

}  // namespace ending_test
