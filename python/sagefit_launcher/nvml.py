"""Reads memory and use of GPUs from the driver's own library, NVML, without starting a program."""

from __future__ import annotations

from typing import Any, NamedTuple

_NOT_KNOWN = 2**64 - 1  # NVML's value for what it cannot tell
_MOST_PROCESSES = 1024  # of one GPU


class Gpu(NamedTuple):
    """One GPU at one moment. ``processes`` is bytes by process id, empty where the driver names none.

    ``busy`` is the percentage of the driver's last sample period in which a kernel ran on it, None where not known.
    """

    number: int
    name: str
    used: int
    total: int
    processes: dict[int, int]
    busy: int | None = None


class NvmlError(Exception):
    """There is no NVML here, or it does not answer."""


class Nvml:
    """The library, initialised. Names and structures as in NVIDIA's ``nvml.h``; raises NvmlError."""

    def __init__(self) -> None:
        try:
            import ctypes

            self._ctypes: Any = ctypes
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except (ImportError, OSError) as error:
            raise NvmlError(str(error)) from error
        self._call("nvmlInit_v2")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._devices = [self._device(index) for index in range(count.value)]

    def __len__(self) -> int:
        return len(self._devices)

    def read(self) -> list[Gpu]:
        """All GPUs as they are now."""
        return [
            Gpu(number, name, *self._memory(device), self._processes(device), self._busy(device))
            for number, (name, device) in enumerate(self._devices)
        ]

    def _device(self, index: int) -> tuple[str, Any]:
        ctypes = self._ctypes
        device, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        self._call("nvmlDeviceGetName", device, name, ctypes.c_uint(len(name)))
        return name.value.decode("utf-8", "replace"), device

    def _memory(self, device: Any) -> tuple[int, int]:
        """Used and total bytes. Only version 2 leaves out of ``used`` what the driver keeps, as nvidia-smi does."""
        ctypes = self._ctypes
        try:
            second = (ctypes.c_uint64 * 5)()  # version (a 32-bit number, padded), total, reserved, free, used
            second[0] = ctypes.sizeof(second) | 2 << 24
            self._call("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(second))
            return second[4], second[1]
        except NvmlError:
            first = (ctypes.c_uint64 * 3)()  # total, free, used
            self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(first))
            return first[2], first[0]

    def _processes(self, device: Any) -> dict[int, int]:
        ctypes = self._ctypes
        count = ctypes.c_uint(_MOST_PROCESSES)
        found = (ctypes.c_uint64 * (3 * _MOST_PROCESSES))()  # pid (32 bits, padded), bytes, two numbers of MIG
        try:
            self._call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), found)
        except NvmlError:  # an older driver: the figures of the whole GPU are enough
            return {}
        rows = range(min(count.value, _MOST_PROCESSES))
        return {found[3 * n] & 0xFFFFFFFF: found[3 * n + 1] for n in rows if found[3 * n + 1] != _NOT_KNOWN}

    def _busy(self, device: Any) -> int | None:
        ctypes = self._ctypes
        rates = (ctypes.c_uint * 2)()  # of the GPU, of its memory
        try:
            self._call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(rates))
        except NvmlError:  # a part of a GPU (MIG) has none
            return None
        return int(rates[0])

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            code = getattr(self._library, name)(*arguments)
        except AttributeError as error:
            raise NvmlError(f"{name}: not in this version of the driver") from error
        if code:
            raise NvmlError(f"{name}: error {code}")
