// C++ on the device: constructors of globals, virtual functions of objects made there, templates, exceptions
// that are caught there, lambdas.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square final : Shape {
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
    double side;
};
struct Circle final : Shape {
    explicit Circle(double radius) : radius(radius) {}
    double area() const override { return 3 * radius * radius; }
    double radius;
};

#pragma omp declare target
struct Table {
    Table() {
        for (int i = 0; i < 10; i++)
            squares[i] = i * i;
    }
    int squares[10];
};
Table table;

template <typename T>
T checked_root(T value) {
    if (value < 0) throw std::domain_error("negative");
    T root = value;
    for (int i = 0; i < 50; i++)
        root = root > 0 ? (root + value / root) / 2 : 0;
    return root;
}
#pragma omp end declare target

int main() {
    double area = 0, root = 0;
    int caught = 0, square = 0;
#pragma omp target map(from : area, root, caught, square)
    {
        std::vector<std::unique_ptr<Shape>> shapes;
        shapes.push_back(std::make_unique<Square>(2));
        shapes.push_back(std::make_unique<Circle>(1));
        area = 0;
        for (const auto& shape : shapes)
            area += shape->area();
        square = table.squares[7];
        caught = 0;
        try {
            root = checked_root(16.0);
            checked_root(-1.0);
        } catch (const std::domain_error& error) {
            caught = 1;
        }
    }
    std::printf("area %g, table %d, root %g, caught %d\n", area, square, root, caught);
    int values[8] = {};
    const auto twice = [](int i) { return 2 * i; };
#pragma omp target teams distribute parallel for map(from : values)
    for (int i = 0; i < 8; i++)
        values[i] = twice(i);
    std::printf("lambda %d\n", values[7]);
}
