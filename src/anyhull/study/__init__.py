"""The paper's tables and figures, and ours beside them: pieces of work -> result files -> tables, figures, report."""
