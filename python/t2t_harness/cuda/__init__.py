"""CUDA C++: nvcc, the module that kernel code loads its kernels with, and the launches that go through it."""
