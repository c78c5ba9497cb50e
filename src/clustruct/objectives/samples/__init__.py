"""Objectives of clustered samples."""
