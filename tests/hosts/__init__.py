"""Tests of the package as other projects get it: built, installed into fresh environments, and run in four hosts."""
