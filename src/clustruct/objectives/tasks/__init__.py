"""Objectives of clustered tasks."""
