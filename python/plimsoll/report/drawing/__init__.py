"""What every page is drawn with: figures, tables, the theme, and the page itself."""
