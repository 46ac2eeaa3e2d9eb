"""gpuyard: the host CLI that builds, starts, verifies and reports PyTorch + CUDA images."""
