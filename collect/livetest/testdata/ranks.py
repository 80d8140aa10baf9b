"""Trains with several processes: ranks.py ddp (under torchrun) | spawn | loader | fork | early | start."""

import os
import sys
import time

import torch
from facts import Net, say, train


def rank(_index):
    model = Net().cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    say(3)


def main():
    mode = sys.argv[1]
    if mode == "ddp":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.distributed.init_process_group(sys.argv[2])
        model = Net().cuda()
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, 1, parallel)
        # DDP makes new buckets in the second forward. If NCCL's watchdog, which runs ten times a second, still held
        # the first buckets then, the peak would have one bucket more, by chance.
        time.sleep(1)
        train(model, optimizer, 3, parallel)
        torch.distributed.destroy_process_group()
        say(4)
    elif mode == "spawn":
        torch.multiprocessing.spawn(rank, nprocs=2)
    elif mode == "loader":
        data = torch.utils.data.TensorDataset(torch.randn(32, 64), torch.randint(0, 7, (32,)))
        model = Net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda()).backward()
            optimizer.step()
        say(4)
    elif mode == "fork":
        rank(0)
        child = os.fork()
        if child == 0:
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    else:  # forks before CUDA is in use, after the agent has seen a model
        Net()(torch.randn(2, 64))
        if mode == "start":
            started = torch.multiprocessing.start_processes(rank, nprocs=2, join=False, start_method="fork")
            rank(0)
            while not started.join():
                pass
        else:
            child = os.fork()
            rank(0)
            if child:
                sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
