/* A stand-in for the NVIDIA driver library: cuInit answers STUB_CUINIT (default 100),
 * the CUDA level is STUB_DRVVER (default 99080), STUB_CRASH=1 dies of SIGBUS, STUB_HANG=1 never answers. */
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
  *count = 0;
  return code();
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
