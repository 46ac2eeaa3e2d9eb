"""JupyterLab: its settings, its log, its kernels."""
