"""Reading the machine: processes, control groups, ELF files, the driver's libraries."""
