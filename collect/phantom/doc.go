// Package phantom builds and describes the phantom GPU: a fake CUDA library that is loaded before the real CUDA build
// of torch and gives it a device where there is none.
//
// torch's own caching allocator, autograd, memory history and kernel-internal temporaries run unchanged; kernels do
// nothing and cudaMalloc hands out addresses that are never touched. So a training script's memory can be predicted,
// and a recording agent tested, on a machine without a GPU. Where a real GPU was recorded to take other bytes than the
// libraries say without one, a correction gives the device's: CORRECTIONS.md lists them.
//
// The C sources are embedded. They are compiled for the torch of one interpreter at first use, into a cache: the struct
// layouts come from the CUDA headers that this torch brought along, and functions that are not modelled become stubs
// generated from the undefined symbols of torch's libraries. The values of small tensors are followed by a library in
// C++ against that torch's own headers (csrc/values). It needs Linux on x86-64, a CUDA build of torch and gcc with
// g++. A build of dpsight may have the libraries inside, compiled for the versions of torch that it was tested with;
// for these no gcc is needed (scripts/wheels.py makes such builds).
package phantom
