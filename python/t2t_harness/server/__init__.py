"""The fork server: what it does before it forks, and what its children do before there is a request."""
