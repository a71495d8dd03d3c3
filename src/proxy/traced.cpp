#include "proxy/traced.h"

#include <iterator>

namespace offpath::proxy {
namespace {

// By rma::OpKind.
constinit trace::Name names[] = {trace::Name("?"),
                                 trace::Name("put"),
                                 trace::Name("get"),
                                 trace::Name("accumulate"),
                                 trace::Name("get_accumulate"),
                                 trace::Name("compare_swap"),
                                 trace::Name("lock_shared"),
                                 trace::Name("lock_exclusive"),
                                 trace::Name("unlock")};
static_assert(std::size(names) == static_cast<std::size_t>(rma::OpKind::unlock) + 1);

}  // namespace

trace::Name& name_in_trace(rma::OpKind kind) {
    return names[rma::is_kind(kind) ? static_cast<std::size_t>(kind) : 0];
}

}  // namespace offpath::proxy
