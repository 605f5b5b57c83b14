"""The farm's server: one application for MCP, HTTP and the page, and its life as a process."""
