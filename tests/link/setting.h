// Environment variables of tests that depend on them.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

namespace offpath::link::test {

// Sets or unsets an environment variable for its lifetime.
class Setting {
  public:
    Setting(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = std::make_unique<std::string>(before);
        if (value != nullptr)
            setenv(name, value, 1);
        else
            unsetenv(name);
    }
    ~Setting() {
        if (before_ != nullptr)
            setenv(name_, before_->c_str(), 1);
        else
            unsetenv(name_);
    }
    Setting(const Setting&) = delete;
    Setting& operator=(const Setting&) = delete;

  private:
    const char* const name_;
    std::unique_ptr<std::string> before_;
};

}  // namespace offpath::link::test
