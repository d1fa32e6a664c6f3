"""Doctor: looks at everything the processes stand on, and says what is wrong and what to do about it."""
