"""A Whisper of Hugging Face, from a configuration: encoder and decoder on spectrograms, then greedy decoding."""

import torch
from torch import nn
from transformers import WhisperConfig, WhisperForConditionalGeneration

BATCH, LENGTH, STEPS = 16, 96, 5

torch.manual_seed(110)
config = WhisperConfig(
    d_model=512,
    encoder_layers=6,
    decoder_layers=6,
    encoder_attention_heads=8,
    decoder_attention_heads=8,
    encoder_ffn_dim=2048,
    decoder_ffn_dim=2048,
    dropout=0.1,
)
model = WhisperForConditionalGeneration(config).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=STEPS)
for step in range(STEPS):
    sound = torch.randn(BATCH, config.num_mel_bins, 2 * config.max_source_positions)
    labels = torch.randint(0, 50000, (BATCH, LENGTH))
    ends = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1))
    labels[torch.arange(LENGTH)[None] >= ends] = -100
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_features=sound.cuda(), labels=labels.cuda()).loss
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.3f}, norm {norm.item():.3f}")
model.eval()
start = torch.full((BATCH, 1), config.decoder_start_token_id).cuda()
with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
    heard = model.get_encoder()(sound.cuda())
    ids, cache = start, None
    for _ in range(24):
        out = model(encoder_outputs=heard, decoder_input_ids=ids[:, -1:], past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        ids = torch.cat([ids, out.logits[:, -1].argmax(-1, keepdim=True)], 1)
print(f"decoded {tuple(ids.shape)}")
