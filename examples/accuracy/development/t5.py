"""A T5 of Hugging Face, from a configuration: encoder and decoder, padded batches, Adafactor, fp32."""

import torch
from transformers import Adafactor, T5Config, T5ForConditionalGeneration

BATCH, LENGTH, STEPS = 8, 256, 6

torch.manual_seed(4)
config = T5Config(d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).cuda().train()
optimizer = Adafactor(model.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
for step in range(STEPS):
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH,))
    ids = torch.randint(1, config.vocab_size, (BATCH, LENGTH))
    mask = (torch.arange(LENGTH)[None] < lengths[:, None]).long()
    labels = torch.randint(1, config.vocab_size, (BATCH, LENGTH // 2))
    labels[:, -16:] = -100
    loss = model(input_ids=(ids * mask).cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.3f}")
