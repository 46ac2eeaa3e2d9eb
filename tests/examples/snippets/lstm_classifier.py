import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class TextDataset(Dataset):
    def __init__(self):
        self.data = [(torch.randint(1, 100, (n,)), n % 2) for n in range(3, 35)]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        return self.data[idx]


def collate_fn(batch):
    batch.sort(key=lambda x: len(x[0]), reverse=True)
    sequences, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in sequences])
    return pad_sequence(sequences, batch_first=True), torch.tensor(labels), lengths


class LSTMClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 64, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(128, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths.cpu(), batch_first=True)
        _, (hidden, _) = self.lstm(packed)
        return self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = LSTMClassifier().to(device)
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TextDataset(), batch_size=8, shuffle=True, num_workers=2, collate_fn=collate_fn, pin_memory=True)
for epoch in range(2):
    for x, y, lengths in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device), lengths), y.to(device))
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "model.pth")
model.load_state_dict(torch.load("model.pth"))
print(f"loss {loss.item():.4f}")
