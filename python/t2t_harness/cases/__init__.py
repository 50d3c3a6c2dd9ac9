"""Cases: which inputs an op's kernels are run on, how many of them, and how a wrapper is called with them."""
