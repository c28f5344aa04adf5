"""Entry of the command line: python -m gan_runtime --help"""

from gan_runtime.cli.app import app

if __name__ == "__main__":
    app()
