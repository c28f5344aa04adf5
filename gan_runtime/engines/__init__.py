"""Ways to run a workload's training step on devices; each fulfils `contract.Engine`."""
