"""GitHub and GitLab, through their own programs: `gh` and `glab`."""
