"""The command line: every command of the dashboard, for a terminal or a script.

app         the list of commands; `devices` and `serve`
training    `train`, `study`, `resume`
runs        `runs`, `show`, `stop`, `queue`
storage     `sql`, `export`, `bundle`, `import`, `mark`, `best`, `delete`, `bin`, `restore`, `space`
evaluating  `evaluate`, `generate`
data_sets   `data`
tpu_checks  `tpu-check`
arguments   options that several commands share
following   progress of runs and jobs, and Ctrl-C
output      stdout, stderr, tables, errors

Imports no framework.
"""
