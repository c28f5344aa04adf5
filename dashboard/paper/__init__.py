"""The tab The paper of Studies, and the tab Reproduce the paper of Launch."""
