import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
scaler = GradScaler()

for step in range(10):
    data = torch.randn(32, 128, device=device)
    target = torch.randint(0, 10, (32,), device=device)

    optimizer.zero_grad()
    with autocast():
        output = model(data)
        loss = criterion(output, target)

    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()

print(f"loss {loss.item():.4f} scale {scaler.get_scale()}")
