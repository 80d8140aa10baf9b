"""The experiment's data: a small fixed set of random samples on the host, served by a data loader.

Random data trains nothing, but costs the same memory and time as real data of its shape. It stays on the host, as a
training set does, so that each batch's way to the device is part of what is measured.
"""

from __future__ import annotations

import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

from dpsight_experiments.options import Options

# A power of two, so that Opacus' int(len(dataset) * (1 / len(loader))) is the batch size exactly.
BATCHES = 2
# At a sampling rate of 1/8 the batch size varies nearly as it does at a small one: its variance is 7/8 of its mean.
POISSON_BATCHES = 8


def data_loader(options: Options) -> DataLoader:
    """Batches (inputs, targets) of options.batch_size samples.

    Inputs are token ids [B, T] with the next ids as targets, or features [B, width] with a class each. For Poisson
    sampling it is only what Opacus makes its own loader from.
    """
    generator = torch.Generator().manual_seed(options.seed)
    samples = (POISSON_BATCHES if options.poisson else BATCHES) * options.batch_size
    if options.model == "transformer":
        ids = torch.randint(options.vocab_size, (samples, options.seq_len + 1), generator=generator)
        dataset = TensorDataset(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
    else:
        widths = options.mlp_widths
        features = torch.randn(samples, widths[0], generator=generator)
        dataset = TensorDataset(features, torch.randint(widths[-1], (samples,), generator=generator))
    if options.poisson:
        # Opacus keeps the way of collating, which must then be the one for single samples.
        return DataLoader(dataset, options.batch_size, generator=generator)
    # Without automatic batching the data set is indexed once a batch: stacking thousands of rows in Python, one by
    # one, would show up as training time.
    sampler = BatchSampler(SequentialSampler(dataset), options.batch_size, drop_last=True)
    return DataLoader(dataset, batch_size=None, sampler=sampler)
