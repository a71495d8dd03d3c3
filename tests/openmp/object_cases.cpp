// C++ in target regions: objects, virtual functions, templates, lambdas, exceptions, constructors of globals.
#include "cases.h"

#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int n = 500;

#pragma omp declare target
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    explicit Square(double side) : side_(side) {}
    double area() const override { return side_ * side_; }
    double side_;
};
struct Circle : Shape {
    explicit Circle(double radius) : radius_(radius) {}
    double area() const override { return 3 * radius_ * radius_; }
    double radius_;
};

struct Counter {
    Counter() : value(42) {}
    ~Counter() { value = -1; }
    int value;
};
Counter made_before_main;
const std::string greeting = "a text that is longer than the room within a string";

template <typename T>
T polynomial(T x) {
    return x * x + 2 * x + T(1);
}
template <typename Function>
int apply_to(int x, const Function& function) {
    return function(x);
}
int checked(int x) {
    if (x > 2) throw std::out_of_range("three is too much");
    return x;
}
#pragma omp end declare target

class Vector {
  public:
    explicit Vector(int size) : size_(size), data_(new double[static_cast<std::size_t>(size)]) {
        for (int i = 0; i < size_; ++i)
            data_[i] = i;
#pragma omp target enter data map(to : this[0 : 1], data_[0 : size_])
    }
    ~Vector() {
#pragma omp target exit data map(delete : data_[0 : size_], this[0 : 1])
        delete[] data_;
    }
    Vector(const Vector&) = delete;
    Vector& operator=(const Vector&) = delete;
    void scale(double factor) {
#pragma omp target teams distribute parallel for firstprivate(factor)
        for (int i = 0; i < size_; ++i)
            data_[i] *= factor;
    }
    double* fetch() {
#pragma omp target update from(data_[0 : size_])
        return data_;
    }

  private:
    int size_;
    double* data_;
};

struct Complex {
    double re = 0, im = 0;
    Complex& operator+=(const Complex& other) {
        re += other.re;
        im += other.im;
        return *this;
    }
};
#pragma omp declare reduction(add:Complex : omp_out += omp_in) initializer(omp_priv = Complex())

int member_pointers() {
    Vector vector(n);
    vector.scale(3);
    vector.scale(0.5);
    const double* const data = vector.fetch();
    int wrong = 0;
    for (int i = 0; i < n; ++i)
        wrong += data[i] != 1.5 * i;
    return wrong;
}

int virtual_functions() {
    double total = 0;
#pragma omp target map(tofrom : total)
    {
        const std::unique_ptr<Shape> shapes[] = {std::make_unique<Square>(2.0),
                                                 std::make_unique<Circle>(1.0)};
        for (const auto& shape : shapes)
            total += shape->area();
        if (dynamic_cast<const Square*>(shapes[0].get()) != nullptr) total += 100;
        if (dynamic_cast<const Square*>(shapes[1].get()) != nullptr) total += 1000;
    }
    return total != 107;
}

int constructors_of_globals() {
    int value = 0;
    unsigned long length = 0;
#pragma omp target map(from : value, length)
    {
        value = made_before_main.value++;
        length = greeting.size();
    }
    return value != 42 || made_before_main.value != 42 || length != greeting.size();
}

int exceptions() {
    int caught = 0, finished = 0;
#pragma omp target map(tofrom : caught, finished)
    for (int i = 0; i < 5; ++i) {
        try {
            finished += checked(i);
        } catch (const std::out_of_range& error) {
            caught += static_cast<int>(std::string(error.what()).find("three") == 0);
        }
    }
    int in_threads = 0;
#pragma omp target parallel for map(tofrom : in_threads) reduction(+ : in_threads)
    for (int i = 0; i < 40; ++i) {
        try {
            (void)checked(i);
        } catch (...) {
            ++in_threads;
        }
    }
    return caught != 2 || finished != 3 || in_threads != 37;
}

int templates_and_lambdas() {
    float single = 0;
    long whole = 0;
    int applied = 0, add = 5;
    const auto lambda = [&applied, add](int x) { applied = x + add; };
#pragma omp target map(from : single, whole) map(tofrom : applied) firstprivate(lambda)
    {
        single = polynomial(1.5F);
        whole = polynomial(10L);
        applied = apply_to(7, [add](int x) { return x * add; });
    }
    const int first = applied;
    lambda(1);
    return single != 6.25F || whole != 121 || first != 35 || applied != 6;
}

int references() {
    int x = 1;
    std::array<int, 4> array{1, 2, 3, 4};
    int& alias = x;
    std::array<int, 4>& other = array;
#pragma omp target map(tofrom : alias, other)
    {
        alias += 10;
        other[2] = alias;
    }
    return x != 11 || array[2] != 11 || array[3] != 4;
}

int containers() {
    std::vector<int> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    int* const data = numbers.data();
    int sum = 0;
#pragma omp target map(to : data[0 : n]) map(from : sum)
    {
        std::vector<int> there(data, data + n);
        there.push_back(1000);
        sum = std::accumulate(there.begin(), there.end(), 0);
    }
    return sum != n * (n - 1) / 2 + 1000;
}

int reductions_of_objects() {
    Complex sum;
#pragma omp target teams distribute parallel for map(tofrom : sum) reduction(add : sum)
    for (int i = 0; i < n; ++i)
        sum += Complex{1.0, -2.0};
    return sum.re != n || sum.im != -2 * n;
}

int mathematics() {
    double root = 0, phase = 0;
    std::complex<double> z(3, 4);
#pragma omp target map(tofrom : z) map(from : root, phase)
    {
        root = std::sqrt(std::norm(z));
        z *= std::complex<double>(0, 1);
        phase = std::sin(0.0) + std::exp(0.0);
    }
    return root != 5 || z.real() != -4 || z.imag() != 3 || phase != 1;
}

int memory_of_a_region() {
    bool refused = false;
    int* kept = nullptr;
#pragma omp target map(from : kept)
    kept = new int[3]{7, 8, 9};
    int value = 0;
#pragma omp target is_device_ptr(kept) map(from : value, refused)
    {
        value = kept[2];
        delete[] kept;
        try {
            ::operator delete(::operator new(std::size_t{1} << 62));
        } catch (const std::bad_alloc&) {
            refused = true;
        }
    }
    return value != 9 || !refused;
}

}  // namespace

int main() {
    RUN(member_pointers);
    RUN(virtual_functions);
    RUN(constructors_of_globals);
    RUN(exceptions);
    RUN(templates_and_lambdas);
    RUN(references);
    RUN(containers);
    RUN(reductions_of_objects);
    RUN(mathematics);
    RUN(memory_of_a_region);
    return wrong_cases != 0;
}
