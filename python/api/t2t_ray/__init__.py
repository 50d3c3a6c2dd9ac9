"""The driver of a Ray cluster: performs actions of a t2t build on its nodes. t2t starts it and speaks lines of JSON with it.

`messages` has the lines, `driver` the loop between t2t and the cluster, `cluster` is the only module that knows Ray, `node` runs on nodes.
"""
