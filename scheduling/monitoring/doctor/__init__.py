"""The doctor checks everything that the processes depend on. It tells what is wrong and how to fix it."""
