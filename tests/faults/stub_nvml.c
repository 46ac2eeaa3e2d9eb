/* A stand-in for libnvidia-ml.so.1: nvmlInit answers STUB_NVML (default 0), the driver is STUB_DRIVER,
 * the one GPU is in compute mode STUB_MODE (default 0) and MIG mode STUB_MIG (default 0). It counts STUB_ECC
 * uncorrected errors, STUB_REMAP rows that wait and STUB_REMAP_FAILED that cannot be remapped, and its clock
 * is held down by the reasons in STUB_SLOW. */
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

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
  (void)device, (void)kind, (void)counter;
  *count = number("STUB_ECC", 0);
  return 0;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *good, unsigned *bad, unsigned *pending, unsigned *failed) {
  (void)device;
  *good = *bad = 0;
  *pending = number("STUB_REMAP", 0);
  *failed = number("STUB_REMAP_FAILED", 0);
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  (void)device;
  *reasons = number("STUB_SLOW", 0);
  return 0;
}

int nvmlShutdown(void) { return 0; }
