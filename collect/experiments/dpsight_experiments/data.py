"""The experiment's data: a small fixed set of random samples on the host, and its data loader.

Training on random data achieves nothing, but costs the same memory and time as real data of the same shape. The data
stays on the host, like a real training set, so that moving each batch to the device is part of the measurement.
"""

from __future__ import annotations

import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

from dpsight_experiments.options import Options

# A power of two, so that Opacus' int(len(dataset) * (1 / len(loader))) equals the batch size.
BATCHES = 2
# At a sampling rate of 1/8 the batch size varies nearly as much as at a small rate: its variance is 7/8 of its mean.
POISSON_BATCHES = 8


def data_loader(options: Options) -> DataLoader:
    """Returns a loader of batches (inputs, targets) of options.batch_size samples.

    Inputs are token ids [B, T] with the next ids as targets, or features [B, width] with a class each. For Poisson
    sampling, Opacus makes its own loader from this one.
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
        # Opacus keeps the collate function, which must then be the one for single samples.
        return DataLoader(dataset, options.batch_size, generator=generator)
    # Without automatic batching the data set is indexed once for each batch: stacking thousands of rows one by one in
    # Python would count as training time.
    sampler = BatchSampler(SequentialSampler(dataset), options.batch_size, drop_last=True)
    return DataLoader(dataset, batch_size=None, sampler=sampler)
