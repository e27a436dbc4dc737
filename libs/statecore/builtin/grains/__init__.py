"""Functions that gather grains (facts about the host), one family of grains in each module."""
