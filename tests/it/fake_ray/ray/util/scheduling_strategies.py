"""Where the stand-in for Ray runs an action."""


class NodeAffinitySchedulingStrategy:
    """On this node, and no other."""

    def __init__(self, node_id: str, soft: bool) -> None:
        assert not soft
        self.node_id = node_id
