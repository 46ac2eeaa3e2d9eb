import torch
import torch.nn as nn

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(nn.Linear(100, 10)).to(device)
output = model(torch.randn(64, 100).to(device))
output.sum().backward()
print(output.size(), model.module.weight.grad.shape)
