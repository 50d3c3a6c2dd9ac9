"""Never ends, in Python."""


def triton_add(input, other, *, alpha=1):
    while True:
        pass
