"""The paper's tables and figures with ours beside them: jobs -> result files -> tables, figures, report."""
