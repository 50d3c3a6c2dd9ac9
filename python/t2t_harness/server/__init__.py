"""The fork server: what it does before it forks, and what warm children do before their request."""
