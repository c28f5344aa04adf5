"""The frame of every page: process, navigation, session, places."""
