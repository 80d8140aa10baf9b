// Package ladder divides the bytes of one GPU into rungs: from the tensors that torch allocated, through what its
// allocator reserved and cached, to what NVML says the device has in use.
package ladder
