/* A stand-in for libnvidia-ml.so.1: nvmlInit answers STUB_NVML (default 0), the driver is STUB_DRIVER. */
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void) {
  const char *text = getenv("STUB_NVML");
  return text ? atoi(text) : 0;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  const char *text = getenv("STUB_DRIVER");
  strncpy(version, text ? text : "999.88.77", length);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 1;
  return 0;
}
