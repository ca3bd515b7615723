"""Drawings, pages and reports."""
