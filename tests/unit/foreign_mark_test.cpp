// SPDX-License-Identifier: BSL-1.0
// Programs that are given a mark by somebody who may not give them orders. Each case makes a copy
// of programs/bare_worker, since only a copy may be given a set-user-ID bit.
#include "bare_worker.hpp"
#include "base/sys/socket.hpp"
#include "copied_program.hpp"
#include "sanitizers.hpp"

#include <optional>
#include <string>

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace foreign_mark_test {

using namespace cohort;
using namespace bare_worker;
using cohort::test::copied_program;

namespace {

constexpr auto nobody = copied_program::nobody;
constexpr unsigned other_group = 65'533;

copied_program copy_of_worker(mode_t mode, uid_t owner = 0, gid_t group = 0) {
    return {program, mode, owner, group};
}

struct user {
    unsigned id = 0;
    unsigned group = 0;
};
constexpr user root{};
constexpr user stranger{nobody, nobody};

enum class given { control_file, connection, accepted_connection };

/// Who has made what the program is given, who executes it, and how.
struct attempt {
    user made_by;
    user executed_by;
    std::optional<unsigned> effective = std::nullopt;  // user, if not the real one
    given what = given::control_file;
    int number = control_number;
    bool no_new_privileges = false;
};

base::unique_fd accepted_connection() {
    sockaddr_un address{};  // the kernel chooses a name
    address.sun_family = AF_UNIX;
    const auto size = static_cast<socklen_t>(sizeof address.sun_family);
    const base::unique_fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    socklen_t length = sizeof address;
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    const base::unique_fd other(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(other.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    return base::unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

/// The other end of a connection is closed: a server that takes its own ends at once, with 1.
base::unique_fd make(given what) {
    if (what == given::control_file)
        return control_of(key_named("nothing"), -1);
    if (what == given::accepted_connection)
        return accepted_connection();
    base::unique_fd one;
    base::unique_fd other;
    REQUIRE(!base::make_socket_pair(one, other));
    return one;
}

base::unique_fd make_as(const user& who, given what) {
    ::setfsgid(who.group);
    ::setfsuid(who.id);
    auto made = make(what);
    ::setfsuid(0);
    ::setfsgid(0);
    return made;
}

bool become(const attempt& how) {
    const auto& [id, group] = how.executed_by;
    return ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 &&
           ::setresuid(id, how.effective.value_or(id), id) == 0 &&
           (!how.no_new_privileges || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

[[noreturn]] void execute_as(const attempt& how, const char* path, int output, int file,
                             char* const* argv) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::dup2(file, how.number);
    ::alarm(60);
    if (become(how))
        ::execv(path, argv);
    ::_exit(126);
}

end tried(const std::string& path, const attempt& how) {
    const auto made = make_as(how.made_by, how.what);
    const base::unique_fd file(duplicated_high(made.get()));
    const auto output = memory_file({});
    std::error_code error;
    const auto names = how.what == given::control_file ? protocol::mark::what::worker
                                                       : protocol::mark::what::server;
    auto mark = protocol::to_string({how.number, base::inode(file.get(), error), names});
    char name[] = "copy";
    char* argv[] = {name, mark.data(), nullptr};
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
        execute_as(how, path.c_str(), output.get(), file.get(), argv);
    end e;
    REQUIRE(::waitpid(child, &e.status, 0) == child);
    e.output = read_file(output.get());
    if (how.what == given::control_file)
        e.control = read_file(file.get());
    return e;
}

void check_refused(const copied_program& copy, const attempt& how) {
    const auto e = tried(copy.path(), how);
    CHECK(e.exited_with(127));
    CHECK(contains(e.output, "it cannot be given by hand"));
    if (how.what == given::control_file)
        CHECK(!e.contents().entered_at);
}

void check_taken(const copied_program& copy, const attempt& how) {
    const auto e = tried(copy.path(), how);
    CAPTURE(e.output);
    CAPTURE(e.status);
    CHECK(e.exited_with(how.what == given::control_file ? 0 : 1));
    if (how.what == given::control_file)
        CHECK(e.contents().entered_at);
    else
        CHECK(e.output == "");
}

}  // namespace

TEST_CASE("foreign mark: a set-user-ID program runs no function for its caller") {
    if (!copied_program::can_have_rights())
        return;
    for (const auto what : {given::control_file, given::connection}) {
        check_refused(copy_of_worker(04755), {stranger, stranger, {}, what});
        check_refused(copy_of_worker(04755, nobody, nobody), {root, root, {}, what});
    }
}

TEST_CASE("foreign mark: a set-group-ID program runs no function for its caller") {
    if (!copied_program::can_have_rights())
        return;
    for (const auto what : {given::control_file, given::connection}) {
        check_refused(copy_of_worker(02755), {stranger, stranger, {}, what});
        check_refused(copy_of_worker(02755, 0, other_group), {root, root, {}, what});
    }
}

TEST_CASE("foreign mark: a program with capabilities runs no function for its caller") {
    if (!copied_program::can_have_rights())
        return;
    const auto copy = copy_of_worker(0755);
    if (!copy.give_capability())
        return cohort::test::skip("the file system of temporary files holds no capabilities");
    for (const auto what : {given::control_file, given::connection})
        check_refused(copy, {stranger, stranger, {}, what});
}

TEST_CASE("foreign mark: a program takes no orders that another user has made") {
    if (!copied_program::can_have_rights())
        return;
    const auto copy = copy_of_worker(0755);
    for (const auto what : {given::control_file, given::connection}) {
        check_refused(copy, {stranger, root, {}, what});
        check_taken(copy, {stranger, stranger, {}, what});
        check_taken(copy, {root, root, {}, what});
        check_taken(copy, {root, stranger, {}, what});  // handed on by root
    }
}

TEST_CASE("foreign mark: an application of root may be another user for a while") {
    if (!copied_program::can_have_rights())
        return;
    if (cohort::test::under_asan)
        return cohort::test::skip(
            "LeakSanitizer can't look at a process whose effective user is another one");
    const auto copy = copy_of_worker(0755);
    for (const auto what : {given::control_file, given::connection}) {
        check_taken(copy, {{nobody, 0}, root, nobody, what});
        check_refused(copy, {root, root, nobody, what});
    }
}

TEST_CASE(
    "foreign mark: orders are accepted where no_new_privs keeps the program from gaining rights") {
    if (!copied_program::can_have_rights())
        return;
    for (const mode_t mode : {04755U, 02755U})
        check_taken(copy_of_worker(mode),
                    {stranger, stranger, {}, given::control_file, control_number, true});
    const auto copy = copy_of_worker(0755);
    if (copy.give_capability())
        check_taken(copy, {stranger, stranger, {}, given::control_file, control_number, true});
}

TEST_CASE("foreign mark: a connection to a named socket is refused") {
    const auto made = accepted_connection();
    std::error_code error;
    const auto mark = protocol::to_string(
        {control_number, base::inode(made.get(), error), protocol::mark::what::server});
    CHECK(run_program({mark}, made.get()).exited_with(127));
}

TEST_CASE("foreign mark: a standard stream is no control file") {
    const auto control = control_of(key_named("nothing"), -1);
    std::error_code error;
    const auto inode = base::inode(control.get(), error);
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        CAPTURE(number);
        CHECK(!protocol::parse_mark(protocol::to_string({number, inode})));
    }
    CHECK(protocol::parse_mark(protocol::to_string({3, inode})));
}

}  // namespace foreign_mark_test
