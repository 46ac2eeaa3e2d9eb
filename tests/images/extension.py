"""Compiles a CUDA extension as users do, in the image, and calls the part of it that needs no GPU."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.cpp_extension import load

KERNEL = """
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
#include <cub/block/block_reduce.cuh>

__global__ void scale(const float *in, float *out, float by, int64_t n) {
  int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = by * in[i];
}

torch::Tensor scaled(torch::Tensor in, double by) {
  if (!in.is_cuda()) return in * by;
  auto out = torch::empty_like(in);
  int64_t n = in.numel();
  auto stream = at::cuda::getCurrentCUDAStream();
  scale<<<(n + 255) / 256, 256, 0, stream>>>(in.data_ptr<float>(), out.data_ptr<float>(), static_cast<float>(by), n);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled); }
"""


def main() -> None:
    """Builds, imports, calls; a GPU, where there is one, must agree with the CPU."""
    source = Path("/tmp/scaled.cu")
    source.write_text(KERNEL)
    built = load("scaled", [str(source)], verbose=True)
    numbers = torch.arange(1000, dtype=torch.float32)
    expected = numbers * 2.5
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        assert torch.equal(built.scaled(numbers.to(device), 2.5).cpu(), expected), device
        print(f"extension: right on {device}")


if __name__ == "__main__":
    main()
