"""Distillation: a small BERT of Hugging Face learns a frozen one's logits and hidden states on masked tokens."""

import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM, get_linear_schedule_with_warmup

BATCH, LENGTH, EPOCHS, STEPS, WARMTH = 32, 256, 2, 3, 2.0


def batch(vocabulary: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, vocabulary, (BATCH, LENGTH))
    masked = torch.rand(BATCH, LENGTH) < 0.15
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1))
    seen = torch.arange(LENGTH)[None] < lengths
    labels = ids.masked_fill(~(masked & seen), -100)
    return ids.masked_fill(masked, 4).cuda(), seen.long().cuda(), labels.cuda()


torch.manual_seed(103)
teacher = BertForMaskedLM(BertConfig(output_hidden_states=True)).cuda().eval().requires_grad_(False)
student = BertForMaskedLM(BertConfig(num_hidden_layers=4, output_hidden_states=True)).cuda().train()
vocabulary = student.config.vocab_size
optimizer = torch.optim.AdamW(student.parameters(), lr=5e-4, weight_decay=0.01)
schedule = get_linear_schedule_with_warmup(optimizer, 2, EPOCHS * STEPS)
for epoch in range(EPOCHS):
    student.train()
    for _ in range(STEPS):
        ids, seen, labels = batch(vocabulary)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            with torch.no_grad():
                told = teacher(input_ids=ids, attention_mask=seen)
            said = student(input_ids=ids, attention_mask=seen, labels=labels)
            wanted = F.softmax(told.logits / WARMTH, -1)
            soft = F.kl_div(F.log_softmax(said.logits / WARMTH, -1), wanted, reduction="none").sum(-1)
            soft = (soft * seen).sum() / seen.sum() * WARMTH**2
            near = F.cosine_similarity(said.hidden_states[-1], told.hidden_states[-1], dim=-1)
            loss = 0.5 * soft + 0.4 * said.loss + 0.1 * (1 - near).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    student.eval()
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        ids, seen, labels = batch(vocabulary)
        held_out = student(input_ids=ids, attention_mask=seen, labels=labels).loss
    print(f"epoch {epoch}: loss {loss.item():.3f}, held out {held_out.item():.3f}")
