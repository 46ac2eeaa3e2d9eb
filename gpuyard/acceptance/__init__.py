"""Checks that look at an image and its container from outside, in the suite's own words."""
