"""Low-rank adapters of peft on a Llama: frozen bf16 weights, gradient checkpointing, padded batches, accumulation."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, LENGTH, PARTS, STEPS = 8, 1024, 2, 4

torch.manual_seed(101)
config = LlamaConfig(
    vocab_size=32000,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=16,
    num_attention_heads=16,
    num_key_value_heads=4,
    use_cache=False,
)
model = LlamaForCausalLM(config).to(torch.bfloat16)
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
lora = LoraConfig(
    r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj"]
)
model = get_peft_model(model, lora).cuda().train()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-4)
for step in range(STEPS):
    total = 0.0
    for _ in range(PARTS):
        lengths = torch.randint(LENGTH // 4, LENGTH + 1, (BATCH,))
        longest = int(lengths.max())
        mask = torch.arange(longest)[None] < lengths[:, None]
        ids = torch.randint(3, config.vocab_size, (BATCH, longest)).masked_fill(~mask, 0)
        labels = ids.masked_fill(~mask, -100)
        loss = model(input_ids=ids.cuda(), attention_mask=mask.long().cuda(), labels=labels.cuda()).loss / PARTS
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(trained, 0.3)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {total:.3f}")
