"""The lab: one static page on which the boat is changed under way (docs/lab.md)."""

from anyhull.lab.page import lab_page, model_script, write_page

__all__ = ["lab_page", "model_script", "write_page"]
