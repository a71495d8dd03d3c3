#include "fft3d/pencil_fft.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace fft3d {

namespace {

constexpr int kRowPadding = 4;

fftw_complex* raw(const Complex* data) {
    return reinterpret_cast<fftw_complex*>(const_cast<Complex*>(data));
}

// The layout of `batch` transforms of length n: the element stride and the distance between transforms.
struct Lines {
    int stride, distance;
};

Plan make_plan(int n, int batch, Complex* in, Lines from, Complex* out, Lines to, int sign,
               unsigned planner) {
    if (n == 0 || batch == 0) return nullptr;
    Plan plan(fftw_plan_many_dft(1, &n, batch, raw(in), nullptr, from.stride, from.distance, raw(out),
                                 nullptr, to.stride, to.distance, sign, planner));
    if (!plan) throw std::runtime_error("FFTW could not plan a transform of length " + std::to_string(n));
    return plan;
}

void execute(const Plan& plan, const Complex* in, Complex* out) {
    if (plan) fftw_execute_dft(plan.get(), raw(in), raw(out));
}

void copy_rows(Complex* to, std::size_t to_stride, const Complex* from, std::size_t from_stride, int rows,
               int length) {
    for (int row = 0; row < rows; ++row)
        std::memcpy(static_cast<void*>(to + row * to_stride), from + row * from_stride,
                    length * sizeof(Complex));
}

void scale_rows(Complex* to, std::size_t to_stride, const Complex* from, std::size_t from_stride, int rows,
                int length, double factor) {
    for (int row = 0; row < rows; ++row) {
        double* target = reinterpret_cast<double*>(to + row * to_stride);
        const double* source = reinterpret_cast<const double*>(from + row * from_stride);
        for (int i = 0; i < 2 * length; ++i)
            target[i] = factor * source[i];
    }
}

}  // namespace

Array::Array(std::size_t size)
    : size_(size), memory_(reinterpret_cast<Complex*>(fftw_malloc((size + 1) * sizeof(Complex)))) {
    if (!memory_) throw std::bad_alloc();
    std::fill_n(memory_.get(), size + 1, Complex{});
}

PencilFft::PencilFft(const Decomposition& decomposition, unsigned planner)
    : decomposition_(decomposition),
      row_stride_(decomposition.z().count + kRowPadding),
      plane_(std::max({static_cast<std::size_t>(decomposition.y_of_row().count) * decomposition.n()[2],
                       static_cast<std::size_t>(decomposition.n()[1]) * row_stride_,
                       static_cast<std::size_t>(decomposition.n()[0]) * row_stride_})) {
    const auto [nx, ny, nz] = decomposition.n();
    const int ys = decomposition.y_of_row().count, zs = decomposition.z().count;
    const Array other(plane_.size());
    const Lines rows{1, nz}, padded{row_stride_, 1}, packed{zs, 1};
    Complex *plane = plane_.data(), *out = other.data();
    z_forward_ = make_plan(nz, ys, out, rows, plane, rows, FFTW_FORWARD, planner);
    z_backward_ = make_plan(nz, ys, plane, rows, out, rows, FFTW_BACKWARD, planner);
    y_forward_ = make_plan(ny, zs, plane, padded, plane, padded, FFTW_FORWARD, planner);
    y_backward_ = make_plan(ny, zs, plane, padded, plane, padded, FFTW_BACKWARD, planner);
    x_forward_ = make_plan(nx, zs, plane, padded, out, packed, FFTW_FORWARD, planner);
    x_backward_ = make_plan(nx, zs, out, packed, plane, padded, FFTW_BACKWARD, planner);
}

void PencilFft::forward_z(const Complex* field, Complex* send) {
    const int nz = decomposition_.n()[2], ys = decomposition_.y_of_row().count;
    const Exchange& exchange = decomposition_.z_to_y();
    for (int x = 0; x < decomposition_.x().count; ++x) {
        execute(z_forward_, field + static_cast<std::size_t>(x) * ys * nz, plane_.data());
        for (int q = 0; q < exchange.parts(); ++q) {
            const Range z = block(nz, exchange.parts(), q);
            Complex* rows = send + exchange.send_offsets[q] + static_cast<std::size_t>(x) * ys * z.count;
            copy_rows(rows, z.count, plane_.data() + z.first, nz, ys, z.count);
        }
    }
}

void PencilFft::backward_z(const Complex* received, Complex* field, const PointwiseStep* step) {
    const int nz = decomposition_.n()[2], ys = decomposition_.y_of_row().count;
    const Exchange& exchange = decomposition_.z_to_y();
    const double factor = 1.0 / decomposition_.points();
    for (int x = 0; x < decomposition_.x().count; ++x) {
        for (int q = 0; q < exchange.parts(); ++q) {
            const Range z = block(nz, exchange.parts(), q);
            const Complex* rows =
                received + exchange.send_offsets[q] + static_cast<std::size_t>(x) * ys * z.count;
            scale_rows(plane_.data() + z.first, nz, rows, z.count, ys, z.count, factor);
        }
        Complex* values = field + static_cast<std::size_t>(x) * ys * nz;
        execute(z_backward_, plane_.data(), values);
        if (step != nullptr) step->in_space(values, static_cast<std::size_t>(ys) * nz);
    }
}

// Copies plane x between the workspace [all y][z in Zq] and the blocks [x][y of the peer][z in Zq] of a
// buffer. Exchange A has the blocks of the row's parts of y, exchange B those of the column's parts.
void PencilFft::copy_y_plane(const Exchange& exchange, int x, Complex* buffer, bool to_plane) {
    const bool is_row = &exchange == &decomposition_.z_to_y();
    const std::vector<int>& offsets = is_row ? exchange.receive_offsets : exchange.send_offsets;
    const int zs = decomposition_.z().count;
    for (int peer = 0; peer < exchange.parts(); ++peer) {
        const Range y = block(decomposition_.n()[1], exchange.parts(), peer);
        Complex* rows = buffer + offsets[peer] + static_cast<std::size_t>(x) * y.count * zs;
        Complex* plane = plane_.data() + static_cast<std::size_t>(y.first) * row_stride_;
        if (to_plane) {
            copy_rows(plane, row_stride_, rows, zs, y.count, zs);
        } else {
            copy_rows(rows, zs, plane, row_stride_, y.count, zs);
        }
    }
}

void PencilFft::forward_y(const Complex* received, Complex* send) {
    for (int x = 0; x < decomposition_.x().count; ++x) {
        copy_y_plane(decomposition_.z_to_y(), x, const_cast<Complex*>(received), true);
        execute(y_forward_, plane_.data(), plane_.data());
        copy_y_plane(decomposition_.y_to_x(), x, send, false);
    }
}

void PencilFft::backward_y(const Complex* received, Complex* send) {
    for (int x = 0; x < decomposition_.x().count; ++x) {
        copy_y_plane(decomposition_.y_to_x(), x, const_cast<Complex*>(received), true);
        execute(y_backward_, plane_.data(), plane_.data());
        copy_y_plane(decomposition_.z_to_y(), x, send, false);
    }
}

void PencilFft::forward_and_back_x(const Complex* received, Complex* spectrum, Complex* send,
                                   const PointwiseStep* step) {
    const int nx = decomposition_.n()[0], ys = decomposition_.y_of_column().count,
              zs = decomposition_.z().count;
    const Exchange& exchange = decomposition_.y_to_x();
    const std::size_t between_x = static_cast<std::size_t>(ys) * zs;
    for (int y = 0; y < ys; ++y) {
        Complex* modes = spectrum + static_cast<std::size_t>(y) * nx * zs;
        for (int p = 0; p < exchange.parts(); ++p) {
            const Range x = block(nx, exchange.parts(), p);
            const Complex* rows = received + exchange.receive_offsets[p] + static_cast<std::size_t>(y) * zs;
            copy_rows(plane_.data() + static_cast<std::size_t>(x.first) * row_stride_, row_stride_, rows,
                      between_x, x.count, zs);
        }
        execute(x_forward_, plane_.data(), modes);
        if (step != nullptr) step->in_spectrum(y, modes);
        execute(x_backward_, modes, plane_.data());
        for (int p = 0; p < exchange.parts(); ++p) {
            const Range x = block(nx, exchange.parts(), p);
            Complex* rows = send + exchange.receive_offsets[p] + static_cast<std::size_t>(y) * zs;
            copy_rows(rows, between_x, plane_.data() + static_cast<std::size_t>(x.first) * row_stride_,
                      row_stride_, x.count, zs);
        }
    }
}

}  // namespace fft3d
