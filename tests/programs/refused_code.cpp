// SPDX-License-Identifier: BSL-1.0
// Code that must not compile. The comment of each line is the beginning of the sentence that its
// user reads. See refused_code.py.
#include <cohort/command.hpp>
#include <cohort/function.hpp>
#include <cohort/options.hpp>
#include <cohort/outcome.hpp>
#include <cohort/spawn.hpp>

#include <string>
#include <string_view>
#include <vector>

struct opaque {
    int value;
};
struct object {
    void member(int);
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
#endif
// clang-format on

void accepted(std::string text) {
    (void)cohort::function<fine>(text).plan();
    (void)cohort::function<fine>("text").plan();
    const auto named = [text](int) { return cohort::command(text); };
    (void)cohort::spawn(cohort::command_for(named), 2);
}
