"""Attaches dpsight in a Ray actor that runs out of memory. Ray hands the error to the caller, and the actor
continues."""

import json
import os
import sys

import ray


@ray.remote
class Actor:
    def begin(self, store: str) -> None:
        import dpsight
        import torch

        self.torch = torch
        self.model = torch.nn.Linear(512, 512).cuda()
        self.kept = []
        dpsight.attach(store, name="actor")

    def infer(self) -> int:
        self.kept.append(self.model(self.torch.ones(1024, 512, device="cuda")))
        return len(self.kept)

    def fail(self) -> None:
        self.torch.empty(1 << 40, dtype=self.torch.uint8, device="cuda")  # PLANTED


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
actor = Actor.options(runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": "0"}}).remote()
ray.get(actor.begin.remote(sys.argv[1]))
first = [ray.get(actor.infer.remote()) for _ in range(3)]
try:
    ray.get(actor.fail.remote())
    heard = "nothing"
except ray.exceptions.RayTaskError as error:
    heard = type(error.cause).__name__
print(json.dumps({"before": first, "heard": heard, "after": ray.get(actor.infer.remote())}))
ray.shutdown()
os._exit(0)
