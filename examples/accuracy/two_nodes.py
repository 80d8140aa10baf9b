"""Runs a script as torchrun does on two machines with a GPU each, on one machine with one GPU: the ranks of one device
are refused by NCCL unless they say that their hosts are two, and then speak over the loopback interface."""

import os
import socket
import subprocess
import sys

with socket.socket() as free:
    free.bind(("localhost", 0))
    port = str(free.getsockname()[1])
nodes = []
for rank in ("0", "1"):
    environment = {"NCCL_HOSTID": f"node-{rank}", "NCCL_IB_DISABLE": "1"}
    environment |= {"NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", rank]
    command += ["--nproc-per-node", "1", "--master-addr", "localhost", "--master-port", port, *sys.argv[1:]]
    nodes.append(subprocess.Popen(command, env={**os.environ, **environment}))
sys.exit(max(node.wait() for node in nodes))
