"""What a builder is: values, and the registry that keeps them."""

from agent_farm.builders.config import BuilderConfig

__all__ = ["BuilderConfig"]
