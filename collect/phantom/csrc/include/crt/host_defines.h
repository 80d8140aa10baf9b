/* Empty decorations for <driver_types.h>. The CUDA runtime wheel ships that header without the crt/ folder that it
 * includes (crt/ comes with nvcc, which users of torch need not have), and plain C needs none of the decorations. */
#ifndef PHANTOM_HOST_DEFINES_H
#define PHANTOM_HOST_DEFINES_H
#define CUDARTAPI
#define __device_builtin__
#define __cudart_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __location__(a)
#define __host__
#define __device__
#endif
