import torch
import torch.nn as nn

model = nn.Linear(100, 10)
if torch.cuda.device_count() > 1:
    print("Using", torch.cuda.device_count(), "GPUs")
    model = nn.DataParallel(model)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model.to(device)

output = model(torch.randn(64, 100).to(device))
print(output.size())
