import torch
from transformers import GPT2Config, GPT2LMHeadModel

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=2, n_head=4)
model = GPT2LMHeadModel(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)

model.train()
input_ids = torch.randint(0, 1000, (4, 64), device=device)
for step in range(5):
    outputs = model(input_ids, labels=input_ids)
    loss = outputs.loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"Step {step}, Loss: {loss.item():.4f}")

model.eval()
generated = model.generate(input_ids[:1, :4], max_length=20, do_sample=True, top_k=50, pad_token_id=0)
print(generated.shape)
