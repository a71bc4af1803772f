// SPDX-License-Identifier: BSL-1.0
// Code that must not compile. The comment of each line is the beginning of the sentence that its
// user reads. See refused_code.py.
#include <cohort/command.hpp>
#include <cohort/dlpack.hpp>
#include <cohort/function.hpp>
#include <cohort/options.hpp>
#include <cohort/outcome.hpp>
#include <cohort/queue.hpp>
#include <cohort/shared_array.hpp>
#include <cohort/spawn.hpp>

#include <asio/awaitable.hpp>
#include <asio/system_executor.hpp>
#include <asio/use_future.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct opaque {
    int value;
};
struct unknown_to_queues {
    explicit unknown_to_queues(int);
    int value;
};
struct object {
    void member(int);
};
struct polymorphic {
    virtual void call();
    int value;
};

/// DLPack's tensor without version and flags.
struct managed_tensor {
    struct {
        void* data;
        struct {
            int device_type;
            std::int32_t device_id;
        } device;
        std::int32_t ndim;
        struct {
            std::uint8_t code;
            std::uint8_t bits;
            std::uint16_t lanes;
        } dtype;
        std::int64_t* shape;
        std::int64_t* strides;
        std::uint64_t byte_offset;
    } dl_tensor;
    void* manager_ctx;
    void (*deleter)(managed_tensor*);
};

void reference(int, std::string&);
void moved(int, std::string&&);
void pointer(int, const char*);
void view(int, std::string_view);
void unknown_type(int, opaque);
void no_index(std::string);
void two(int, int, const std::string&);
int& returns_reference(int);
const char* returns_pointer(int);
std::string_view returns_view(int);
asio::awaitable<int> coroutine(int);
void overloaded(int, int);
void overloaded(int, double);
int fine(int, const std::string&);

// clang-format off
#ifdef REFUSED
void refused(const cohort::outcome& worker, std::string text) {
    (void)cohort::function<reference>(text);            // cohort: a parameter of Fn is T&:
    (void)cohort::function<moved>(text);                // cohort: a parameter of Fn is T&&:
    (void)cohort::function<pointer>("text");            // cohort: a parameter of Fn is a pointer,
    (void)cohort::function<view>(text);                 // cohort: a parameter of Fn is a view
    (void)cohort::function<unknown_type>(opaque{}).plan();  // cohort: this type cannot cross to another process:
    (void)cohort::function<no_index>(text);             // cohort: the first parameter of Fn must be an int:
    (void)cohort::function<two>(1);                     // cohort: wrong number of arguments:
    (void)cohort::function<two>(text, text);            // cohort: an argument cannot be converted to the type of Fn's parameter
    (void)cohort::function<returns_reference>();        // cohort: Fn returns a reference,
    (void)cohort::function<returns_pointer>();          // cohort: Fn returns a pointer,
    (void)cohort::function<returns_view>();             // cohort: Fn returns a view
    (void)cohort::function<coroutine>();                // cohort: Fn is a coroutine,
    (void)cohort::function<overloaded>(1);              // shows: cohort: Fn must be one function:
    const auto captures = [text](int) { return text; };
    (void)cohort::function<captures>();                 // shows: cohort: Fn must be one function:
    (void)cohort::function<&object::member>();          // cohort: Fn is a member function,
    (void)cohort::function<[](auto) {}>();              // cohort: Fn must be a function,
    (void)worker.result<const int&>();                  // cohort: result<T>() gives a value:
    (void)cohort::command(42);                          // cohort: the program of a command must be text or a path
    (void)cohort::command("echo", opaque{});            // cohort: an argument or a variable must be text,
    (void)cohort::command("echo").args(text);           // cohort: args takes a range of arguments;
    (void)cohort::command_for([](int) { return 1; });   // cohort: command_for takes a callable(int index)
    (void)cohort::closure([](const opaque&) {});        // cohort: closure takes a callable(int index)
    (void)cohort::spawn(42, 2);                         // cohort: the work must be function<Fn>(...),
    (void)cohort::command_for([text](int) { return cohort::command(text); });  // GCC 12: name the lambda first
}

void refused_in_shared_memory(const cohort::shared_array<float>& array, const cohort::shared_array<const int>& constant) {
    (void)cohort::share_memory(std::vector<bool>());              // cohort: share_memory takes a range whose elements follow each other in memory:
    (void)cohort::share_memory(std::vector<const char*>());       // cohort: the elements of shared memory can't be pointers,
    (void)cohort::share_memory(std::vector<std::string>());       // cohort: the elements of shared memory must be trivially copyable
    (void)cohort::share_memory(std::vector<std::string_view>());  // cohort: the elements of shared memory can't be pointers,
    (void)cohort::shared_array<polymorphic>(3);                   // cohort: the elements of shared memory can't have virtual functions,
    (void)cohort::shared_array<int*>(3);                          // cohort: the elements of shared memory can't be pointers,
    (void)cohort::to_dlpack<managed_tensor>(constant);            // cohort: a DLManagedTensor can't say that its memory is read-only:
    (void)array(true);                                            // cohort: an index of a shared array must be an integer,
    (void)array.at(0, 1.5);                                       // cohort: an index of a shared array must be an integer,
}

void refused_in_queues(cohort::queue<unknown_to_queues>& values, cohort::queue<const double*>& pointers) {
    values.writer().put(unknown_to_queues(1));  // cohort: this type cannot cross to another process: give it to_json and from_json (nlohmann-json, for example NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE). In a queue a trivially copyable type may also cross as its bytes are: specialise cohort::plain<T> as true.
    pointers.writer().put(nullptr);             // cohort: a pointer means nothing in another process:
}

asio::awaitable<void> refused_to_drop() {
    const asio::system_executor executor;
    cohort::async_spawn(executor, cohort::command("true"), 1, asio::use_future).get();  // cohort: a group that is dropped is stopped:
    co_await cohort::spawn(cohort::command("true"), 1);  // Clang: cohort: a group that is dropped is stopped:
}
#endif
// clang-format on

void accepted(std::string text) {
    (void)cohort::function<fine>(text).plan();
    (void)cohort::function<fine>("text").plan();
    const auto named = [text](int) { return cohort::command(text); };
    (void)cohort::spawn(cohort::command_for(named), 2);
    const auto letters = cohort::share_memory(text);
    (void)letters.at(static_cast<short>(0));
    (void)cohort::to_dlpack<managed_tensor>(cohort::shared_array<int>(2, 3));
}

asio::awaitable<void> accepted_to_drop() {
    (void)co_await cohort::spawn(cohort::command("true"), 1);
}
