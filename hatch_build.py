"""The build hook: xterm.js comes from npm when the package is made, and is in every wheel and sdist."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VendorXterm(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Made from an sdist it is there already. Without npm the package works all the same."""
        tool = runpy.run_path(str(Path(self.root, "tools/vendor_xterm.py")))
        if tool["is_vendored"]():
            return
        problem = tool["vendor_xterm"]()
        if problem:
            self.app.display_warning(
                f"The dashboard will show plain screens instead of terminals: {problem}. "
                "With npm, `python tools/vendor_xterm.py` puts xterm.js in place."
            )
