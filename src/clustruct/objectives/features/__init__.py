"""Objectives of clustered features."""
