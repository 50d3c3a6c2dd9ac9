"""How far predictions are from the right side of the margin, on average."""


def hinge_loss(predictions, targets):
    return (1 - predictions * targets).clamp(min=0).mean()
