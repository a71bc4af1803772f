// SPDX-License-Identifier: BSL-1.0
#include "bare_worker.hpp"
#include "protocol/registry/registry.hpp"
#include "reporter.hpp"

#include <cohort/worker.hpp>

#include <cstdlib>

namespace worker_test {

using namespace cohort;
using namespace bare_worker;

namespace {

void check_raised(const end& e, const std::string& type, const std::string& message) {
    CHECK(e.exited_with(1));
    CHECK(e.contents().kind == protocol::payload_kind::raised);
    CHECK(e.contents().entered_at);
    REQUIRE(e.contents().finished_at);
    CHECK(*e.contents().finished_at >= *e.contents().entered_at);
    CHECK(e.error().type == type);
    CHECK(e.error().message == message);
    CHECK(e.error().trace == type + ": " + message);
}

}  // namespace

TEST_CASE("worker: a function gets its arguments and its result is recorded") {
    const auto arguments = detail::encode_arguments(std::tuple(std::string("hello"), 5)).cbor;
    const end e = run_worker(key_named("greet"), &arguments);
    CHECK(e.exited_with(0));
    CHECK(e.contents().kind == protocol::payload_kind::returned);
    CHECK(e.result<std::string>() == "hello 3 5");
    REQUIRE(e.contents().finished_at);
    CHECK(*e.contents().finished_at >= *e.contents().entered_at);
    CHECK(*e.contents().finished_at <= std::chrono::steady_clock::now());
}

TEST_CASE("worker: it knows its host, and its place among the workers there") {
    CHECK(run_worker("place").result<std::string>() == "1 of 2 on ''");
    ::setenv("COHORT_HOST", "node03", 1);
    CHECK(run_worker("place").result<std::string>() == "1 of 2 on 'node03'");
    ::unsetenv("COHORT_HOST");
}

TEST_CASE("worker: arguments of many megabytes arrive") {
    const auto arguments = detail::encode_arguments(std::tuple(std::string(5 << 20, 'x'), 5)).cbor;
    CHECK(run_worker(key_named("greet"), &arguments).result<std::string>().size() > (5 << 20));
}

TEST_CASE("worker: a void function returns without a type") {
    const end e = run_worker("nothing");
    CHECK(e.exited_with(0));
    CHECK(e.contents().kind == protocol::payload_kind::returned);
    CHECK(e.contents().result_type.empty());
    CHECK(e.contents().result_cbor.empty());
}

TEST_CASE("worker: a function that is named only in a branch that is never taken runs") {
    CHECK(run_worker("deep_in_a_branch").result<int>() == 6);
}

TEST_CASE("worker: an exception is recorded with its type and message, and the exit code is 1") {
    check_raised(run_worker("raise_error"), "(anonymous namespace)::broken_pipe",
                 "worker 3 is \xEF\xBF\xBD upset");
}

TEST_CASE("worker: whatever is thrown is recorded") {
    check_raised(run_worker("throw_int"), "int", "a thrown number: 42");
    check_raised(run_worker("throw_text"), "char const*", "a literal");
    check_raised(run_worker("throw_string"), "std::string", "a string");
    check_raised(run_worker("throw_strange"), "(anonymous namespace)::strange",
                 "unknown exception");
}

TEST_CASE("worker: exit inside the function leaves `entered` and nothing more") {
    const end e = run_worker("leave");
    CHECK(e.exited_with(7));
    CHECK(e.contents().entered_at);
    CHECK(!e.contents().finished_at);
    CHECK(e.contents().kind == protocol::payload_kind::none);
}

TEST_CASE("worker: pthread_exit in the function is no exception") {
#ifdef __SANITIZE_ADDRESS__
    // Now and then its exit code is LeakSanitizer's, which loses a main thread that has left.
    return cohort::test::skip("LeakSanitizer does not follow the end of the main thread");
#endif
    const end e = run_worker("end_thread");
    CHECK(e.exited_with(0));
    CHECK(e.contents().kind == protocol::payload_kind::none);
}

TEST_CASE("worker: a huge error keeps its head and its tail") {
    const end e = run_worker("huge_error");
    CHECK(e.exited_with(1));
    CHECK(e.error().message.starts_with("BEGIN"));
    CHECK(e.error().message.ends_with("END"));
    CHECK(e.control.size() <= protocol::payload_offset + protocol::record_limit);
}

TEST_CASE("worker: a result that cannot be written is a recorded error") {
    const end e = run_worker("too_large");
    CHECK(e.exited_with(1));
    CHECK(e.contents().kind == protocol::payload_kind::raised);
    CHECK(contains(e.error().message, "bytes) could not be written: File too large"));
}

TEST_CASE("worker: an error that cannot be written is written shorter") {
    const end e = run_worker("too_large_error");
    CHECK(e.exited_with(1));
    CHECK(e.control.size() <= 4096);
    CHECK(e.error().type == "std::runtime_error");
    CHECK(e.error().message.starts_with("BEGIN"));
    CHECK(e.error().message.ends_with("END"));
}

TEST_CASE("worker: a function that closes every descriptor harms nobody") {
    const end e = run_worker("drop_control");
    CHECK(e.exited_with(1));
    CHECK(e.contents().entered_at);
    CHECK(e.contents().kind == protocol::payload_kind::none);
}

TEST_CASE("worker: a function that is not in the program is a recorded error") {
    auto key = key_named("nothing");
    key.offset += 8;
    const end e = run_worker(key);
    CHECK(e.exited_with(1));
    CHECK(e.error().type == "cohort::worker::unknown_function");
    CHECK(contains(e.error().message, "the function of this worker is not in the program"));
    key = key_named("nothing");
    key.module[0] ^= 1;
    CHECK(run_worker(key).error().type == "cohort::worker::unknown_function");
}

TEST_CASE("worker: torn arguments are a recorded error that says so") {
    auto arguments = detail::encode_arguments(std::tuple(std::string("hello"), 5)).cbor;
    arguments.resize(4);
    const end e = run_worker(key_named("greet"), &arguments);
    check_raised(e, "cohort::codec_error", e.error().message);
    CHECK(contains(e.error().message, "the arguments could not be decoded: not valid CBOR"));
    const auto wrong =
        detail::encode_arguments(std::tuple(std::string("hello"), std::string("5"))).cbor;
    CHECK(run_worker(key_named("greet"), &wrong).error().message ==
          "argument 2 of 2 (int) could not be decoded: an integer is expected, string was found");
}

TEST_CASE("worker: it knows its place and its name, and its control file is closed by exec") {
    const std::string said = run_worker("facts").result<std::string>();
    CHECK(said ==
          "3 3 8 " + std::to_string(::getpid()) + " active a_rather_long_n marked reached cloexec");
}

TEST_CASE("worker: a second worker_main returns at once") {
    CHECK(run_worker("again").exited_with(0));
}

TEST_CASE("worker: worker_main returns at once in a process that is no worker") {
    CHECK(run_program({}).output == "main goes on: 0 0\n");
    CHECK(run_program({"--help"}).output == "main goes on: 0 0\n");
    CHECK(run_program({"--cohort"}).output == "main goes on: 0 0\n");
    CHECK(run_program({"x", "--cohort-worker=60:1"}).output == "main goes on: 0 0\n");
}

TEST_CASE("worker: a mark given by hand is refused with one clear line") {
    for (const std::string argument :
         {"--cohort-worker=60:1", "--cohort-worker=", "--cohort-worker=1:1", "--cohort-worker=-1:1",
          "--cohort-worker=x"}) {
        CAPTURE(argument);
        const end e = run_program({argument});
        CHECK(e.exited_with(127));
        CHECK(e.output ==
              "a_rather_long_name: " + argument +
                  " is how the cohort library starts its worker processes: it cannot be given by "
                  "hand (this descriptor is not that control file)\n");
    }
}

TEST_CASE("worker: a mark with another inode, another magic or another kind of file is refused") {
    const auto control = control_of(key_named("nothing"), -1);
    std::error_code error;
    const ino_t inode = base::inode(control.get(), error);
    CHECK(run_program({protocol::to_string({control_number, inode + 1})}, control.get())
              .exited_with(127));

    const auto blank = memory_file(std::vector<std::byte>(512));
    CHECK(run_program({mark_of(blank.get())}, blank.get()).exited_with(127));

    const base::unique_fd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    CHECK(run_program({mark_of(device.get())}, device.get()).exited_with(127));
}

TEST_CASE("worker: a worker whose main skips worker_main knows that it is a worker") {
    const auto control = control_of(key_named("nothing"), -1);
    ::setenv("BARE_WORKER_SKIPS_WORKER_MAIN", "1", 1);
    const end worker = run_program({mark_of(control.get())}, control.get());
    const end ordinary = run_program({"x"});
    const end by_hand = run_program({"--cohort-worker=60:1"});
    ::unsetenv("BARE_WORKER_SKIPS_WORKER_MAIN");
    CHECK(worker.output == "marked unreached\n");
    CHECK(ordinary.output == "unmarked unreached\n");
    CHECK(by_hand.output == "unmarked unreached\n");
    CHECK(!worker.contents().entered_at);
}

TEST_CASE("worker: the mark is found behind a program name of any length") {
    const auto control = control_of(key_named("nothing"), -1);
    const auto mark = mark_of(control.get());
    ::setenv("BARE_WORKER_SKIPS_WORKER_MAIN", "1", 1);
    // Where the file is read in parts of 4 KiB, its end is before, on and after the end of one.
    for (std::size_t length : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 8191UL, 100'000UL})
        for (std::size_t before : {0UL, 1UL, mark.size(), mark.size() + 1, mark.size() + 2}) {
            if (before > length)
                continue;
            const std::string name(length - before, 'n');
            CAPTURE(name.size());
            CHECK(run_program({mark}, control.get(), -1, name).output == "marked unreached\n");
            CHECK(run_program({"x", mark}, control.get(), -1, name).output ==
                  "unmarked unreached\n");
            CHECK(run_program({mark + std::string(100'000, '1')}, control.get(), -1, name).output ==
                  "unmarked unreached\n");
        }
    ::unsetenv("BARE_WORKER_SKIPS_WORKER_MAIN");
}

TEST_CASE("worker: the mark is written and read back, and no other text is a mark") {
    CHECK(protocol::to_string({60, 123456}) == "--cohort-worker=60:123456");
    CHECK(protocol::parse_mark("--cohort-worker=60:18446744073709551615") ==
          protocol::mark{60, 18446744073709551615U});
    for (const char* bad : {"", "--cohort-worker", "--cohort-worker=", "--cohort-worker=1",
                            "--cohort-worker=1:", "--cohort-worker=:1", "--cohort-worker=1:2x",
                            "--cohort-worker=+1:2", "--cohort-worker=99999999999:1",
                            "--cohort-worker=1:99999999999999999999", " 1:2"}) {
        CAPTURE(bad);
        CHECK(!protocol::parse_mark(bad));
    }
}

TEST_CASE("worker: this_worker outside a worker says so") {
    CHECK(!this_worker::active());
    CHECK(this_worker::index() == -1);
    CHECK(this_worker::size() == 0);
    CHECK(this_worker::local_index() == -1);
    CHECK(this_worker::local_size() == 0);
    CHECK(this_worker::host().empty());
    CHECK(this_worker::parent() == 0);
    CHECK(!this_worker::stop_token().stop_possible());
    CHECK(!protocol::is_worker_process());
    CHECK(!protocol::worker_main_reached());
}

namespace {
void first(int) {}
int second(int index, int) { return index; }
}  // namespace

TEST_CASE("worker: a function is found by its own key only") {
    const auto* one = function<first>().plan().function;
    const auto* two = function<second>(1).plan().function;
    CHECK(protocol::find(protocol::key_of(*one)) == one);
    CHECK(protocol::find(protocol::key_of(*two)) == two);
    CHECK(!(protocol::key_of(*one) == protocol::key_of(*two)));
    auto key = protocol::key_of(*one);
    CHECK(key.module_length > 0);
    key.offset ^= 1;
    CHECK(protocol::find(key) == nullptr);
    key = protocol::key_of(*one);
    key.module_length -= 1;
    CHECK(protocol::find(key) == nullptr);
    CHECK(protocol::find({}) == nullptr);
}

TEST_CASE("worker: a function's key is the same in another run of the program") {
    CHECK(key_named("greet") == key_named("greet"));
    CHECK(!(key_named("greet") == key_named("nothing")));
}

}  // namespace worker_test
