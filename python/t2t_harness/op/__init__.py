"""The op: what a declaration means, the function that it names, what torch says of that, and how much it computes."""
