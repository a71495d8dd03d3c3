// Translates UCX's status codes.
#pragma once

#include "base/status.h"

#include <ucs/type/status.h>

namespace offpath::transport::ucx {

Status from_ucs(ucs_status_t status);

}  // namespace offpath::transport::ucx
