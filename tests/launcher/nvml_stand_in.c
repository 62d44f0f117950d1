/* Stands in for NVIDIA's libnvidia-ml.so.1: two GPUs, the first full by half, the second used by the process that the
   file named in NVML_STAND_IN_PID tells (and by one that is not ours). OLD leaves out what older drivers lack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ULL * 1024ULL)
#define USED(gpu) ((gpu) == 1 ? 12000 * MIB : 6000 * MIB)

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(unsigned long)(index + 1); return 0; }
int nvmlDeviceGetName(void *device, char *name, unsigned length) { strncpy(name, "NVIDIA A10G", length); return 0; }

int nvmlDeviceGetMemoryInfo(void *device, memory_v1 *info) {
    info->total = 24000 * MIB;
    info->used = USED((unsigned long)device - 1);
    info->free = info->total - info->used;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
    rates[0] = (unsigned long)device == 1 ? 100 : 20; /* of the GPU; that of its memory is not asked */
    return 0;
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *info) {
    if (info->version != (sizeof(memory_v2) | 2 << 24)) return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    info->total = 24000 * MIB;
    info->reserved = 500 * MIB;
    info->used = USED((unsigned long)device - 1) - info->reserved;
    info->free = info->total - info->used - info->reserved;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *found) {
    FILE *file = fopen(getenv("NVML_STAND_IN_PID"), "r");
    unsigned pid = 0;
    if (file) {
        if (fscanf(file, "%u", &pid) != 1) pid = 0;
        fclose(file);
    }
    *count = 0;
    if ((unsigned long)device != 2) return 0;
    found[0].pid = 999999; found[0].used = 1000 * MIB;
    found[1].pid = pid; found[1].used = 10000 * MIB;
    found[2].pid = 999998; found[2].used = 0xFFFFFFFFFFFFFFFFULL; /* NVML_VALUE_NOT_AVAILABLE */
    *count = 3;
    return 0;
}
#endif
