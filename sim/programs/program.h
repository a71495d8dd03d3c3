// Program: what one simulated rank does, as a coroutine. It posts operations, computes and waits; virtual
// time passes while it does.
//
//     Program exchange(Rank& rank, const Operation& operation) {
//         Request& request = co_await rank.post(operation);
//         co_await rank.compute(5 * ms);
//         co_await rank.wait(request);
//     }
//
// Ownership: a Program owns its coroutine. What its parameters refer to must live until it has ended.
// Threads: one.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace offpath::sim {

class Program {
  public:
    struct promise_type {
        std::exception_ptr error;
        Program get_return_object() {
            return Program(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };

    explicit Program(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Program& operator=(Program&&) = delete;
    ~Program() {
        if (handle_) handle_.destroy();
    }

    // Runs until it waits for something or ends. Throws what the coroutine has thrown.
    void resume() {
        handle_.resume();
        if (handle_.done() && handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    }
    bool over() const { return handle_.done(); }

  private:
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace offpath::sim
