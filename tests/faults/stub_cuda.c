/* A stand-in for the NVIDIA driver library: cuInit answers STUB_CUINIT (default 100),
 * the CUDA level is STUB_DRVVER (default 99080), STUB_CRASH=1 dies of SIGBUS, STUB_HANG=1 never answers.
 * It lists STUB_GPUS GPUs (default 1), a context is answered with STUB_CONTEXT and an allocation with STUB_ALLOC
 * (default 0); STUB_LOSES=1 gives back other bytes than were written. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static int code(void) { return number("STUB_CUINIT", 100); }

int cuInit(unsigned flags) {
  (void)flags;
  if (number("STUB_CRASH", 0)) raise(SIGBUS);
  while (number("STUB_HANG", 0)) sleep(1);
  return code();
}

int cuDriverGetVersion(int *version) {
  *version = number("STUB_DRVVER", 99080);
  return 0;
}

int cuDeviceGetCount(int *count) {
  *count = code() ? 0 : number("STUB_GPUS", 1);
  return code();
}

int cuDeviceGet(int *device, int index) {
  *device = index;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)(long)(device + 1);
  return number("STUB_CONTEXT", 0);
}

int cuCtxSetCurrent(void *context) { return context ? 0 : 201; }

static unsigned char written;

int cuMemAlloc_v2(unsigned long long *block, size_t size) {
  *block = size ? 4096 : 0;
  return number("STUB_ALLOC", 0);
}

int cuMemsetD8_v2(unsigned long long block, unsigned char value, size_t size) {
  written = number("STUB_LOSES", 0) ? 0 : value;
  return block && size ? 0 : 1;
}

int cuMemcpyDtoH_v2(void *target, unsigned long long source, size_t size) {
  (void)source;
  memset(target, written, size);
  return 0;
}

int cuMemFree_v2(unsigned long long block) { return block == 4096 ? 0 : 1; }

int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return 0;
}

int cuGetExportTable(const void **table, const void *id) {
  (void)table, (void)id;
  return 3;
}

static int anything(void) { return code(); }

int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status) {
  (void)version, (void)flags;
  *found = !strcmp(name, "cuInit")               ? (void *)cuInit
           : !strcmp(name, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
           : !strcmp(name, "cuDeviceGetCount")   ? (void *)cuDeviceGetCount
           : !strcmp(name, "cuGetExportTable")   ? (void *)cuGetExportTable
           : !strcmp(name, "cuGetProcAddress")   ? (void *)cuGetProcAddress_v2
                                                 : (void *)anything;
  if (status) *(int *)status = 0;
  return 0;
}

int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, found, version, flags, 0);
}
