"""What a builder is: values that describe it, and the registry that keeps them."""

from agent_farm.builders.config import BuilderConfig

__all__ = ["BuilderConfig"]
