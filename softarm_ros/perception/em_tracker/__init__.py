"""NDI trackers with a serial line: Aurora (electromagnetic), Polaris with wired tools."""
