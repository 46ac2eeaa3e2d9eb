import torch
import torch.nn as nn


class SimpleRNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(SimpleRNN, self).__init__()
        self.hidden_size = hidden_size
        self.rnn = nn.RNN(input_size, hidden_size, batch_first=True)
        self.fc = nn.Linear(hidden_size, output_size)

    def forward(self, x, hidden):
        out, hidden = self.rnn(x, hidden)
        out = self.fc(out[:, -1, :])
        return out, hidden

    def init_hidden(self, batch_size):
        return torch.zeros(1, batch_size, self.hidden_size)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = SimpleRNN(input_size=10, hidden_size=20, output_size=1).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

batch_size = 5
hidden = model.init_hidden(batch_size).to(device)
for epoch in range(20):
    inputs = torch.randn(batch_size, 7, 10).to(device)
    targets = torch.randn(batch_size, 1).to(device)
    hidden = hidden.detach()
    optimizer.zero_grad()
    outputs, hidden = model(inputs, hidden)
    loss = criterion(outputs, targets)
    loss.backward()
    optimizer.step()

print(f"Final loss: {loss.item():.4f}")
