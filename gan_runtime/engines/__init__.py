"""The engines, which run a workload's training step on devices; each implements
`contract.Engine`.
"""
