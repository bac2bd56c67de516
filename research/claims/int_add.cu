// SPDX-License-Identifier: MIT
//
// What nvcc makes of an int atomicAdd to one address, for the claims ledger:
// no lesson has such a kernel.

// One thread adds one element to the one total.
__global__ void sumGlobalInt(const int *in, int *total, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, in[i]);
}
