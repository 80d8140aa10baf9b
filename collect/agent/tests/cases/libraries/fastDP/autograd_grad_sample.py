"""A small module that is built like fastDP's module of this name: the same hooks, which set the same attributes."""

import torch


def add_hooks(model, layers):
    parameters = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for layer in layers:
        if layer.weight.requires_grad:
            layer.register_forward_hook(_capture_activations)

        def backward(this, _inputs, outputs, last=layer is layers[0]):
            _prepare_sample_grad_or_norm(this, outputs)
            if last:
                _per_block_clip_grad(this, parameters, layers)

        layer.register_full_backward_hook(backward)


def _capture_activations(layer, inputs, _outputs):
    layer.activations = inputs[0].detach()


def _prepare_sample_grad_or_norm(layer, outputs):
    backprops = outputs[0].detach() * len(outputs[0])
    if layer.weight.requires_grad:
        layer.weight.grad_sample = torch.einsum("bi,bo->boi", layer.activations, backprops)
        layer.weight.norm_sample = layer.weight.grad_sample.flatten(1).norm(dim=1)
    layer.bias.grad_sample = backprops
    layer.bias.norm_sample = backprops.norm(dim=1)
    layer.backprops = backprops


def _per_block_clip_grad(_layer, parameters, layers):
    norms = torch.stack([p.norm_sample for _, p in parameters]).norm(dim=0)
    factors = 1 / (norms + 0.01)
    for layer in layers:
        if layer.weight.requires_grad:
            _extend(layer.weight, torch.einsum("boi,b->oi", layer.weight.grad_sample, factors))
            del layer.weight.grad_sample, layer.activations, layer.backprops
        _extend(layer.bias, torch.einsum("bo,b->o", layer.bias.grad_sample, factors))
        del layer.bias.grad_sample
    for _, p in parameters:
        del p.norm_sample


def _extend(p, clipped):
    p.private_grad = clipped + torch.normal(0, 1, size=p.shape, device=p.device)
