"""The pages of alert rules: of what, whom and from what threshold on to tell."""
