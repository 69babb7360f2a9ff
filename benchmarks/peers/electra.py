"""ELECTRA as a user of transformers writes it: `python -m benchmarks.peers.electra ORDER`.

transformers has both networks and no loop that trains them jointly. Here its collator masks tokens, the generator's
loss is computed, its samples replace the masks, and the discriminator classifies every token (Clark et al. 2020, §3.1);
shared embeddings, bfloat16 by autocast, fused AdamW, gradients clipped at 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.harness.gate import Gate
from benchmarks.peers.trainer import blocks


def main(order: Path) -> int:
    """Train until the measurement ends."""
    import torch
    from torch.utils.data import DataLoader
    from transformers import (
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        ElectraConfig,
        ElectraForMaskedLM,
        ElectraForPreTraining,
        get_linear_schedule_with_warmup,
    )

    settings = json.loads(order.read_bytes())
    gate = Gate()
    torch.manual_seed(settings["seed"])
    tokenizer = AutoTokenizer.from_pretrained(settings["model"], trust_remote_code=False)
    discriminator = ElectraForPreTraining.from_pretrained(settings["model"])
    large, share = discriminator.config, settings["generator_size"]
    generator = ElectraForMaskedLM(
        ElectraConfig(
            **{
                **large.to_diff_dict(),
                "hidden_size": round(large.hidden_size * share),
                "num_attention_heads": max(1, round(large.num_attention_heads * share)),
                "intermediate_size": round(large.intermediate_size * share),
            }
        )
    )
    generator_embeddings, discriminator_embeddings = generator.electra.embeddings, discriminator.electra.embeddings
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        setattr(generator_embeddings, name, getattr(discriminator_embeddings, name))
    generator.tie_weights()
    data = blocks(settings, tokenizer, special=True)
    collator = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=settings["rate"], mask_replace_prob=1.0, random_replace_prob=0.0
    )
    loader = DataLoader(data, batch_size=settings["rows_a_step"], shuffle=True, collate_fn=collator, drop_last=True)
    parameters = list({id(one): one for net in (generator, discriminator) for one in net.parameters()}.values())
    optimizer = torch.optim.AdamW(
        parameters, lr=settings["lr"], betas=(0.9, 0.98), eps=1e-6, weight_decay=0.01, fused=True
    )
    schedule = get_linear_schedule_with_warmup(optimizer, settings["warmup"], settings["steps"])
    generator.train()
    discriminator.train()
    if settings.get("compiled"):
        generator.compile()
        discriminator.compile()
    while True:
        for batch in loader:
            gate.step()
            masked = batch["labels"] != -100
            with torch.autocast("cpu", torch.bfloat16):
                outputs = generator(input_ids=batch["input_ids"], labels=batch["labels"])
                likely = outputs.logits[masked].detach().float().softmax(-1)
                drawn = torch.multinomial(likely, 1)[:, 0]
                filled = batch["input_ids"].clone()
                filled[masked] = drawn
                true = torch.where(masked, batch["labels"], batch["input_ids"])
                judged = discriminator(input_ids=filled, labels=(filled != true).long())
                loss = outputs.loss + settings["discriminator"] * judged.loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
