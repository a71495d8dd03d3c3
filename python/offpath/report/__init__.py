"""The page of `offpath report`: one HTML file that shows a traced run, or what a benchmark found."""
