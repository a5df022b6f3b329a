/* A CUDA driver without a GPU: two devices whose memory is the host's. Of kernels it knows plain CSR, of the type and
 * with the columns that it is told, the one that puts values in their places, and those that copy columns to rows and
 * back, which it does itself; others do nothing. It keeps account of what is taken and given back, and is as strict as
 * the real one about contexts and captures, so that all of the library but the kernels is tested where there is no
 * GPU. */
#include "element.h"

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
  int device;
  /* References to it, and streams of it that are captured. */
  _Atomic int retained, captures;
};
struct CUstream_st {
  CUcontext context;
  int is_capturing, is_destroyed;
  CUstream next_destroyed;
  /* Held by what the stream does: one thing after the other, whichever threads ask for it. */
  pthread_mutex_t work;
};
struct CUevent_st {
  CUcontext context;
  CUstream stream; /* that it was recorded on last */
  int is_recorded;
};
struct CUfunc_st {
  CUcontext context;
  int scatters;
  /* Whether it copies columns to rows (1), or rows to columns (2). */
  int copies;
  size_t count, sizes[256];
  /* Bytes of shared memory that it declares, and that a launch may give it besides. */
  unsigned declared, dynamic;
};
struct CUmod_st {
  CUcontext context;
  const unsigned char *image;
  struct CUfunc_st *functions[8];
};
struct block {
  struct block *next;
  void *address;
  size_t bytes;
  int device;
};

static struct CUctx_st contexts[2] = {{0, 0, 0}, {1, 0, 0}};
static struct CUstream_st default_stream = {NULL, 0, 0, NULL, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static long taken_blocks, taken_modules, taken_streams, taken_events, launches, uses_of_destroyed;
static CUstream destroyed_streams;
static struct {
  CUstream waiting, waited_for;
} waits[1024];
static size_t wait_count;
static _Atomic size_t memory_left = (size_t)1 << 40;
static uint64_t last_words[256];
static size_t last_count;
static unsigned last_shared;
static _Atomic int l2_bytes = 50 << 20;
static _Atomic int captures, is_broken;
static int type = ELEMENT_F64;
static unsigned columns = 1;
static _Thread_local CUcontext stack[16];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* What tests ask and set. */
long driver_taken(void) { return taken_blocks + taken_modules + taken_streams; }
long driver_events(void) { return taken_events; }
/* Calls with the handles of streams that were destroyed, which are undefined. */
long driver_uses_of_destroyed(void) { return uses_of_destroyed; }
/* How often a stream was told to wait for another, of the first so many times that any was. */
long driver_waits(CUstream waiting, CUstream waited_for) {
  long count = 0;
  for (size_t i = 0; i < wait_count; ++i) count += waits[i].waiting == waiting && waits[i].waited_for == waited_for;
  return count;
}
long driver_launches(void) { return launches; }
int driver_depth(void) { return depth; }
/* How many parameters of the last launch point into these bytes. */
int driver_launched_with(const void *from, size_t bytes) {
  int count = 0;
  for (size_t i = 0; i < last_count; ++i) count += last_words[i] - (uintptr_t)from < bytes;
  return count;
}
/* Bytes of dynamic shared memory of the last launch. */
unsigned driver_launched_with_shared(void) { return last_shared; }
/* Devices that are asked from now on have an L2 cache of so many bytes. */
void driver_set_l2(int bytes) { l2_bytes = bytes; }
void driver_set_memory(size_t bytes) { memory_left = bytes; }
/* Kernels launched from now on are of this type, and for dense operands of so many columns. */
void driver_multiply_as(int value_type, unsigned dense_columns) {
  type = value_type;
  columns = dense_columns;
}
void driver_break(void) { is_broken = 1; }
void driver_set_current(int device) {
  depth = 1;
  stack[0] = &contexts[device];
}
CUstream driver_stream(int device) {
  CUstream stream = (CUstream)calloc(1, sizeof *stream);
  if (!stream || pthread_mutex_init(&stream->work, NULL)) abort();
  stream->context = &contexts[device];
  return stream;
}
void driver_capture(CUstream stream, int begin) {
  stream->is_capturing = begin;
  stream->context->captures += begin ? 1 : -1;
  captures += begin ? 1 : -1;
}

static void begin_work(CUstream stream) { pthread_mutex_lock(&(stream ? stream : &default_stream)->work); }
static void end_work(CUstream stream) { pthread_mutex_unlock(&(stream ? stream : &default_stream)->work); }

static CUcontext current(void) { return depth ? stack[depth - 1] : NULL; }

#define NEED_CONTEXT() \
  if (!current() || !current()->retained) return CUDA_ERROR_INVALID_CONTEXT
#define NOT_DESTROYED(stream) \
  if ((stream) && (stream)->is_destroyed) return ++uses_of_destroyed, CUDA_ERROR_INVALID_HANDLE
/* What may not be called while anybody captures in global mode. */
#define UNSAFE() \
  if (captures && mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
/* The default stream waits for all others of its context, which those that are captured cannot be waited for. */
#define NOT_IMPLICIT(stream) \
  if (!(stream) && current()->captures) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char **text) {
  (void)error;
  return *text = "CUDA_ERROR", CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  (void)error;
  return *text = "an error", CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { return *count = 2, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  snprintf(name, (size_t)length, "No GPU %d", device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = l2_bytes; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 228 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2619000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ++contexts[device].retained;
  return *context = &contexts[device], CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  --contexts[device].retained;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  if (depth) stack[depth - 1] = context;
  else stack[depth++] = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current(), CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) {
  if (depth == 16) return CUDA_ERROR_INVALID_VALUE;
  return stack[depth++] = context, CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  return *context = stack[--depth], CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *other) {
  const CUstreamCaptureMode old = mode;
  mode = *other;
  return *other = old, CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
  NEED_CONTEXT();
  UNSAFE();
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  NEED_CONTEXT();
  UNSAFE();
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > memory_left) return CUDA_ERROR_OUT_OF_MEMORY;
  struct block *block = (struct block *)malloc(sizeof *block);
  if (!block || !(block->address = malloc(bytes))) abort();
  block->bytes = bytes;
  block->device = current()->device;
  pthread_mutex_lock(&lock);
  block->next = blocks;
  blocks = block;
  ++taken_blocks;
  pthread_mutex_unlock(&lock);
  return *address = (CUdeviceptr)block->address, CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  NEED_CONTEXT();
  if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
  UNSAFE();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (struct block **at = &blocks; *at; at = &(*at)->next) {
    struct block *block = *at;
    if ((CUdeviceptr)block->address != address) continue;
    *at = block->next;
    free(block->address);
    free(block);
    --taken_blocks;
    result = CUDA_SUCCESS;
    break;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
CUresult cuMemGetInfo(size_t *free_bytes, size_t *all) {
  NEED_CONTEXT();
  return *free_bytes = *all = (size_t)80 << 30, CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr pointer) {
  NEED_CONTEXT();
  uintptr_t base = 0;
  size_t bytes = 0;
  int device = -2;
  pthread_mutex_lock(&lock);
  for (struct block *block = blocks; block; block = block->next)
    if (pointer >= (uintptr_t)block->address && pointer < (uintptr_t)block->address + block->bytes) {
      base = (uintptr_t)block->address;
      bytes = block->bytes;
      device = block->device;
    }
  pthread_mutex_unlock(&lock);
  for (unsigned i = 0; i < count; ++i) switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data[i] = bytes ? 2 : 0; break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data[i] = base; break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data[i] = bytes; break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data[i] = device; break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data[i] = 0; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  NEED_CONTEXT();
  if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
  UNSAFE();
  *stream = driver_stream(current()->device);
  pthread_mutex_lock(&lock);
  ++taken_streams;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
/* Kept, so that it is known what its handle was. */
CUresult cuStreamDestroy(CUstream stream) {
  pthread_mutex_lock(&lock);
  --taken_streams;
  stream->is_destroyed = 1;
  stream->next_destroyed = destroyed_streams;
  destroyed_streams = stream;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  NEED_CONTEXT();
  NOT_DESTROYED(stream);
  UNSAFE();
  NOT_IMPLICIT(stream);
  return stream && stream->is_capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  return *context = stream->context, CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  NEED_CONTEXT();
  NOT_DESTROYED(stream);
  NOT_IMPLICIT(stream);
  *status = stream && stream->is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                           : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
  NEED_CONTEXT();
  if (flags != CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_NOT_SUPPORTED;
  if (!(*event = (CUevent)calloc(1, sizeof **event))) abort();
  (*event)->context = current();
  pthread_mutex_lock(&lock);
  ++taken_events;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  free(event);
  pthread_mutex_lock(&lock);
  --taken_events;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  NEED_CONTEXT();
  NOT_DESTROYED(stream);
  if (event->context != current() || (stream && stream->context != current())) return CUDA_ERROR_INVALID_HANDLE;
  /* Nothing that is tested here may put an event into a graph. */
  if (stream && stream->is_capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  NOT_IMPLICIT(stream);
  event->stream = stream;
  event->is_recorded = 1;
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  UNSAFE();
  return event->is_recorded ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  NEED_CONTEXT();
  NOT_DESTROYED(stream);
  if (flags || !event->is_recorded) return CUDA_ERROR_INVALID_VALUE;
  if (stream && stream->is_capturing) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  pthread_mutex_lock(&lock);
  if (wait_count < sizeof waits / sizeof *waits) {
    waits[wait_count].waiting = stream;
    waits[wait_count++].waited_for = event->stream;
  }
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!stream || stream->context != current()) return CUDA_ERROR_INVALID_HANDLE;
  begin_work(stream);
  memcpy((void *)to, from, bytes);
  end_work(stream);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!stream || stream->context != current()) return CUDA_ERROR_INVALID_HANDLE;
  begin_work(stream);
  memcpy(to, (const void *)from, bytes);
  end_work(stream);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
  NEED_CONTEXT();
  if (!bytes || (stream && stream->context != current())) return CUDA_ERROR_INVALID_VALUE;
  NOT_IMPLICIT(stream);
  begin_work(stream);
  memset((void *)to, byte, bytes);
  end_work(stream);
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  NEED_CONTEXT();
  UNSAFE();
  if (memcmp(image, "\177ELF", 4)) return CUDA_ERROR_INVALID_IMAGE;
  if (!(*module = (CUmodule)calloc(1, sizeof **module))) abort();
  (*module)->context = current();
  (*module)->image = (const unsigned char *)image;
  pthread_mutex_lock(&lock);
  ++taken_modules;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  UNSAFE();
  for (int i = 0; i < 8; ++i) free(module->functions[i]);
  free(module);
  pthread_mutex_lock(&lock);
  --taken_modules;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
static uint64_t word(const unsigned char *at, size_t bytes) {
  uint64_t value = 0;
  memcpy(&value, at, bytes);
  return value;
}
/* The section of an ELF image that a prefix and a kernel's name give its name; NULL where there is none. */
static const unsigned char *section_of(const unsigned char *image, const char *prefix, const char *kernel) {
  const unsigned char *table = image + word(image + 40, 8);
  const size_t size = word(image + 58, 2), count = word(image + 60, 2);
  const unsigned char *names = image + word(table + size * word(image + 62, 2) + 24, 8);
  char wanted[512];
  snprintf(wanted, sizeof wanted, "%s%s", prefix, kernel);
  for (size_t i = 0; i < count; ++i)
    if (!strcmp((const char *)names + word(table + size * i, 4), wanted)) return table + size * i;
  return NULL;
}
/* Shared memory that a kernel may have without being asked, and the most of a block of compute capability 9.0. */
enum { UNASKED_SHARED = 48 << 10, MOST_SHARED = 227 << 10 };
/* The sizes of a kernel's parameters are in the section .nv.info.KERNEL of its ELF image, as
 * attributes 0x17: index, ordinal and offset, and the size in the upper 14 bits of a word. What it declares of shared
 * memory is as large as the section .nv.shared.KERNEL. */
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  const unsigned char *image = module->image;
  const unsigned char *section = section_of(image, ".nv.info.", name), *shared = section_of(image, ".nv.shared.", name);
  if (section) {
    struct CUfunc_st *made = (struct CUfunc_st *)calloc(1, sizeof *made);
    if (!made) abort();
    made->context = module->context;
    made->declared = shared ? (unsigned)word(shared + 32, 8) : 0;
    made->dynamic = made->declared < UNASKED_SHARED ? UNASKED_SHARED - made->declared : 0;
    made->scatters = strcmp(name, "sparserl_scatter_values") == 0;
    if (strcmp(name, "sparserl_columns_to_rows") == 0) made->copies = 1;
    if (strcmp(name, "sparserl_rows_to_columns") == 0) made->copies = 2;
    const unsigned char *at = image + word(section + 24, 8), *end = at + word(section + 32, 8);
    while (at < end) {
      const size_t length = at[0] == 4 ? word(at + 2, 2) : 0;
      if (at[0] == 4 && at[1] == 0x17) {
        const size_t ordinal = word(at + 8, 2);
        made->sizes[ordinal] = word(at + 12, 4) >> 18;
        if (ordinal + 1 > made->count) made->count = ordinal + 1;
      }
      at += 4 + length;
    }
    for (int k = 0; k < 8; ++k)
      if (!module->functions[k]) {
        module->functions[k] = made;
        break;
      }
    return *function = made, CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncLoad(CUfunction function) {
  UNSAFE();
  return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  if (attribute != CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) return CUDA_ERROR_NOT_SUPPORTED;
  return *value = (int)function->declared, CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  NEED_CONTEXT();
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_NOT_SUPPORTED;
  if (value < 0 || (unsigned)value + function->declared > MOST_SHARED) return CUDA_ERROR_INVALID_VALUE;
  return function->dynamic = (unsigned)value, CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  if (index >= function->count) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  return *size = function->sizes[index], CUDA_SUCCESS;
}
/* Bytes of the block that begins at an address. */
static size_t bytes_at(const void *address) {
  size_t bytes = 0;
  pthread_mutex_lock(&lock);
  for (struct block *block = blocks; block; block = block->next)
    if (block->address == address) bytes = block->bytes;
  pthread_mutex_unlock(&lock);
  return bytes;
}
/* Where the old operand stands among the parameters of a product: behind x, z, alpha, beta, the three arrays, rows, three
 * numbers of lines, and for matrices whether the output is streamed. */
static size_t place_of_old(CUfunction function) { return function->count > 11 && function->sizes[11] == 4 ? 12 : 11; }
/* Plain CSR takes these, and perhaps the old operand, and perhaps leading dimensions of x, y and z. Others that take as
 * much have shorter arrays, as of narrower indices. */
static int is_plain_csr(CUfunction function, void **parameters) {
  const size_t sum = type == ELEMENT_F64 ? 8 : 4, old = place_of_old(function), after = function->count - old;
  const size_t first[] = {8, 8, sum, sum, 8, 8, 8, 4, 4, 4, 4, 4}, rest[] = {8, 4, 4, 4};
  if (function->count < old || (after != 0 && after != 1 && after != 4) ||
      memcmp(function->sizes, first, old * sizeof *first) != 0 ||
      memcmp(function->sizes + old, rest, after * sizeof *rest) != 0)
    return 0;
  const unsigned *offsets = *(unsigned **)parameters[4];
  const size_t rows = *(unsigned *)parameters[7];
  if (bytes_at(offsets) < (rows + 1) * sizeof *offsets) return 0;
  const size_t entries = offsets[rows];
  return bytes_at(*(void **)parameters[5]) >= entries * sizeof(unsigned) &&
         bytes_at(*(void **)parameters[6]) >= entries * element_size(type);
}
static void multiply(CUfunction function, void **parameters) {
  const int sum_type = type == ELEMENT_F64 ? ELEMENT_F64 : ELEMENT_F32;
  const void *x = *(void **)parameters[0], *values = *(void **)parameters[6];
  void *z = *(void **)parameters[1];
  const double alpha = element_get(sum_type, parameters[2], 0), beta = element_get(sum_type, parameters[3], 0);
  const unsigned *offsets = *(unsigned **)parameters[4], *indices = *(unsigned **)parameters[5];
  const size_t rows = *(unsigned *)parameters[7];
  const size_t old_at = place_of_old(function);
  const void *y = *(void **)parameters[function->count > old_at ? old_at : 1];
  size_t leading[3] = {columns, columns, columns};
  for (size_t i = 0; function->count > old_at + 1 && i < 3; ++i) leading[i] = *(unsigned *)parameters[old_at + 1 + i];
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (unsigned k = offsets[row]; k < offsets[row + 1]; ++k)
        sum += element_get(type, values, k) * element_get(type, x, indices[k] * leading[0] + column);
      const double old = beta == 0 ? 0 : beta * element_get(type, y, row * leading[1] + column);
      element_put(type, z, row * leading[2] + column, alpha * sum + old);
    }
}
static void scatter(void **parameters) {
  char *slots = *(char **)parameters[0];
  const uint64_t *entries = *(uint64_t **)parameters[1], count = *(uint64_t *)parameters[3];
  const char *values = *(char **)parameters[2];
  const size_t size = element_size(type);
  for (uint64_t slot = 0; slot < count; ++slot)
    if (entries[slot] != ~UINT64_C(0)) memcpy(slots + slot * size, values + entries[slot] * size, size);
}
/* Between a column-major matrix and one of rows without gaps. */
static void copy(void **parameters, int to_rows) {
  const char *from = *(char **)parameters[0];
  char *to = *(char **)parameters[1];
  const size_t rows = *(uint64_t *)parameters[2], ld = *(uint64_t *)parameters[3], size = element_size(type);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) {
      const size_t by_rows = row * columns + column, by_columns = column * ld + row;
      memcpy(to + size * (to_rows ? by_rows : by_columns), from + size * (to_rows ? by_columns : by_rows), size);
    }
}
/* Generated kernels, and they alone, wait for those before them, which may then run at the same time. */
static int may_begin_early(const CUlaunchConfig *launch) {
  const CUlaunchAttribute *attribute = launch->attrs;
  return launch->numAttrs == 1 && attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
         attribute->value.programmaticStreamSerializationAllowed;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *launch, CUfunction function, void **parameters,
                          void **extra) {
  NEED_CONTEXT();
  if (is_broken) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (function->context != current() || (launch->hStream && launch->hStream->context != current()))
    return CUDA_ERROR_INVALID_HANDLE;
  NOT_IMPLICIT(launch->hStream);
  const unsigned blocks = launch->gridDimX * launch->gridDimY * launch->gridDimZ;
  const unsigned threads = launch->blockDimX * launch->blockDimY * launch->blockDimZ;
  if (!blocks || threads > 1024 || launch->sharedMemBytes > function->dynamic || extra) return CUDA_ERROR_INVALID_VALUE;
  if (function->scatters || function->copies ? launch->numAttrs != 0 : !may_begin_early(launch))
    return CUDA_ERROR_INVALID_VALUE;
  /* Every parameter can be read. */
  unsigned sum = 0;
  for (size_t i = 0; i < function->count; ++i)
    for (size_t k = 0; k < function->sizes[i]; ++k) sum += ((unsigned char *)parameters[i])[k];
  begin_work(launch->hStream);
  if (is_plain_csr(function, parameters)) multiply(function, parameters);
  if (function->scatters) scatter(parameters);
  if (function->copies) copy(parameters, function->copies == 1);
  end_work(launch->hStream);
  pthread_mutex_lock(&lock);
  launches += 1 + 0 * (long)sum;
  last_shared = launch->sharedMemBytes;
  last_count = function->count;
  for (size_t i = 0; i < last_count; ++i)
    last_words[i] = function->sizes[i] == 8 ? *(uint64_t *)parameters[i] : 0;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

/* The library looks for all that it may call; nothing in the tests calls these. */
#define ABSENT(number, symbol)                \
  CUresult absent_##number(void) __asm__(symbol); \
  CUresult absent_##number(void) { return CUDA_ERROR_NOT_SUPPORTED; }
ABSENT(0, "cuMemcpyHtoD_v2")
ABSENT(1, "cuMemcpyDtoH_v2")
ABSENT(2, "cuMemsetD8_v2")
ABSENT(3, "cuMemsetD32_v2")
ABSENT(4, "cuModuleGetGlobal_v2")
ABSENT(6, "cuMemsetD32Async")
ABSENT(7, "cuCtxSetLimit")
ABSENT(8, "cuMemcpyDtoDAsync_v2")
ABSENT(9, "cuStreamBeginCapture_v2")
ABSENT(10, "cuStreamEndCapture")
ABSENT(14, "cuEventElapsedTime_v2")
ABSENT(15, "cuGraphInstantiateWithFlags")
ABSENT(5, "cuGraphUpload")
ABSENT(16, "cuGraphLaunch")
ABSENT(17, "cuGraphDestroy")
ABSENT(18, "cuGraphExecDestroy")
ABSENT(19, "cuStreamQuery")
