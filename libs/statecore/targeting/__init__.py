"""Targeting: does a target expression (glob, pcre, list, grain, pillar, compound) match a minion?"""
