"""Triton: extensions of its interpreter, a stand-in for its driver, its compiled kernels, and control of launches."""
