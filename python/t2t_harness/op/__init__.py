"""The op: what a declaration means, the function that it names, what torch says of it, and how much it computes."""
