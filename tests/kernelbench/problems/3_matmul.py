import torch


class Model(torch.nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


M = 2048
K = 8192
N = M * 2


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
