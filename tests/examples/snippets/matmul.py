import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
a = torch.randn(2048, 2048, device=device)
b = torch.randn(2048, 2048, device=device)
start = time.time()
c = torch.matmul(a, b)
if device == "cuda":
    torch.cuda.synchronize()
print(device, c.shape, f"{(time.time() - start) * 1000:.1f} ms")
