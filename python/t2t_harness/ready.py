"""What a child on a device does before there is a request for it: what takes time and depends on nothing that a request says.

No kernel code runs here, and nothing is drawn from a random state that an action would see. torch is imported only inside functions.
"""

from __future__ import annotations


def start_device() -> None:
    """Starts CUDA on the one device that this process sees, and loads what every action launches of torch's own. Raises what torch raises."""
    import torch

    generator = torch.Generator(device="cuda")
    values = torch.empty(1024, device="cuda").normal_(generator=generator)
    values.copy_(values.cpu().to("cuda", torch.float64))
    torch.cuda.synchronize()
