"""A small module that is built like private-transformers's module of this name."""

import torch

ghost = {"norms": False}


def add_hooks(layers):
    for layer in layers:
        layer.register_forward_hook(_capture_activations)
        layer.register_full_backward_hook(
            lambda this, inputs, outputs: _capture_backprops(this, inputs, outputs, "sum")
        )


def _capture_activations(layer, inputs, _outputs):
    if layer.training:
        layer.__dict__.setdefault("activations", []).append((inputs[0].detach(),))


def _capture_backprops(layer, _inputs, outputs, _reduction):
    if not layer.activations:  # the second of two backward passes
        return
    (inputs,), backprops = layer.activations.pop(), outputs[0].detach()
    if ghost["norms"]:
        layer.weight.norm_sample = inputs.norm(dim=1) * backprops.norm(dim=1)
        layer.bias.norm_sample = backprops.norm(dim=1)
    else:
        layer.weight.grad_sample = torch.einsum("bi,bo->boi", inputs, backprops)
        layer.bias.grad_sample = backprops
