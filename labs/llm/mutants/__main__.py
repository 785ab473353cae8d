"""`python -m labs.llm.mutants` plants every mistake and writes the table."""

from labs.llm.mutants import table

table.main()
