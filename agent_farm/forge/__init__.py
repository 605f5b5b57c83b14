"""GitHub and GitLab, through the programs their users have: `gh` and `glab`."""
