"""The use cases, one file each: everything `af` does with builders."""
