// SPDX-License-Identifier: MIT
//
// The lesson with ordinary stores where pipelinePlain has streaming ones, for
// the claim on what that does to its loads. The headers come first, as they have
// functions of that name.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_runtime.h>

#define __stcs(address, value) (*(address) = (value))
#include "../../barrier_pipeline/bulk_pipeline.cu"
