"""Files for the engines that people outgrow one machine to. gpuyard writes and checks them; it schedules nothing."""
