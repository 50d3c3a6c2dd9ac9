"""The Python that talks to torch and Triton: one function per phase, as docs/design/harness.md describes."""
