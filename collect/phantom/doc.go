// Package phantom builds and describes the phantom GPU: a fake CUDA library that is loaded before the real CUDA build
// of torch. The phantom GPU provides a device on machines without one.
//
// torch's own caching allocator, autograd, memory history, and temporary tensors within kernels work unchanged. Kernels
// do nothing, and cudaMalloc returns addresses that are never used. So a machine without a GPU can predict a training
// script's memory and test a recording agent. Where recordings show that a real GPU uses other bytes than the libraries
// report without one, a correction supplies the device's value. CORRECTIONS.md lists the corrections.
//
// The C sources are embedded. Build compiles them for the torch of one interpreter at first use, into a cache. The
// struct layouts come from the CUDA headers that belong to this torch. Functions that are not modelled become stubs,
// generated from the undefined symbols of torch's libraries. A C++ library, compiled against this torch's headers
// (csrc/values), follows the values of small tensors. The package needs Linux on x86-64, a CUDA build of torch, and gcc
// with g++. A build of dpsight may contain the libraries, compiled for the versions of torch that it was tested with. A
// build of dpsight with libraries needs no gcc for these versions (scripts/wheels.py makes such builds).
package phantom
