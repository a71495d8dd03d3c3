// Names of operations in the traces of proxies.
#pragma once

#include "rma/access.h"
#include "trace/trace.h"

namespace offpath::proxy {

// `kind` may be a value that is no kind.
trace::Name& name_in_trace(rma::OpKind kind);

}  // namespace offpath::proxy
