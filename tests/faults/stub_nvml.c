/* A stand-in for libnvidia-ml.so.1: nvmlInit answers STUB_NVML (default 0), the driver is STUB_DRIVER,
 * the one GPU is in compute mode STUB_MODE (default 0) and MIG mode STUB_MIG (default 0). */
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

int nvmlInit_v2(void) { return number("STUB_NVML", 0); }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  const char *text = getenv("STUB_DRIVER");
  strncpy(version, text ? text : "999.88.77", length);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = number("STUB_COUNT", 1);
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)(long)(index + 1);
  return number("STUB_LOST", 0) ? 15 : 0;
}

int nvmlDeviceGetComputeMode(void *device, int *mode) {
  (void)device;
  *mode = number("STUB_MODE", 0);
  return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
  (void)device;
  *current = *pending = number("STUB_MIG", 0);
  return 0;
}

int nvmlShutdown(void) { return 0; }
