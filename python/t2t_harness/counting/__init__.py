"""Counting: what runs on a device while a wrapper is called: kernels, their streams and queues, and who wrote a result."""
